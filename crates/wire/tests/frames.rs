//! Frames come out of a stream whole and in order, and a peer cannot make the reader hold much for little.

use proptest::prelude::*;
use pydeno_wire::frame::{FrameReader, FrameTooLong, encode_frame};
use pydeno_wire::message::{HostMessage, WorkerMessage};
use pydeno_wire::{Budget, EncodeError, Message, Value};

fn framed(payload: &[u8]) -> Vec<u8> {
    [&u32::try_from(payload.len()).unwrap().to_le_bytes(), payload].concat()
}

fn header(length: u32) -> [u8; 4] {
    length.to_le_bytes()
}

/// How many bytes can arrive before the reader has to make room again.
fn room(reader: &mut FrameReader, min: usize) -> usize {
    reader.receive(min, |buffer| buffer.capacity() - buffer.len())
}

#[test]
fn a_message_is_framed_after_what_is_there() {
    let mut bytes = vec![0xAA];
    encode_frame(&mut bytes, &HostMessage::Cancel { id: 5 }, &Budget::default()).unwrap();
    assert_eq!(bytes, [0xAA, 3, 0, 0, 0, 0x82, 4, 5]);
}

#[test]
fn a_message_that_cannot_be_encoded_leaves_no_part_of_a_frame() {
    let mut bytes = vec![0xAA];
    let done = WorkerMessage::Done { id: 5, outcome: Ok(Value::Bytes(vec![0; 100])), unhandled: vec![] };
    let error = encode_frame(&mut bytes, &done, &Budget { bytes: 99, ..Budget::default() }).unwrap_err();
    assert!(matches!(error, EncodeError::Bytes { limit: 99, .. }));
    assert_eq!(bytes, [0xAA]);
}

#[test]
fn a_frame_as_long_as_the_limit_passes_and_a_longer_one_is_refused_by_its_length_alone() {
    let mut reader = FrameReader::new(5);
    reader.feed(&framed(b"12345"));
    assert_eq!(reader.next_frame(), Ok(Some(b"12345".as_slice())));
    reader.feed(&header(6));
    assert_eq!(reader.next_frame(), Err(FrameTooLong { length: 6, limit: 5 }));
    assert_eq!(reader.next_frame(), Err(FrameTooLong { length: 6, limit: 5 }), "and stays refused");

    let mut reader = FrameReader::new(1 << 20);
    reader.feed(&header(u32::MAX));
    assert!(reader.next_frame().is_err());
    assert!(room(&mut reader, 1) <= FrameReader::INITIAL_BYTES);
}

#[test]
fn a_large_frame_that_ends_the_buffer_comes_with_it() {
    let mut reader = FrameReader::new(1 << 20);
    let large = vec![7; FrameReader::IDLE_BYTES + 1];
    let bytes = [framed(b"small"), framed(&large)].concat();
    reader.feed(&bytes[..bytes.len() - 1]);
    assert_eq!(reader.take_large_frame(), Ok(None), "it comes after a small one");
    assert_eq!(reader.next_frame(), Ok(Some(b"small".as_slice())));
    assert_eq!(reader.take_large_frame(), Ok(None), "it is not complete");
    reader.feed(&bytes[bytes.len() - 1..]);
    let (buffer, start) = reader.take_large_frame().unwrap().expect("it is complete");
    assert_eq!(buffer[start..], large);
    assert_eq!(reader.pending(), 0);
    reader.feed(&framed(b"next"));
    assert_eq!(reader.next_frame(), Ok(Some(b"next".as_slice())));
}

#[test]
fn a_frame_that_is_small_or_has_another_after_it_does_not_take_the_buffer() {
    let mut reader = FrameReader::new(1 << 20);
    reader.feed(&framed(&vec![7; FrameReader::IDLE_BYTES]));
    assert_eq!(reader.take_large_frame(), Ok(None));
    assert_eq!(reader.next_frame().unwrap().map(<[u8]>::len), Some(FrameReader::IDLE_BYTES));
    reader.feed(&[framed(&vec![7; FrameReader::IDLE_BYTES + 1]), header(1).to_vec()].concat());
    assert_eq!(reader.take_large_frame(), Ok(None));
    assert_eq!(reader.next_frame().unwrap().map(<[u8]>::len), Some(FrameReader::IDLE_BYTES + 1));
    reader.feed(b"!");
    assert_eq!(reader.next_frame(), Ok(Some(b"!".as_slice())));
    reader.feed(&header((1 << 20) + 1));
    assert!(reader.take_large_frame().is_err(), "more than the limit is announced");
}

#[test]
fn an_empty_frame_is_a_frame() {
    let mut reader = FrameReader::new(0);
    reader.feed(&[header(0), header(0)].concat());
    assert_eq!(reader.next_frame(), Ok(Some([].as_slice())));
    assert_eq!(reader.next_frame(), Ok(Some([].as_slice())));
    assert_eq!(reader.next_frame(), Ok(None));
}

