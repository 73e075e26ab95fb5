//! Digests the program's sources, to distinguish builds. Lists the included measured sets (`truth/<set>`), their
//! networks, and the results measured in training (`measured`), so that a new file needs no code.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rustc-env=HAVERSACK_BUILD={}", build(&root)?);
    let root = root.join("truth");
    let (mut sets, mut networks) = (String::new(), String::new());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.display());
    for set in sorted(&root)?.iter().filter(|path| path.is_dir()) {
        let name = file_name(set)?;
        let text = |file: &str| format!("include_str!({:?})", set.join(file).display().to_string());
        writeln!(sets, "    Embedded {{ name: {name:?}, about: {}, rows: {} }},", text("set.toml"), text("rows.csv"))?;
        for network in sorted(&set.join("networks"))? {
            let path = format!("experiments/truth/{name}/networks/{}", file_name(&network)?);
            writeln!(networks, "    ({path:?}, include_bytes!({:?})),", network.display().to_string())?;
        }
        // A folder that does not exist would count as changed every time.
        for folder in [set.clone(), set.join("networks")].iter().filter(|folder| folder.is_dir()) {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
    }
    let code = format!(
        "pub(crate) static SETS: &[Embedded] = &[\n{sets}];\nstatic NETWORKS: &[(&str, &[u8])] = &[\n{networks}];\n"
    );
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("truth.rs"), code)?;
    Ok(fs::write(out.join("measured.rs"), measured()?)?)
}

/// The FNV-1a of the sources of all crates of the workspace, or only of this one outside a workspace.
fn build(root: &Path) -> Result<String, Box<dyn Error>> {
    let workspace = root.join("..");
    let mut crates = vec![root.to_path_buf()];
    if workspace.join("Cargo.lock").is_file() {
        crates = [sorted(&workspace)?, sorted(&workspace.join("sim"))?].concat();
        crates.retain(|path| path.join("Cargo.toml").is_file() && !path.ends_with("python"));
        crates.push(workspace.join("Cargo.lock"));
    }
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for path in crates {
        println!("cargo::rerun-if-changed={}", path.display());
        digest(&path, &mut hash)?;
    }
    Ok(format!("{hash:016x}"))
}

/// Adds the name and the bytes of `path` and of everything below it except tests, benchmarks and examples.
fn digest(path: &Path, hash: &mut u64) -> Result<(), Box<dyn Error>> {
    let name = file_name(path)?;
    if name.starts_with('.') || ["tests", "benches", "examples", "target"].contains(&name.as_str()) {
        return Ok(());
    }
    let bytes = if path.is_dir() { Vec::new() } else { fs::read(path)? };
    for byte in name.bytes().chain([0]).chain(bytes) {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    sorted(path)?.iter().try_for_each(|below| digest(below, hash))
}

/// The files of `measured`: none if the folder does not exist.
fn measured() -> Result<String, Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("measured");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = String::new();
    for path in sorted(&folder)? {
        let name = file_name(&path)?;
        let Some((place, _)) = name.rsplit_once(".toml") else { continue };
        let (place, path) = (place.replacen('-', "/", 1), path.display().to_string());
        writeln!(files, "    ({place:?}, {:?}, include_str!({path:?})),", format!("experiments/measured/{name}"))?;
    }
    Ok(format!("const FILES: &[(&str, &str, &str)] = &[\n{files}];\n"))
}

/// The contents of a folder, by name; empty if it does not exist.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> Result<String, Box<dyn Error>> {
    Ok(path.file_name().ok_or("a path without a name")?.to_string_lossy().into_owned())
}
