//! Lists the calibrations of devices, stacks and systems, and the files of cores and flash that they refer to
//! (`calibrations/**/*.toml`), so that a new file needs no code.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut code = String::new();
    embed(&mut code, "DEVICES", &root, "calibrations")?;
    embed(&mut code, "STACKS", &root, "calibrations/stacks")?;
    embed(&mut code, "SYSTEMS", &root, "calibrations/systems")?;
    embed(&mut code, "CORES", &root, "calibrations/cores")?;
    embed(&mut code, "FLASH", &root, "calibrations/flash")?;
    fs::write(out.join("calibrations.rs"), code)?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=calibrations");
    println!("cargo::rerun-if-changed=calibrations/stacks");
    println!("cargo::rerun-if-changed=calibrations/systems");
    println!("cargo::rerun-if-changed=calibrations/cores");
    println!("cargo::rerun-if-changed=calibrations/flash");
    Ok(())
}

fn embed(code: &mut String, name: &str, root: &Path, folder: &str) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    writeln!(code, "pub(crate) static {name}: &[BuiltIn] = &[")?;
    for path in files {
        let id = path.file_stem().ok_or("a calibration without a name")?.to_string_lossy();
        writeln!(
            code,
            "    BuiltIn {{ id: {id:?}, file: {:?}, text: include_str!({:?}) }},",
            format!("devices/{folder}/{id}.toml"),
            path.to_string_lossy(),
        )?;
    }
    writeln!(code, "];")?;
    Ok(())
}
