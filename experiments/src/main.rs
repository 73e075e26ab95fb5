//! The program `haversack`: runs the command line of its process.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(haversack::cli::main(std::env::args_os()))
}
