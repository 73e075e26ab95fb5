//! The program `haversack`: reads the command line, runs the command, turns its error into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    match haversack::cli::run(&haversack::cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.exit_code();
            if code != 0 {
                haversack::output::say("error", &error);
            }
            ExitCode::from(code)
        }
    }
}
