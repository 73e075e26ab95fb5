//! The program from outside, and the library as a program that uses it sees it: one binary, a module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calibrate;
mod circles;
mod commands;
mod compare;
mod completions;
mod constants;
mod docs;
mod examples;
mod federate;
mod fedhybrid_a;
mod fedhybrid_b;
mod fedhybrid_c;
mod inference;
mod interrupted;
mod kernels_command;
mod left_out;
mod mandheling;
mod mistakes;
mod parity;
mod questions;
mod reproduce;
mod results;
mod scenarios;
mod settings;
mod shards;
mod show;
mod show_table;
mod simulate;
mod support;
mod sweep;
mod sweep_words;
mod trace;
mod trace_pictures;
mod traces_drive_runs;
mod train;
