//! The graph that MNN trains: its expressions, with their layout transformations.
