//! Writing to standard output and standard error.

use std::io::{self, Write as _};

use crate::Exit;

/// Prints to standard output. A reader that has gone away is not an error of ours.
pub(crate) fn print(text: &str) -> Exit {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("standard output: {error}"));
            Exit::Failure
        }
        _ => Exit::Fine,
    }
}

/// Says on standard error what went wrong.
pub(crate) fn complain(text: &str) {
    // There is nowhere left to say that this fails.
    let _ = writeln!(io::stderr().lock(), "pydeno: {text}");
}
