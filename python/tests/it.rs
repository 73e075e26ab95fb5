//! The package as Python sees it: the built library is linked next to the package's files, and `tests/*.py` run on it.
//!
//! Nothing is installed or downloaded. Without Python 3.9 or newer, the tests report that and do nothing; so do those
//! that need polars or PyTorch, if these are not installed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The folder of the package.
fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The interpreter, if one is found that is new enough.
fn python() -> Option<String> {
    let python = env::var("HAVERSACK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let asks = "import sys; sys.exit(sys.version_info < (3, 9))";
    let found = Command::new(&python).args(["-c", asks]).stdin(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Some(python),
        _ => {
            eprintln!("skipped: {python} is not there, or older than 3.9");
            None
        }
    }
}

/// A folder with the package as it is installed.
fn installed() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("haversack");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(home().join("package/haversack")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            symlink(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let built = env::current_exe().unwrap().parent().unwrap().join("libhaversack_native.so");
    assert!(built.is_file(), "{} was not built next to this test", built.display());
    symlink(built, package.join("_native.abi3.so")).unwrap();
    folder
}

/// Runs a script of the tests with these arguments; returns its standard error.
fn run(script: &str, arguments: &[&Path]) -> Option<String> {
    let (python, folder) = (python()?, installed());
    let mut command = Command::new(python);
    command.arg(home().join("tests").join(script)).args(arguments).stdin(Stdio::null());
    // Neither packages that the user has installed nor compiled files next to the sources.
    command.env("PYTHONPATH", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    eprintln!("{said}");
    Some(said)
}

#[test]
fn the_package_does_what_the_command_line_does() {
    let Some(said) = run("package.py", &[]) else { return };
    assert!(said.contains("OK"), "{said}");
}

#[test]
fn the_cells_of_the_notebook_run() {
    run("cells.py", &[&home().join("notebook.ipynb")]);
}

#[test]
fn what_the_page_shows_runs() {
    run("cells.py", &[&home().join("../docs/python.md")]);
}

#[test]
fn plans_are_carried_out_in_pytorch() {
    let Some(said) = run("planned.py", &[]) else { return };
    assert!(said.contains("OK") || said.contains("skipped"), "{said}");
}
