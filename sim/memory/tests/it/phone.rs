//! The phone's memory: mechanisms against hand arithmetic, lmkd's decisions, and a slow twin in lock step.

mod actors;
mod generations;
mod lmkd;
mod mechanisms;
mod pressure;
mod support;
mod twin;
