//! How fast the kernels run on this machine, beside what its memory allows and what others' code does:
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
