//! `glyphs`: small coloured images of drawn signs, made by code.

/// The number of channels of an image: red, green, blue.
pub const CHANNELS: usize = 3;

/// The number of rows and of columns of an image.
pub const SIDE: usize = 32;

/// The number of classes.
pub const CLASSES: usize = 10;
