//! A peer's messages are claims: whatever is not exactly a message is refused.

mod strategies;

use proptest::prelude::*;
use pydeno_wire::codec::bounds;
use pydeno_wire::message::{
    Binding, ConsoleLevel, Failure, Frame, HostError, HostMessage, JsError, LayerReport, Ready,
    SandboxReport, WorkerMessage, ZygoteReply, ZygoteRequest,
};
use pydeno_wire::{Budget, DecodeError, EncodeError, Message, Text, Value};

fn encoded<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes, &Budget::default()).unwrap();
    bytes
}

fn decoded<M: Message>(bytes: &[u8]) -> Result<M, DecodeError> {
    M::decode(bytes, &Budget::default())
}

/// Survives, has one encoding, and loses no byte at its end without being refused.
fn survives<M: Message + std::fmt::Debug>(message: &M) -> Result<(), TestCaseError> {
    let bytes = encoded(message);
    let again: M = decoded(&bytes).unwrap();
    prop_assert_eq!(format!("{again:?}"), format!("{message:?}"));
    prop_assert_eq!(encoded(&again), bytes.clone());
    for length in 0..bytes.len() {
        prop_assert!(decoded::<M>(&bytes[..length]).is_err(), "cut at {}", length);
    }
    let longer = [bytes.as_slice(), &[0xF6]].concat();
    let expected = DecodeError::TrailingBytes { offset: bytes.len(), count: 1 };
    prop_assert_eq!(decoded::<M>(&longer).err(), Some(expected));
    Ok(())
}

