//! A figure that a command draws into one file, which `--plot` names.

use std::path::PathBuf;
use std::str::FromStr;

use haversack_reports::{Figure, write_atomically};

use crate::error::Result;

/// A file for a figure, in the format that its name ends in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    path: PathBuf,
    is_svg: bool,
}

impl FromStr for Plot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("svg") => Ok(Self { path, is_svg: true }),
            Some("png") => Ok(Self { path, is_svg: false }),
            _ => Err(format!("expected a file that ends in .svg or .png, found '{text}'")),
        }
    }
}

impl Plot {
    /// Draws `figure` into the file.
    ///
    /// # Errors
    /// A figure without anything to draw, a file that cannot be written.
    pub fn draw(&self, figure: &Figure) -> Result<()> {
        let rendered = figure.render()?;
        let bytes = if self.is_svg { rendered.svg.as_bytes() } else { &rendered.png };
        Ok(write_atomically(&self.path, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_of_the_format_that_its_name_ends_in() {
        assert!("a/b.SVG".parse::<Plot>().unwrap().is_svg);
        assert!(!"b.png".parse::<Plot>().unwrap().is_svg);
        for text in ["b.pdf", "png", ""] {
            assert!(text.parse::<Plot>().unwrap_err().contains(".svg or .png"), "{text}");
        }
    }
}
