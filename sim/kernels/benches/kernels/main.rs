//! How fast the kernels run on this machine, compared with the limits of its memory and with other code:
//! `cargo bench -p haversack-kernels [--features peers] [-- [NAME] [--format json] [--list]]`.

mod bench;

use std::process::ExitCode;

fn main() -> ExitCode {
    match bench::run(std::env::args().skip(1).filter(|word| word != "--bench")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
