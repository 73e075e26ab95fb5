//! The folder of a reproduction: checked for writability before anything is simulated, written file by file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haversack_reports::{FileError, Rendered, create_folder, if_there, write_atomically};

use crate::measured::Measured;

/// The files at the top.
const FILES: [&str; 3] = ["cells.csv", "index.html", "run.json"];
/// The files of an artefact: its table, its picture in two formats, the data for later runs, and its measurements.
const EXTENSIONS: [&str; 5] = ["csv", "svg", "png", "json", "toml"];

/// The names of an artefact's files, not all of which need exist.
pub(super) fn names(paper: &str, artefact: &str) -> [String; EXTENSIONS.len()] {
    EXTENSIONS.map(|extension| format!("{paper}/{artefact}.{extension}"))
}

/// A folder that could be written when it was opened.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Creates `root` if it is missing, and tries to write to it. If that fails, everything created is removed again.
    ///
    /// # Errors
    /// The path that cannot be created or written, and why.
    pub(super) fn open(root: &Path, papers: &[&str]) -> Result<Self, FileError> {
        let absent: Vec<&Path> = root.ancestors().take_while(|path| !path.as_os_str().is_empty()).collect();
        let absent: Vec<&Path> = absent.into_iter().take_while(|path| !path.exists()).collect();
        let opened = create_folder(root).and_then(|()| usable(root, papers));
        if let Err(error) = opened {
            // Deepest first; a folder that is not empty was not created here.
            for path in absent {
                let _ = fs::remove_dir(path);
            }
            return Err(error);
        }
        Ok(Self { root: root.to_path_buf() })
    }

    /// Writes a file at the top.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), FileError> {
        write_atomically(&self.root.join(name), text.as_bytes())
    }

    /// Writes an artefact's files, and removes the picture or the measurements of an earlier run that it no longer has.
    pub(super) fn write_artefact(
        &self,
        paper: &str,
        artefact: &str,
        figure: Option<&Rendered>,
        measured: Option<&Measured>,
        csv: &str,
    ) -> Result<(), FileError> {
        let folder = self.root.join(paper);
        create_folder(&folder)?;
        let file = |extension: &str| folder.join(format!("{artefact}.{extension}"));
        match figure {
            Some(figure) => figure.write(&folder.join(artefact))?,
            None => [file("svg"), file("png")].iter().try_for_each(|path| absent_or_removed(path))?,
        }
        match measured {
            Some(measured) => write_atomically(&file("toml"), measured.to_text().as_bytes())?,
            None => absent_or_removed(&file("toml"))?,
        }
        write_atomically(&file("csv"), csv.as_bytes())
    }

    /// The figure of an artefact, read from the folder; `None` if it has none.
    ///
    /// # Errors
    /// An existing file that cannot be read.
    pub(super) fn figure(&self, paper: &str, artefact: &str) -> Result<Option<String>, FileError> {
        let path = self.root.join(paper).join(format!("{artefact}.svg"));
        if_there("read", &path, fs::read_to_string(&path))
    }

    /// Copies an artefact's files from the folder `from`.
    pub(super) fn copy_artefact(&self, from: &Path, paper: &str, artefact: &str) -> Result<(), FileError> {
        create_folder(&self.root.join(paper))?;
        for name in names(paper, artefact) {
            let [from, to] = [from, &self.root].map(|folder| folder.join(&name));
            match if_there("read", &from, fs::read(&from))? {
                Some(bytes) => write_atomically(&to, &bytes)?,
                None => absent_or_removed(&to)?,
            }
        }
        Ok(())
    }
}

fn usable(root: &Path, papers: &[&str]) -> Result<(), FileError> {
    let refuse = |path: PathBuf, kind: io::ErrorKind| Err(FileError { action: "write", path, source: kind.into() });
    for path in FILES.iter().map(|name| root.join(name)) {
        if path.is_dir() {
            return refuse(path, io::ErrorKind::IsADirectory);
        }
    }
    let mut folders = vec![root.to_path_buf()];
    for path in papers.iter().map(|paper| root.join(paper)).filter(|path| path.exists()) {
        if !path.is_dir() {
            return refuse(path, io::ErrorKind::NotADirectory);
        }
        folders.push(path);
    }
    for folder in folders {
        tempfile::tempfile_in(&folder).map_err(|error| FileError {
            action: "write",
            source: error.kind().into(),
            path: folder,
        })?;
    }
    Ok(())
}

fn absent_or_removed(path: &Path) -> Result<(), FileError> {
    if_there("remove", path, fs::remove_file(path)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_made_or_used_leaves_nothing_behind() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("file");
        fs::write(&file, "kept").unwrap();
        let below = Folder::open(&file.join("a/b"), &[]).unwrap_err();
        assert!(below.to_string().contains("file"), "{below}");
        // The name `cells.csv` is taken by a folder.
        let taken = top.path().join("taken");
        fs::create_dir_all(taken.join("cells.csv")).unwrap();
        assert!(Folder::open(&taken, &[]).unwrap_err().path.ends_with("cells.csv"));
        // The name of the paper's folder is taken by a file.
        let paper = top.path().join("paper");
        fs::create_dir(&paper).unwrap();
        fs::write(paper.join("sage"), "kept").unwrap();
        assert!(Folder::open(&paper, &["sage"]).unwrap_err().path.ends_with("sage"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 3);
        assert_eq!(fs::read_dir(&paper).unwrap().count(), 1);
    }

    #[test]
    fn a_picture_and_values_of_an_earlier_run_go_when_the_artefact_has_none() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::open(&top.path().join("a/b"), &["sage"]).unwrap();
        assert_eq!(fs::read_dir(top.path().join("a/b")).unwrap().count(), 0);
        let measured = Measured::default();
        let picture = Rendered { svg: "<svg/>".into(), png: vec![1] };
        folder.write_artefact("sage", "figure8", Some(&picture), Some(&measured), "x\n").unwrap();
        folder.write_artefact("sage", "figure9", Some(&picture), Some(&measured), "x\n").unwrap();
        folder.write_artefact("sage", "figure8", None, None, "y\n").unwrap();
        let mut names: Vec<String> = fs::read_dir(top.path().join("a/b/sage"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["figure8.csv", "figure9.csv", "figure9.png", "figure9.svg", "figure9.toml"]);
    }
}
