//! Every raw call into JavaScriptCore, and the only place of this crate with `unsafe`.
//!
//! What the rest of the crate sees is safe: [`Context`] owns an engine, [`Local`] is a value of it, [`Kept`] a value
//! that outlives the stack frame, [`EngineString`] a string, [`NativeFunction`] a Rust closure that the guest can
//! call, [`Watchdog`] the engine's timer.
//!
//! Three rules make it sound, and each `SAFETY` comment names the one it stands on:
//!
//! - **The table.** A [`Table`] is filled from a library that is never unloaded, with the signatures of its headers,
//!   so a pointer in it is a function of that type for ever.
//! - **One thread.** `Context` is neither `Send` nor `Sync`, and everything else borrows or shares one. So every call
//!   for an engine is made on the thread that made it.
//! - **The stack.** The collector scans the stack and registers of that thread and never moves an object. A `Local`
//!   is `Copy`, lives in local variables and arguments only, and is therefore seen. What must live in the heap is a
//!   `Kept`.

#![allow(unsafe_code, reason = "the raw calls of the crate live here, each in a safe wrapper")]

mod context;
mod function;
mod library;
mod local;
mod mark;
mod process;
mod promise;
mod stack;
pub(crate) mod start;
mod string;
mod table;
mod value;
mod watchdog;

pub(crate) use context::{Context, ParsedScript, ScriptError, Thrown};
pub(crate) use function::NativeFunction;
pub(crate) use library::Library;
pub(crate) use local::{Kept, Kind, Local};
pub(crate) use mark::Mark;
pub(crate) use process::{KeptSignals, fill_random, retire_alternate_stack};
pub(crate) use promise::Deferred;
pub(crate) use stack::StackRoom;
pub(crate) use string::EngineString;
pub(crate) use table::{MissingSymbol, Table};
pub(crate) use watchdog::{Interrupt, Lent, PERIOD, Watchdog};
