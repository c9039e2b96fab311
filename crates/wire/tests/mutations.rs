//! Encodings with something wrong about them are refused, or are the one encoding of something else.

mod invariants;
mod strategies;

use proptest::collection::vec;
use proptest::prelude::*;
use pydeno_wire::Budget;
use pydeno_wire::codec::Message;

/// Where, and what to do there: replace a byte, take some out, or put some in.
type Mutation = (prop::sample::Index, u8, u8, Vec<u8>);

fn mutate(mut bytes: Vec<u8>, mutations: Vec<Mutation>) -> Vec<u8> {
    for (index, kind, byte, inserted) in mutations {
        if bytes.is_empty() {
            return inserted;
        }
        let at = index.index(bytes.len());
        match kind % 4 {
            0 => bytes[at] = byte,
            1 => bytes[at] ^= 1 << (byte % 8),
            2 => drop(bytes.drain(at..bytes.len().min(at + 1 + usize::from(byte % 4)))),
            _ => drop(bytes.splice(at..at, inserted)),
        }
    }
    bytes
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let heads = prop::sample::select(vec![
        0x00, 0x20, 0x43, 0x63, 0x81, 0xA1, 0xC2, 0xD9, 0xF6, 0xFB, 0x1B, 0x9B, 0xFF,
    ]);
    let inserted = vec(prop_oneof![heads, any::<u8>()], 0..6);
    vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>(), inserted), 0..4)
}

fn encoded<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes, &Budget::default()).expect("it is within the budget");
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_mutated_value_is_refused_or_canonical(value in strategies::value(), mutations in mutations()) {
        let mut bytes = Vec::new();
        value.encode(&mut bytes, &Budget::default()).expect("it is within the budget");
        invariants::hold(&mutate(bytes, mutations));
    }

    #[test]
    fn a_mutated_message_is_refused_or_canonical(
        worker in strategies::worker_message(), host in strategies::host_message(), mutations in mutations()
    ) {
        invariants::hold(&mutate(encoded(&worker), mutations.clone()));
        invariants::hold(&mutate(encoded(&host), mutations));
    }

    #[test]
    fn any_bytes_are_refused_or_canonical(bytes in vec(any::<u8>(), 0..64)) {
        invariants::hold(&bytes);
    }
}
