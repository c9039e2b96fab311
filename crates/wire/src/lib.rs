//! What host, worker and zygote say to each other, and how it looks in bytes.
//!
//! Neither end trusts the bytes it reads: a worker runs code that nobody has vetted, so everything it sends is a
//! claim. This crate turns values and messages into bytes and back, and refuses what is not exactly right. It
//! does no I/O, calls no engine, knows no Python, has no `unsafe` and no dependency.
//!
//! # Terms
//!
//! - A **[`Value`]** is JavaScript data outside any engine. Its strings are **[`Text`]**s, which keep lone
//!   surrogates.
//! - A **message** ([`message`]) is one step of a conversation: a [`HostMessage`](message::HostMessage), a
//!   [`WorkerMessage`](message::WorkerMessage), and the zygote's two. All of them are [`Message`]s.
//! - The **encoding** of either is CBOR (RFC 8949), in exactly one form for each value ([`codec`]).
//! - A **[`Budget`]** bounds one value: bytes of its encoding, nodes, depth. Sender and receiver both enforce it.
//! - A **frame** ([`frame`]) is a message's encoding with its length in front, as it travels on the socket.
//! - A **[`Path`]** says where in a value something stands: `$.items[3].x`.
//!
//! # Example
//!
//! ```
//! use pydeno_wire::frame::{FrameReader, encode_frame};
//! use pydeno_wire::message::HostMessage;
//! use pydeno_wire::{Budget, Message, Value};
//!
//! let budget = Budget::default();
//! let answer = HostMessage::Answer { id: 7, outcome: Ok(Value::from("42")) };
//! let mut bytes = Vec::new();
//! encode_frame(&mut bytes, &answer, &budget).unwrap();
//!
//! let mut reader = FrameReader::new(HostMessage::max_encoded_bytes(&budget));
//! reader.feed(&bytes);
//! let payload = reader.next_frame().unwrap().expect("the frame is complete");
//! assert_eq!(HostMessage::decode(payload, &budget).unwrap(), answer);
//! ```
//!
//! # What it does not do
//!
//! It does not check the order of a conversation, match ids or start anything: that is the host's and the
//! worker's. It does not compress, encrypt or authenticate: the socket has two ends and no address.

#![forbid(unsafe_code)]

pub mod attention;
mod budget;
pub mod codec;
pub mod frame;
pub mod message;
mod path;
mod text;
mod value;

pub use budget::Budget;
pub use codec::{DecodeError, EncodeError, Message};
pub use path::{Path, Segment};
pub use text::{InvalidWtf8, Text};
pub use value::{BigInt, Function, MAX_DATE_MILLISECONDS, MAX_SAFE_INTEGER, Stream, StreamOwner, Value};
