//! Lossy compression of feature maps within an error bound.
