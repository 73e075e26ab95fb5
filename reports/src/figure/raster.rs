//! SVG to PNG, with the same font that the layout was measured with.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use super::{FigureError, PNG_SCALE};

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// The picture of `svg`, [`PNG_SCALE`] times as large.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, FigureError> {
    let failed = |reason: String| FigureError::Raster(reason);
    let options = Options { fontdb: Arc::clone(&FONTS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| failed(e.to_string()))?;
    let size = tree.size().to_int_size();
    let mut sheet = Pixmap::new(size.width() * PNG_SCALE, size.height() * PNG_SCALE)
        .ok_or_else(|| failed("the sheet is too large".into()))?;
    let scale = PNG_SCALE as f32;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut sheet.as_mut());
    sheet.encode_png().map_err(|e| failed(e.to_string()))
}
