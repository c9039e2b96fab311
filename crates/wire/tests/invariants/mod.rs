//! What holds of the decoders whatever the bytes.

use std::fmt::Debug;

use pydeno_wire::codec::Message;
use pydeno_wire::message::{HostMessage, WorkerMessage, ZygoteReply, ZygoteRequest};
use pydeno_wire::{Budget, Value};

/// Large enough for whatever a fuzzer makes, small enough to be passed by what it claims.
const BUDGET: Budget = Budget { bytes: 1 << 16, nodes: 1 << 12, depth: 64 };

/// No decoder panics, and what one accepts has been written in the one way that its encoder would.
///
/// # Panics
///
/// Where that is not so.
#[allow(dead_code, unreachable_pub, reason = "the fuzz target includes this file as its own module")]
pub fn hold(bytes: &[u8]) {
    if let Ok(value) = Value::decode(bytes, &BUDGET) {
        let mut again = Vec::new();
        value.encode(&mut again, &BUDGET).expect("what was decoded can be encoded");
        assert_eq!(again, bytes);
    }
    message::<WorkerMessage>(bytes);
    message::<HostMessage>(bytes);
    message::<ZygoteRequest>(bytes);
    message::<ZygoteReply>(bytes);
}

fn message<M: Message + Debug>(bytes: &[u8]) {
    let taken = M::take([b"before".as_slice(), bytes].concat(), "before".len(), &BUDGET);
    assert_eq!(format!("{taken:?}"), format!("{:?}", M::decode(bytes, &BUDGET)));
    if let Ok(message) = M::decode(bytes, &BUDGET) {
        let mut again = Vec::new();
        message.encode(&mut again, &BUDGET).expect("what was decoded can be encoded");
        assert_eq!(again, bytes);
        assert!(bytes.len() <= M::max_encoded_bytes(&BUDGET), "its frame would not have been taken");
    }
}
