//! `pydeno-worker`: the processes that have to do with guest code, and none of the host's.
//!
//! - `pydeno-worker zygote TIER [webassembly|host-webassembly]` loads the engine, runs no guest code and forks workers for the host at the other end
//!   of its standard input. A fork of it is a *worker*: it confines itself, proves it, and then evaluates what the host
//!   sends. At the host's request it becomes a *template* instead: it confines itself, evaluates a trusted script, and its
//!   forks begin there.
//! - `pydeno-worker probe` confines itself as a worker would, without an engine, reports what it found on its
//!   standard input's socket, and stays until the other end hangs up.
//!
//! It is started by pydeno and is of no use on its own.

mod engine_descriptors;
mod link;
mod probe;
mod process;
mod sandbox_report;
mod start;
mod template;
mod worker;
mod zygote;

use std::process::ExitCode;

use pydeno_engine::WebAssembly;

fn main() -> ExitCode {
    process::hear_of_children();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    process::close_inherited();
    let result = match arguments[..] {
        ["zygote", tier] => zygote::run(tier, WebAssembly::None),
        ["zygote", tier, "host-webassembly"] => zygote::run(tier, WebAssembly::Host),
        ["zygote", tier, "webassembly"] => zygote::run(tier, WebAssembly::Guest),
        ["probe"] => probe::run(),
        ["--version"] => {
            println!("pydeno-worker {}", pydeno_wire::message::BUILD);
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("pydeno-worker is started by pydeno; see `pydeno --help`");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pydeno-worker: {error}");
            ExitCode::FAILURE
        }
    }
}
