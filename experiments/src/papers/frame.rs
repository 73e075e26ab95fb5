//! What stands around the panels of an artefact's figure: its title, a note, and how the panels lie.
//!
//! ```toml
//! [[figure]]
//! artefact = "figure10"           # of this paper
//! title = "Sage, figure 10: throughput against memory, batch 32"
//! note = "Of the paper: {paper:sage/figure10/*/ratio}."   # optional, with the placeholders of notes
//! columns = 4                     # panels in a row
//! size = [270, 220]               # of a panel, in pixels
//! share_y = true                  # one range for all panels; likewise share_x
//! order = ["SGC", "SGA"]          # names that take their colours first
//! rows = true                     # panels of the paper's numbers beside ours follow, where the others do not show them
//! hatched = "95% interval"        # what hatched bars and dashed lines mean, where it is not the paper's
//! ```

use haversack_reports::figure::Meanings;
use haversack_reports::{Figure, Panel};
use serde::Deserialize;

use super::notes::Facts;
use super::rows_panel;

/// What stands around the panels of an artefact's figure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureFrame {
    /// The artefact.
    pub artefact: String,
    /// The title, above everything.
    pub title: String,
    /// A sentence below the title, with placeholders.
    pub note: Option<String>,
    /// Panels in a row; chosen where `None`.
    pub columns: Option<usize>,
    /// Width and height of a panel's box in pixels; the default's where `None`.
    pub size: Option<(u32, u32)>,
    /// Whether all panels have one horizontal range.
    #[serde(default)]
    pub share_x: bool,
    /// Whether all panels have one vertical range.
    #[serde(default)]
    pub share_y: bool,
    /// Names that take their colours first.
    #[serde(default)]
    pub order: Vec<String>,
    /// Whether panels of the paper's numbers beside ours follow.
    #[serde(default)]
    pub rows: bool,
    /// What hatched bars and dashed lines mean; the paper's where `None`.
    pub hatched: Option<String>,
}

impl FigureFrame {
    /// The figure of these panels.
    ///
    /// # Errors
    /// What the title or the note quotes and the artefact does not offer.
    pub(crate) fn around(&self, mut panels: Vec<Panel>, facts: &Facts<'_>) -> Result<Figure, String> {
        if self.rows {
            panels.extend(rows_panel::panels(facts.cells));
        }
        let title = facts.text(&self.title)?.unwrap_or_default();
        let note = self.note.as_ref().map_or(Ok(None), |note| facts.text(note))?;
        let figure = Figure::new(title);
        let hatched = self.hatched.clone().unwrap_or(figure.meanings.hatched);
        Ok(Figure {
            note,
            panels,
            columns: self.columns,
            panel_size: self.size.unwrap_or(figure.panel_size),
            share_x: self.share_x,
            share_y: self.share_y,
            order: self.order.clone(),
            meanings: Meanings { hatched, ..figure.meanings },
            ..figure
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::quantity::Quantities;

    #[test]
    fn a_frame_is_filled_from_the_run_and_laid_around_the_panels() {
        let text = "artefact = \"figure8\"\ntitle = \"At {reading:batch} samples\"\nnote = \"{quantity:users}.\"\n\
            columns = 2\nsize = [300, 200]\nshare_y = true\nhatched = \"interval\"\n";
        let frame: FigureFrame = toml::from_str(text).unwrap();
        let mut quantities = Quantities::default();
        quantities.offer_words("users", "two users".to_owned());
        let declared = |id: &str| (id == "batch").then(|| "32".to_owned());
        let facts = Facts { cells: &[], quantities: &quantities, declared: &declared };
        let figure = frame.around(Vec::new(), &facts).unwrap();
        assert_eq!((figure.title.as_str(), figure.note.as_deref()), ("At 32 samples", Some("two users.")));
        assert_eq!((figure.panel_size, figure.columns), ((300, 200), Some(2)));
        assert!(figure.share_y && !figure.share_x);
        assert_eq!((figure.meanings.hatched.as_str(), figure.meanings.solid.as_str()), ("interval", "simulated"));
        let other = FigureFrame { note: Some("{quantity:phones}".to_owned()), ..frame };
        assert!(other.around(Vec::new(), &facts).unwrap_err().contains("`phones`"));
    }
}
