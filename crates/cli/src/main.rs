//! `pydeno`: untrusted JavaScript from the command line.

mod arguments;
mod check;
mod doctor;
mod evaluate;
mod json;
mod terminal;
mod worker_binary;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};

/// How the command ends; the numbers are part of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// A value was printed, or the help.
    Fine = 0,
    /// The script threw or did not parse, or a check found an error.
    JavaScriptError = 1,
    /// The command line, or the input, cannot be used.
    Usage = 2,
    /// The script did not end in time.
    Timeout = 3,
    /// The sandbox is not complete, or there is no engine.
    NotAvailable = 4,
    /// Anything else.
    Failure = 5,
    /// The value has no JSON form.
    NoJson = 6,
}

fn main() -> ExitCode {
    let exit = match Arguments::parse(lexopt::Parser::from_env()) {
        Ok(Arguments { command: Command::Help, .. }) => terminal::print(arguments::HELP),
        Ok(Arguments { command: Command::Version, .. }) => {
            terminal::print(concat!("pydeno ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        Ok(Arguments { command: Command::Doctor, output, .. }) => doctor::run(output),
        Ok(Arguments { command: Command::Check(checks), .. }) => check::run(&checks),
        Ok(Arguments { command: Command::Evaluate(input), options, output }) => {
            evaluate::run(&input, options, output)
        }
        Err(error) => {
            terminal::complain(&format!("{error}\nTry `pydeno --help`."));
            Exit::Usage
        }
    };
    ExitCode::from(exit as u8)
}
