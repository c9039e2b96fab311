//! The system's JavaScriptCore, loaded at run time, and the safe [`Isolate`] on top of it.
//!
//! Nothing is linked: the engine is found with the dynamic linker when the first [`Engine::load`] asks for it, so a
//! program that uses this crate starts, and can say what to install, where there is none.
//!
//! # Terms
//!
//! - The **engine** ([`Engine`]) is the library and its functions, one for the process.
//! - An **isolate** ([`Isolate`]) is a heap with one global object and what guest code left there. It belongs to the
//!   thread that made it.
//! - The **guest** is the JavaScript that an isolate evaluates; nothing about it is trusted.
//! - A **host function** is a Rust closure that the guest can call. An **asynchronous** one only starts a **call** and
//!   gives the guest a promise, which [`Isolate::settle`] settles.
//! - A **stream** gives one item after the other when it is asked: an object of the guest that can be iterated
//!   asynchronously, or something of the host that is an async iterator in the guest.
//! - A **request** is an evaluation, the invocation of a function of the guest that was a value, or a stream that is asked. Several may wait for
//!   calls at a time; [`Isolate`] says when each ends.
//! - **Exporting** turns a guest's value into a [`Value`](pydeno_wire::Value), **importing** the other way round.
//!   Neither runs guest code, whatever the guest has done to its built-ins.
//! - The **prelude** is the JavaScript of this crate that runs in an isolate before any guest code and keeps the
//!   built-ins that it needs out of the guest's reach.
//! - A **module** ([`Module`]) has imports and exports. The engine's C interface has none, so the prelude has a **loader**
//!   of them, which asks the host for what is imported ([`Isolate::bind_in`]).
//! - A **WebAssembly** module of the host's stands beside a guest that has no `WebAssembly`
//!   ([`Isolate::begin_load_wasm`]). The guest calls functions of the prelude's around the module's.
//! - **Guest time** passes while guest code runs, not in host functions and not while requests wait for calls.
//! - The **soft deadline** is the end of a request, in guest time, that the engine itself watches, asking between two
//!   instructions of the guest. It stops what runs at the first deadline of all requests; the request on whose behalf
//!   that ran fails with those whose time is up.
//!
//! # Example
//!
//! ```no_run
//! use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions};
//! use pydeno_wire::{Text, Value};
//!
//! let engine = Engine::load()?;
//! let isolate = Isolate::new(engine, &IsolateOptions::default())?;
//! isolate.bind(None, &Text::from("double"), Box::new(|_, arguments| match arguments.first() {
//!     Some(Value::Number(number)) => Ok(Value::Number(number * 2.0)),
//!     _ => Ok(Value::Undefined),
//! }))?;
//! let value = isolate.eval(&Text::from("double(20) + 2"), "sum.js", &EvalLimits::default());
//! assert_eq!(value, Ok(Value::Number(42.0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! It does not confine the process: a guest that breaks the engine owns what the process owns. Nor can it stop what
//! never comes back to an instruction of the guest, an endless chain of promise reactions above all; whoever runs
//! guest code keeps a hard deadline outside the process. It has no network, and timers only on a
//! time of their own that jumps ([`Isolate::install_web`]). Within a host function
//! no promise reactions run, so a request that is begun there cannot wait for a promise, not even a settled one.

mod async_function;
mod class;
mod console;
mod conversion_error;
mod deadline;
mod engine;
mod evaluation;
mod exception;
mod export;
mod ffi;
mod guest_time;
mod heap;
mod held_functions;
mod host_function;
mod import;
mod isolate;
mod json;
mod language;
mod library;
mod modules;
mod pieces;
mod prelude;
mod random;
mod recent_scripts;
mod requests;
mod shape;
mod stream;
mod syntax;
mod tape;
mod tier;
mod unhandled_rejections;
mod web;
mod webassembly;

pub use async_function::AsyncHostFunction;
pub use console::{ConsoleHook, HookTime};
pub use deadline::{EvalLimits, StepLimits};
pub use engine::{Engine, InitialiseError};
pub use evaluation::Script;
pub use host_function::{BindError, HostFunction};
pub use isolate::{Isolate, IsolateError, IsolateOptions, Surface, WebAssembly};
pub use library::EngineUnavailable;
pub use modules::{Bound, Module};
pub use random::RandomSource;
pub use requests::{CallId, Ended, RequestId};
pub use tier::{Features, Tier};