#[test]
fn a_frame_that_was_cut_off_is_pending() {
    let mut reader = FrameReader::new(100);
    assert_eq!(reader.pending(), 0);
    reader.feed(&framed(b"abc")[..6]);
    assert_eq!(reader.next_frame(), Ok(None));
    assert_eq!(reader.pending(), 6);
    reader.feed(b"c");
    assert!(reader.next_frame().unwrap().is_some());
    assert_eq!(reader.pending(), 0);
}

#[test]
fn there_is_always_room_and_as_much_as_asked_for() {
    let mut reader = FrameReader::new(100);
    assert!(room(&mut reader, 0) > 0);
    assert!(room(&mut reader, 1 << 20) >= 1 << 20);
}

#[test]
fn a_frame_below_the_trusted_size_arrives_in_one_piece() {
    let mut reader = FrameReader::new(1 << 20);
    reader.receive(4096, |buffer| buffer.extend_from_slice(&header(1 << 20)));
    assert_eq!(reader.next_frame(), Ok(None));
    assert_eq!(room(&mut reader, 1), 1 << 20);
}

#[test]
fn a_frame_that_fits_is_not_moved() {
    let mut reader = FrameReader::new(FrameReader::INITIAL_BYTES);
    let second = framed(&[2; 5000]);
    reader.feed(&[framed(&[1; 5000]).as_slice(), &second[..10]].concat());
    let first = reader.next_frame().unwrap().unwrap().as_ptr_range();
    reader.feed(&second[10..]);
    let payload = reader.next_frame().unwrap().unwrap();
    assert_eq!(payload, [2; 5000]);
    assert_eq!(payload.as_ptr(), first.end.wrapping_add(4), "right behind the first and its own header");
}

#[test]
fn an_announcement_alone_takes_no_more_than_the_trusted_size() {
    let mut reader = FrameReader::new(u32::MAX as usize);
    reader.feed(&header(u32::MAX));
    let mut received = 4;
    for _ in 0..20 {
        assert_eq!(reader.next_frame(), Ok(None));
        let spare = room(&mut reader, 1);
        assert!(
            received + spare <= FrameReader::TRUSTED_BYTES.max(2 * received),
            "{spare} spare after {received}"
        );
        let arriving = spare.min(500_000);
        reader.feed(&vec![0; arriving]);
        received += arriving;
    }
}

#[test]
fn the_memory_of_a_huge_frame_is_given_back() {
    let huge = vec![7; 20 << 20];
    let mut reader = FrameReader::new(huge.len());
    reader.feed(&framed(&huge));
    assert_eq!(reader.next_frame().unwrap().unwrap(), huge);
    assert!(room(&mut reader, 1) <= FrameReader::IDLE_BYTES);

    reader.feed(&[framed(&huge), framed(b"next")[..5].to_vec()].concat());
    assert_eq!(reader.next_frame().unwrap().unwrap(), huge);
    assert!(room(&mut reader, 1) <= FrameReader::IDLE_BYTES, "also when the next has begun");
    reader.feed(b"ext");
    assert_eq!(reader.next_frame(), Ok(Some(b"next".as_slice())));
}

#[test]
#[should_panic(expected = "bytes that had been received were taken away")]
fn taking_away_what_was_received_is_a_bug_of_the_caller() {
    let mut reader = FrameReader::new(100);
    reader.feed(b"abc");
    reader.receive(1, Vec::clear);
}

#[test]
fn a_message_goes_through_a_stream_of_single_bytes() {
    let budget = Budget::default();
    let messages =
        [HostMessage::Cancel { id: 1 }, HostMessage::Answer { id: 2, outcome: Ok(Value::from("x")) }];
    let mut stream = Vec::new();
    for message in &messages {
        encode_frame(&mut stream, message, &budget).unwrap();
    }
    let mut reader = FrameReader::new(HostMessage::max_encoded_bytes(&budget));
    let mut read = Vec::new();
    for byte in stream {
        reader.feed(&[byte]);
        while let Some(payload) = reader.next_frame().unwrap() {
            read.push(HostMessage::decode(payload, &budget).unwrap());
        }
    }
    assert_eq!(read, messages);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
        lengths in prop::collection::vec(prop_oneof![0..50_usize, 0..30_000_usize, 60_000..200_000_usize], 0..8),
        cuts in prop::collection::vec(prop_oneof![1..10_usize, 1..100_000_usize], 1..20),
    ) {
        let payloads: Vec<Vec<u8>> =
            lengths.iter().zip(1_u8..).map(|(&length, seed)| (0..length).map(|at| seed ^ at as u8).collect()).collect();
        let stream: Vec<u8> = payloads.iter().flat_map(|payload| framed(payload)).collect();
        let mut reader = FrameReader::new(200_000);
        let mut read = Vec::new();
        let mut rest = stream.as_slice();
        let mut cuts = cuts.into_iter().cycle();
        while !rest.is_empty() {
            let count = cuts.next().unwrap().min(room(&mut reader, 1)).min(rest.len());
            reader.feed(&rest[..count]);
            rest = &rest[count..];
            while let Some(payload) = reader.next_frame().unwrap() {
                read.push(payload.to_vec());
            }
        }
        prop_assert_eq!(read, payloads);
        prop_assert_eq!(reader.pending(), 0);
    }
}
