//! The program `haversack`: reads the command line, runs the command, turns its error into an exit code.

use std::process::ExitCode;

use clap::Parser;
use haversack::cli::Arguments;

fn main() -> ExitCode {
    match haversack::cli::run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.exit_code();
            if code != 0 {
                haversack::output::complain(&error);
            }
            ExitCode::from(code)
        }
    }
}
