//! A decoder holds no more than the bytes and the budget allow, whatever the bytes claim.

mod counting_allocator;

use counting_allocator::{CountingAllocator, peak_of};
use proptest::prelude::*;
use pydeno_wire::message::WorkerMessage;
use pydeno_wire::{Budget, Message, Value};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The most that decoding holds for each byte: an object's entry takes two bytes and is a key and a value; a set
/// of the keys with room to spare, and the stack of open containers, stand beside it.
const HELD_PER_BYTE: usize = 256;

/// What the decoder holds for any input, such as its first stack.
const HELD_ANYWAY: usize = 4096;

fn peak_of_decoding(bytes: &[u8]) -> usize {
    peak_of(|| Value::decode(bytes, &Budget { depth: u32::MAX, ..Budget::default() }))
}

fn is_bounded(bytes: &[u8]) -> bool {
    peak_of_decoding(bytes) <= HELD_ANYWAY + HELD_PER_BYTE * bytes.len()
}

/// Ten bytes of zeros inside nested containers that each claim a million items.
fn nested_claims(opening: &[u8]) -> Vec<u8> {
    [opening.repeat(100), vec![0; 10]].concat()
}

#[test]
fn a_huge_claim_takes_no_memory() {
    for claim in [
        b"\x9b\x00\x00\x00\xff\xff\xff\xff\xff".as_slice(),
        b"\x5b\x00\x00\x00\xff\xff\xff\xff\xff",
        b"\x7b\x00\x00\x00\xff\xff\xff\xff\xff",
        b"\xbb\x00\x00\x00\xff\xff\xff\xff\xff",
        b"\xd9\x01\x02\x9a\x00\x10\x00\x00",
        b"\xd9\x01\x03\xba\x00\x10\x00\x00",
        &nested_claims(b"\x9a\x00\x10\x00\x00"),
        &nested_claims(b"\xba\x00\x10\x00\x00\x60"),
    ] {
        assert!(is_bounded(claim), "{} bytes held for {}", peak_of_decoding(claim), claim.len());
    }
}

/// Claims that are each within the bytes that are left, but not all of them together.
#[test]
fn claims_inside_claims_are_counted_together() {
    let bytes = [b"\x99\x80\x00".repeat(900), vec![0; 0x8000]].concat();
    assert!(is_bounded(&bytes), "{} bytes held for {}", peak_of_decoding(&bytes), bytes.len());
}

#[test]
fn a_claim_over_the_budget_of_nodes_takes_no_memory() {
    let bytes = [b"\x9a\x00\x10\x00\x00".as_slice(), &vec![0; 1 << 20]].concat();
    let few_nodes = Budget { nodes: 1000, ..Budget::default() };
    assert!(peak_of(|| Value::decode(&bytes, &few_nodes)) <= HELD_ANYWAY);
}

#[test]
fn the_most_expensive_values_stay_within_the_bound() {
    let large_object: Vec<u8> = [b"\xb9\x40\x00".to_vec()]
        .into_iter()
        .chain((0..0x4000_u16).map(|index| {
            let low = (index & 0x7F) as u8;
            vec![0x62, (index >> 7) as u8, low, 0xF6]
        }))
        .flatten()
        .collect();
    let small_objects = [b"\x99\x80\x00".as_slice(), &b"\xa1\x60\xf6".repeat(0x8000)].concat();
    let deep = [vec![0x81; Budget::MAX_DEPTH as usize], vec![0xF6]].concat();
    for bytes in [large_object, small_objects, deep] {
        assert!(Value::decode(&bytes, &Budget { depth: u32::MAX, ..Budget::default() }).is_ok());
        assert!(is_bounded(&bytes), "{} bytes held for {}", peak_of_decoding(&bytes), bytes.len());
    }
}

#[test]
fn bytes_are_copied_once() {
    let bytes = [b"\x5a\x00\x10\x00\x00".as_slice(), &vec![7; 1 << 20]].concat();
    let held = peak_of_decoding(&bytes);
    assert!((1 << 20..(1 << 20) + HELD_ANYWAY).contains(&held), "{held} bytes held");
}

fn done_with(value: Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let done = WorkerMessage::Done { id: 1, outcome: Ok(value), unhandled: vec![] };
    done.encode(&mut bytes, &Budget::default()).unwrap();
    bytes
}

#[test]
fn bytes_that_are_most_of_a_message_are_not_copied() {
    let buffer = done_with(Value::Bytes(vec![7; 1 << 20]));
    let held = peak_of(|| WorkerMessage::take(buffer, 0, &Budget::default()));
    assert!(held <= HELD_ANYWAY, "{held} bytes held");
}

#[test]
fn bytes_in_a_container_are() {
    let buffer = done_with(Value::Array(vec![Value::Bytes(vec![7; 1 << 20])]));
    let held = peak_of(|| WorkerMessage::take(buffer, 0, &Budget::default()));
    assert!(held >= 1 << 20, "{held} bytes held");
}

#[test]
fn the_measurement_notices_a_decoder_that_believes_a_claim() {
    let believing = |bytes: &[u8]| Vec::<Value>::with_capacity(usize::from(bytes[1]) << 16);
    assert!(peak_of(|| believing(b"\x9a\x10\x00\x00\x00")) > HELD_ANYWAY + 5 * HELD_PER_BYTE);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_take_more_than_their_share(
        bytes in prop::collection::vec(
            prop_oneof![
                prop::sample::select(b"\x98\x99\x9a\x9b\xb8\xb9\xba\xbb\x58\x5a\x78\x7a\x60\x61\x00\xd9\x01\x02\x03\x82\xa1".to_vec()),
                any::<u8>(),
            ],
            0..200,
        )
    ) {
        prop_assert!(is_bounded(&bytes), "{} bytes held for {}", peak_of_decoding(&bytes), bytes.len());
    }
}