/// With one byte changed, is refused or is the one encoding of another message.
fn change_is_noticed<M: Message>(
    message: &M,
    place: prop::sample::Index,
    byte: u8,
) -> Result<(), TestCaseError> {
    let mut bytes = encoded(message);
    let place = place.index(bytes.len());
    bytes[place] = byte;
    if let Ok(other) = decoded::<M>(&bytes) {
        prop_assert_eq!(encoded(&other), bytes);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_host_message_survives(message in strategies::host_message()) {
        survives(&message)?;
    }

    #[test]
    fn a_worker_message_survives(message in strategies::worker_message()) {
        survives(&message)?;
    }

    #[test]
    fn a_zygotes_request_and_reply_survive(
        request in strategies::zygote_request(), reply in strategies::zygote_reply()
    ) {
        survives(&request)?;
        survives(&reply)?;
    }

    #[test]
    fn a_changed_message_is_refused_or_another(
        host in strategies::host_message(),
        worker in strategies::worker_message(),
        request in strategies::zygote_request(),
        reply in strategies::zygote_reply(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        change_is_noticed(&host, place, byte)?;
        change_is_noticed(&worker, place, byte)?;
        change_is_noticed(&request, place, byte)?;
        change_is_noticed(&reply, place, byte)?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        let _ = decoded::<HostMessage>(&bytes);
        let _ = decoded::<WorkerMessage>(&bytes);
        let _ = decoded::<ZygoteRequest>(&bytes);
        let _ = decoded::<ZygoteReply>(&bytes);
    }
}

#[test]
fn a_message_of_another_number_or_with_other_fields_is_refused() {
    for (bytes, number, fields) in [
        ([0x81, 0x07].as_slice(), 7, 0),
        (&[0x82, 0x18, 0x63, 0x00], 99, 1),
        (&[0x83, 0x04, 0x00, 0x00], 4, 2), // `Cancel` with a field too many
        (&[0x81, 0x04], 4, 0),             // and without its own
    ] {
        let error = decoded::<HostMessage>(bytes).unwrap_err();
        let expected = DecodeError::UnknownRecord { offset: 0, expected: "host message", number, fields };
        assert_eq!(error, expected);
    }
    for bytes in
        [[0x80].as_slice(), &[0x00], &[0x82, 0x61, b'a', 0x00], &[0x82, 0x20, 0x00], &[0xA1, 0x04, 0x00]]
    {
        let error = decoded::<HostMessage>(bytes).unwrap_err();
        assert!(matches!(error, DecodeError::Unexpected { .. }), "{bytes:x?}: {error}");
    }
}

#[test]
fn a_choice_that_does_not_exist_is_refused() {
    let line = encoded(&WorkerMessage::Console { level: ConsoleLevel::Error, text: Text::default() });
    assert_eq!(line, [0x83, 3, 4, 0x60]);
    let expected = DecodeError::UnknownRecord { offset: 2, expected: "console level", number: 5, fields: 0 };
    assert_eq!(decoded::<WorkerMessage>(&[0x83, 3, 5, 0x60]), Err(expected));
    assert!(decoded::<ZygoteRequest>(&[0x83, 0, 3, 0xF4]).is_err());
    assert!(decoded::<ZygoteRequest>(&[0x83, 0, 0, 0xF6]).is_err());
}

#[test]
fn integers_outside_their_fields_range_are_refused() {
    let largest = [0x82, 1, 0x1A, 0x7F, 0xFF, 0xFF, 0xFF];
    assert_eq!(decoded(&largest), Ok(ZygoteRequest::Collect { pid: i32::MAX }));
    let smallest = [0x82, 1, 0x3A, 0x7F, 0xFF, 0xFF, 0xFF];
    assert_eq!(decoded(&smallest), Ok(ZygoteRequest::Collect { pid: i32::MIN }));
    for major in [0x1A, 0x3A] {
        let beyond = [0x82, 1, major, 0x80, 0, 0, 0];
        assert_eq!(decoded::<ZygoteRequest>(&beyond), Err(DecodeError::IntegerOutOfRange { offset: 2 }));
    }
    let call = [0x85, 2, 1, 7, 0x1B, 0, 0, 0, 1, 0, 0, 0, 0, 0x80];
    assert_eq!(decoded::<WorkerMessage>(&call), Err(DecodeError::IntegerOutOfRange { offset: 4 }));
}

#[test]
fn a_name_that_must_be_utf8_cannot_hold_a_surrogate() {
    let mut bytes = vec![0x82, 1];
    bytes.extend(b"\xd9\x01\x11\x43\xed\xa0\x80");
    assert_eq!(decoded::<ZygoteReply>(&bytes), Err(DecodeError::InvalidText { offset: 2 }));
}

#[test]
fn a_list_that_claims_more_than_there_is_is_refused_at_once() {
    let bind = [0x82, 1, 0x99, 0x0F, 0xFF];
    let error = DecodeError::TooFewBytes { offset: 2, claimed: 4095, available: 0 };
    assert_eq!(decoded::<HostMessage>(&bind), Err(error));
    let call = [0x85, 2, 1, 7, 1, 0x9A, 0x00, 0x10, 0x00, 0x00];
    let error = DecodeError::TooFewBytes { offset: 5, claimed: 1 << 20, available: 0 };
    assert_eq!(decoded::<WorkerMessage>(&call), Err(error));
}

fn binding(name: &str) -> Binding {
    Binding { function: 0, object: None, name: name.into(), asynchronous: false }
}

fn script(source_bytes: usize, name_bytes: usize) -> HostMessage {
    HostMessage::Eval {
        id: 0,
        source: "s".repeat(source_bytes).into(),
        name: "n".repeat(name_bytes),
        timeout_ms: 0,
    }
}

#[test]
fn a_field_at_its_bound_passes_and_one_beyond_is_refused_by_both_ends() {
    for (within, beyond, field, limit) in [
        (
            script(bounds::SOURCE_BYTES, 0),
            script(bounds::SOURCE_BYTES + 1, 0),
            "the source",
            bounds::SOURCE_BYTES,
        ),
        (
            script(0, bounds::NAME_BYTES),
            script(0, bounds::NAME_BYTES + 1),
            "the script's name",
            bounds::NAME_BYTES,
        ),
        (
            HostMessage::Bind(vec![binding("f"); bounds::BINDINGS]),
            HostMessage::Bind(vec![binding("f"); bounds::BINDINGS + 1]),
            "the bindings",
            bounds::BINDINGS,
        ),
        (
            HostMessage::Bind(vec![binding(&"f".repeat(bounds::BINDING_NAME_BYTES))]),
            HostMessage::Bind(vec![binding(&"f".repeat(bounds::BINDING_NAME_BYTES + 1))]),
            "a function's name",
            bounds::BINDING_NAME_BYTES,
        ),
    ] {
        let bytes = encoded(&within);
        assert_eq!(decoded(&bytes), Ok(within));

        let mut out = vec![9];
        let error = beyond.encode(&mut out, &Budget::default()).unwrap_err();
        assert_eq!(error, EncodeError::FieldTooLong { field, length: limit + 1, limit });
        assert_eq!(out, [9]);
    }
    // What an encoder of this crate refuses, written by hand.
    let head = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
    let long = [&[0x85, 2, 0, 0x60, 0x79], &head(bounds::NAME_BYTES + 1)[2..], &vec![b'n'; 5000]].concat();
    let limit = bounds::NAME_BYTES;
    let error = DecodeError::FieldTooLong { field: "the script's name", length: limit as u64 + 1, limit };
    assert_eq!(decoded::<HostMessage>(&long), Err(error));
    let many = [&[0x82, 1, 0x99], &head(bounds::BINDINGS + 1)[2..]].concat();
    let limit = bounds::BINDINGS;
    let error = DecodeError::FieldTooLong { field: "the bindings", length: limit as u64 + 1, limit };
    assert_eq!(decoded::<HostMessage>(&many), Err(error));
}

/// The largest texts and lists that a guest can bring about, all of them beyond their bounds.
fn exhausting_error() -> JsError {
    let text = |bytes: usize| Text::from("x".repeat(bytes * 2));
    let frame = |line| Frame {
        function: text(bounds::FRAME_NAME_BYTES),
        file: text(bounds::FRAME_NAME_BYTES),
        line,
        column: u32::MAX,
    };
    JsError {
        name: text(bounds::ERROR_NAME_BYTES),
        message: text(bounds::ERROR_TEXT_BYTES),
        stack: text(bounds::ERROR_TEXT_BYTES),
        frames: (1..=300).map(frame).collect(),
    }
}

#[test]
fn an_error_of_any_size_is_cut_and_not_lost() {
    let done =
        WorkerMessage::Done { id: 1, outcome: Err(Failure::Js(exhausting_error())), unhandled: vec![] };
    let Ok(WorkerMessage::Done { outcome: Err(Failure::Js(cut)), .. }) = decoded(&encoded(&done)) else {
        panic!("an error must arrive as one");
    };
    assert_eq!(cut.name.len_bytes(), bounds::ERROR_NAME_BYTES);
    assert_eq!(cut.message.len_bytes(), bounds::ERROR_TEXT_BYTES);
    assert!(cut.message.as_str().unwrap().ends_with("xx…"));
    assert_eq!(cut.stack.len_bytes(), bounds::ERROR_TEXT_BYTES);
    assert_eq!(cut.frames.len(), bounds::FRAMES);
    assert_eq!(cut.frames[0].line, 1, "the innermost frames are kept");
    assert_eq!(cut.frames[0].file.len_bytes(), bounds::FRAME_NAME_BYTES);
}

#[test]
fn no_message_is_longer_than_its_kinds_maximum() {
    let budget = Budget { bytes: 0, nodes: 1, depth: 0 };
    let fits = |length: usize, max: usize| assert!(length <= max, "{length} bytes, at most {max} expected");

    let name = "n".repeat(bounds::NAME_BYTES);
    let sentence = "s".repeat(bounds::SENTENCE_BYTES);
    let layer =
        LayerReport { name: name.clone(), applied: true, detail: sentence.clone(), fix: sentence.clone() };
    let sandbox = SandboxReport { layers: vec![layer; bounds::LAYERS] };
    for message in [
        WorkerMessage::Ready(Ready { build: name.clone(), engine: name.clone(), sandbox }),
        WorkerMessage::Console { level: ConsoleLevel::Log, text: "c".repeat(bounds::CONSOLE_BYTES).into() },
        WorkerMessage::Done {
            id: u64::MAX,
            outcome: Err(Failure::Js(exhausting_error())),
            unhandled: vec![exhausting_error(); 2 * bounds::UNHANDLED],
        },
    ] {
        fits(encoded(&message).len(), WorkerMessage::max_encoded_bytes(&budget));
    }

    let longest = Text::from("b".repeat(bounds::BINDING_NAME_BYTES));
    let binding =
        Binding { function: u32::MAX, object: Some(longest.clone()), name: longest, asynchronous: true };
    let error = HostError {
        name: "e".repeat(bounds::ERROR_NAME_BYTES).into(),
        message: "e".repeat(bounds::ERROR_TEXT_BYTES).into(),
    };
    for message in [
        HostMessage::Bind(vec![binding; bounds::BINDINGS]),
        HostMessage::Release(vec![u64::MAX; bounds::RELEASED]),
        script(bounds::SOURCE_BYTES, bounds::NAME_BYTES),
        HostMessage::Answer { id: u64::MAX, outcome: Err(error) },
    ] {
        fits(encoded(&message).len(), HostMessage::max_encoded_bytes(&budget));
    }

    for message in [
        ZygoteReply::Listening { build: name.clone(), engine: name },
        ZygoteReply::SpawnFailed { reason: sentence },
    ] {
        fits(encoded(&message).len(), ZygoteReply::max_encoded_bytes(&budget));
    }
    let request = encoded(&ZygoteRequest::Collect { pid: i32::MIN });
    fits(request.len(), ZygoteRequest::max_encoded_bytes(&budget));

    let value = Value::Bytes(vec![0; 100 << 20]);
    let mut bytes = Vec::new();
    let roomy = Budget { bytes: 200 << 20, ..Budget::default() };
    value.encode(&mut bytes, &roomy).unwrap();
    let exact = Budget { bytes: bytes.len(), nodes: 1, depth: 0 };
    bytes.clear();
    HostMessage::Answer { id: u64::MAX, outcome: Ok(value.clone()) }.encode(&mut bytes, &exact).unwrap();
    fits(bytes.len(), HostMessage::max_encoded_bytes(&exact));
    bytes.clear();
    let call =
        WorkerMessage::Call { id: u64::MAX, request: u64::MAX, function: u32::MAX, arguments: vec![value] };
    call.encode(&mut bytes, &exact).unwrap();
    fits(bytes.len(), WorkerMessage::max_encoded_bytes(&exact));
}
