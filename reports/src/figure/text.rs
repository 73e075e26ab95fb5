//! Text in figures: one embedded font, its widths, and wrapping.

use std::sync::LazyLock;

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

use super::FigureError;

/// The family in the SVG. Widths are measured with DejaVu Sans; Verdana has nearly the same metrics,
/// and most browsers have it.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// plotters measures a font at 1 / 1.24 of the size that it is given.
const PLOTTERS_SIZE: f64 = 1.24;

static REGISTERED: LazyLock<bool> = LazyLock::new(|| {
    register_font(FAMILY, FontStyle::Normal, dejavu::sans::regular()).is_ok()
        && register_font(FAMILY, FontStyle::Bold, dejavu::sans::bold()).is_ok()
});

/// Registers the font, once a process.
pub(super) fn ready() -> Result<(), FigureError> {
    if *REGISTERED { Ok(()) } else { Err(FigureError("the embedded font cannot be read".to_owned())) }
}

/// A size in pixels and a weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Face {
    pub(super) size: f64,
    pub(super) bold: bool,
}

impl Face {
    pub(super) const TITLE: Self = Self { size: 15.0, bold: true };
    pub(super) const NOTE: Self = Self { size: 11.0, bold: false };
    pub(super) const PANEL: Self = Self { size: 12.5, bold: true };
    pub(super) const LABEL: Self = Self { size: 12.0, bold: false };
    pub(super) const TICK: Self = Self { size: 11.0, bold: false };
    pub(super) const KEY: Self = Self { size: 11.5, bold: false };
    pub(super) const VALUE: Self = Self { size: 10.0, bold: false };

    /// The distance from one line to the next.
    pub(super) fn line(self) -> f64 {
        (self.size * 1.3).ceil()
    }

    /// The width of `text`; a few per cent too large, because the reader's font may be wider.
    pub(super) fn width(self, text: &str) -> f64 {
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        // Measured eight times as large: plotters rounds widths to whole pixels.
        let font = FontDesc::new(FontFamily::Name(FAMILY), self.size * 8.0 * PLOTTERS_SIZE, style);
        let guess = self.size * 0.65 * text.chars().count() as f64;
        font.box_size(text).map_or(guess, |(width, _)| f64::from(width) / 8.0)
    }

    /// The widest of several lines.
    pub(super) fn widest<S: AsRef<str>>(self, lines: &[S]) -> f64 {
        lines.iter().map(|line| self.width(line.as_ref())).fold(0.0, f64::max)
    }

    /// Breaks `text` into lines of at most `width` where blanks, hyphens, slashes or underscores allow it; a longer
    /// word is on its own line.
    pub(super) fn wrap(self, text: &str, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in words(text) {
            let longer = format!("{line}{word}");
            if !line.is_empty() && self.width(longer.trim_end()) > width {
                lines.push(line.trim_end().to_owned());
                line = word.to_owned();
            } else {
                line = longer;
            }
        }
        lines.push(line.trim_end().to_owned());
        lines
    }

    /// The widest part of `text` that [`Face::wrap`] cannot break.
    pub(super) fn widest_word(self, text: &str) -> f64 {
        words(text).iter().map(|word| self.width(word.trim_end())).fold(0.0, f64::max)
    }

    /// `text`, cut with an ellipsis if it is wider than `width`.
    pub(super) fn shorten(self, text: &str, width: f64) -> String {
        if self.width(text) <= width {
            return text.to_owned();
        }
        let mut cuts = text.char_indices().rev().map(|(end, _)| format!("{}…", &text[..end]));
        cuts.find(|cut| self.width(cut) <= width).unwrap_or_else(|| "…".to_owned())
    }
}

/// The pieces between which a line may break, each with the blank or mark that ends it. A mark that begins a word, such
/// as a minus, ends none.
fn words(text: &str) -> Vec<&str> {
    let mut before = ' ';
    let ends = |c: char| {
        let last = std::mem::replace(&mut before, c);
        c == ' ' || matches!(c, '-' | '/' | '_') && last != ' '
    };
    text.split_inclusive(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_line_breaks_after_marks_within_words_and_not_after_a_minus() {
        assert_eq!(words("by -0.5 to two-thirds a/b"), ["by ", "-0.5 ", "to ", "two-", "thirds ", "a/", "b"]);
    }
}
