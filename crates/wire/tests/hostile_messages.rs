//! A peer's messages are claims: whatever is not exactly a message is refused.

mod strategies;

use proptest::prelude::*;
use pydeno_wire::codec::bounds;
use pydeno_wire::message::{
    Binding, ConsoleLevel, Failure, Frame, HostError, HostMessage, JsError, Language, LayerReport, Place,
    Ready, SandboxReport, WasmExport, WasmExportKind, WasmImport, WasmModule, WasmNumber, WorkerMessage,
    ZygoteReply, ZygoteRequest,
};
use pydeno_wire::{Budget, DecodeError, EncodeError, Function, Message, Text, Value};

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
    let taken = M::take([b"before".as_slice(), &bytes].concat(), "before".len(), &Budget::default());
    prop_assert_eq!(format!("{:?}", taken), format!("{:?}", Ok::<_, DecodeError>(again)));
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
    Binding { function: 0, place: Place::Global, name: name.into(), asynchronous: false }
}

fn script(source_bytes: usize, name_bytes: usize) -> HostMessage {
    HostMessage::Eval {
        id: 0,
        source: "s".repeat(source_bytes).into(),
        name: "n".repeat(name_bytes),
        language: Language::JavaScript,
        redeclare: false,
        timeout_ms: 0,
    }
}

/// A module with so much of each: bytes, imports, exports, parameters of each of them.
fn wasm(bytes: usize, imports: usize, exports: usize, parameters: usize) -> HostMessage {
    let name = Text::from("w".repeat(bounds::WASM_NAME_BYTES));
    let import = WasmImport { module: name.clone(), name: name.clone(), result: Some(WasmNumber::F64) };
    let kind = WasmExportKind::Function(vec![WasmNumber::F64; parameters]);
    HostMessage::LoadWasm {
        id: u64::MAX,
        module: WasmModule {
            name: name.clone(),
            code: vec![0; bytes],
            imports: vec![import; imports],
            exports: vec![WasmExport { name, kind }; exports],
        },
        first_function: u32::MAX,
        timeout_ms: u64::MAX,
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
        (
            wasm(bounds::WASM_BYTES, 0, 0, 0),
            wasm(bounds::WASM_BYTES + 1, 0, 0, 0),
            "the module",
            bounds::WASM_BYTES,
        ),
        (
            wasm(0, bounds::WASM_ENTRIES, 0, 0),
            wasm(0, bounds::WASM_ENTRIES + 1, 0, 0),
            "the imports",
            bounds::WASM_ENTRIES,
        ),
        (
            wasm(0, 0, bounds::WASM_ENTRIES, 0),
            wasm(0, 0, bounds::WASM_ENTRIES + 1, 0),
            "the exports",
            bounds::WASM_ENTRIES,
        ),
        (
            wasm(0, 0, 1, bounds::WASM_PARAMETERS),
            wasm(0, 0, 1, bounds::WASM_PARAMETERS + 1),
            "the parameters",
            bounds::WASM_PARAMETERS,
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
    let long = [&[0x87, 2, 0, 0x60, 0x79], &head(bounds::NAME_BYTES + 1)[2..], &vec![b'n'; 5000]].concat();
    let limit = bounds::NAME_BYTES;
    let error = DecodeError::FieldTooLong { field: "the script's name", length: limit as u64 + 1, limit };
    assert_eq!(decoded::<HostMessage>(&long), Err(error));
    let many = [&[0x82, 1, 0x99], &head(bounds::BINDINGS + 1)[2..]].concat();
    let limit = bounds::BINDINGS;
    let error = DecodeError::FieldTooLong { field: "the bindings", length: limit as u64 + 1, limit };
    assert_eq!(decoded::<HostMessage>(&many), Err(error));
    let module = [&[0x88, 9, 0, 0x60, 0x5A], &head(bounds::WASM_BYTES + 1)[..]].concat();
    let limit = bounds::WASM_BYTES;
    let error = DecodeError::FieldTooLong { field: "the module", length: limit as u64 + 1, limit };
    assert_eq!(decoded::<HostMessage>(&module), Err(error));
}

#[test]
fn a_webassembly_module_with_something_that_there_is_not_is_refused() {
    let message = |rest: &[u8]| [&[0x88, 9, 0, 0x60, 0x40], rest].concat();
    for (rest, expected, offset, number, fields) in [
        // An import of another kind, a result that is no number, an export of another kind, and a memory with parameters.
        (&[0x81, 0x83, 2, 0x60, 0x60][..], "import", 6, 2, 2),
        (&[0x81, 0x84, 1, 0x60, 0x60, 4], "WebAssembly number", 10, 4, 0),
        (&[0x80, 0x81, 0x82, 3, 0x60], "export", 7, 3, 1),
        (&[0x80, 0x81, 0x83, 1, 0x60, 0x80], "export", 7, 1, 2),
    ] {
        let error = DecodeError::UnknownRecord { offset, expected, number, fields };
        assert_eq!(decoded::<HostMessage>(&message(rest)), Err(error));
    }
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
        details: None,
    }
}

/// The same with as much around it as a guest can arrange: a chain of causes, and aggregates in aggregates.
fn exhausting_tree(depth: usize) -> JsError {
    exhausting_details(exhausting_error(), depth)
}

/// As [`exhausting_error`], for one that another leads to.
fn exhausting_relative() -> JsError {
    let text = |bytes: usize| Text::from("x".repeat(bytes + 9));
    let name = text(bounds::RELATED_NAME_BYTES);
    let frame = Frame { function: name.clone(), file: name.clone(), line: 1, column: u32::MAX };
    JsError {
        name,
        message: text(bounds::RELATED_TEXT_BYTES),
        stack: text(bounds::RELATED_TEXT_BYTES),
        frames: vec![frame; bounds::RELATED_FRAMES + 1],
        details: None,
    }
}

fn exhausting_details(mut error: JsError, depth: usize) -> JsError {
    let name =
        |index: usize| Text::from(format!("{index:0>width$}", width = bounds::ERROR_PROPERTY_NAME_BYTES));
    let details = error.details_mut();
    details.properties = (0..=bounds::ERROR_PROPERTIES).map(|index| (name(index), Value::Null)).collect();
    if depth > 0 {
        details.cause = Some(exhausting_details(exhausting_relative(), depth - 1));
        details.errors = vec![exhausting_details(exhausting_relative(), 0); bounds::AGGREGATED + 1];
    }
    error
}

fn errors_in(error: &JsError) -> usize {
    let details = error.details.iter();
    1 + details.flat_map(|details| details.cause.iter().chain(&details.errors)).map(errors_in).sum::<usize>()
}

fn depth_of(error: &JsError) -> usize {
    let details = error.details.iter();
    let related = details.flat_map(|details| details.cause.iter().chain(&details.errors));
    related.map(|error| 1 + depth_of(error)).max().unwrap_or(0)
}

fn through_the_wire(error: JsError, budget: &Budget) -> JsError {
    let done = WorkerMessage::Done { id: 1, outcome: Err(Failure::Js(error)), unhandled: vec![] };
    let mut bytes = Vec::new();
    done.encode(&mut bytes, budget).unwrap();
    match WorkerMessage::decode(&bytes, budget) {
        Ok(WorkerMessage::Done { outcome: Err(Failure::Js(error)), .. }) => error,
        other => panic!("an error must arrive as one: {other:?}"),
    }
}

#[test]
fn a_tree_of_errors_of_any_size_is_cut_and_not_lost() {
    let cut = through_the_wire(exhausting_tree(2), &Budget::default());
    assert_eq!(errors_in(&cut), 1 + bounds::RELATED_ERRORS);
    let details = cut.details.unwrap();
    assert_eq!(details.properties.len(), bounds::ERROR_PROPERTIES);
    let cause = details.cause.unwrap();
    assert_eq!(cause.details.as_ref().unwrap().errors.len(), bounds::AGGREGATED);
    assert_eq!(cause.message.len_bytes(), bounds::RELATED_TEXT_BYTES);
    assert_eq!(cause.name.len_bytes(), bounds::RELATED_NAME_BYTES);
    assert_eq!(cause.frames.len(), bounds::RELATED_FRAMES);
    assert_eq!(cause.frames[0].file.len_bytes(), bounds::RELATED_NAME_BYTES);

    let chain = (0..20).fold(JsError::default(), |cause, _| {
        let mut error = JsError::default();
        error.details_mut().cause = Some(cause);
        error
    });
    assert_eq!(depth_of(&through_the_wire(chain, &Budget::default())), bounds::ERROR_DEPTH);
}

#[test]
fn an_unhandled_rejection_is_cut_to_a_short_one() {
    let budget = Budget::default();
    let unhandled = vec![exhausting_tree(1); bounds::UNHANDLED + 1];
    let done = WorkerMessage::Done { id: 1, outcome: Ok(Value::Null), unhandled };
    let Ok(WorkerMessage::Done { unhandled, .. }) = WorkerMessage::decode(&encoded(&done), &budget) else {
        panic!("it must arrive");
    };
    assert_eq!(unhandled.len(), bounds::UNHANDLED);
    assert_eq!(errors_in(&unhandled[0]), 1);
    assert_eq!(unhandled[0].message.len_bytes(), bounds::RELATED_TEXT_BYTES);
    assert_eq!(unhandled[0].frames.len(), bounds::RELATED_FRAMES);
}

#[test]
fn what_an_error_carries_is_left_out_where_the_budget_ends() {
    let mut error = JsError { message: "m".into(), ..JsError::default() };
    let details = error.details_mut();
    details.value = Some(Value::Bytes(vec![0; 1000]));
    details.properties = vec![
        ("large".into(), Value::Bytes(vec![0; 1000])),
        ("deep".into(), Value::Array(vec![Value::Array(vec![])])),
        ("small".into(), Value::Number(1.0)),
        ("f".into(), Value::Array(vec![Value::Function(Function { handle: 1, name: "f".into() })])),
        ("n".repeat(bounds::ERROR_PROPERTY_NAME_BYTES + 1).into(), Value::Null),
    ];
    let arrived = through_the_wire(error, &Budget { bytes: 100, nodes: 10, depth: 1 });
    let details = arrived.details.unwrap();
    assert_eq!(arrived.message, "m");
    assert_eq!((details.value, details.properties), (None, vec![("small".into(), Value::Number(1.0))]));
}

#[test]
fn a_dishonest_tree_of_errors_is_refused() {
    // An error whose details are the value that comes next, without properties, and the rest that is given.
    let error = |related: &[u8]| [&[0x86, 1, 0x60, 0x60, 0x60, 0x80, 0x85, 1], related].concat();
    let done = |error: &[u8]| [&[0x84, 4, 7], error, &[0x80]].concat();
    let refused = |related: &[u8]| decoded::<WorkerMessage>(&done(&error(related))).unwrap_err();
    assert!(decoded::<WorkerMessage>(&done(&error(&[0x80, 0x80, 0x80, 0x80]))).is_ok());

    let function = [0x81, 0xd8, 0x27, 0x82, 0x03, 0x61, 0x67, 0x80, 0x80, 0x80];
    assert!(matches!(
        refused(&function),
        DecodeError::Unexpected { expected: "a value without functions", .. }
    ));
    let two_causes =
        [&[0x80, 0x80, 0x82][..], &[0x85, 1, 0x60, 0x60, 0x60, 0x80].repeat(2), &[0x80]].concat();
    assert!(matches!(refused(&two_causes), DecodeError::FieldTooLong { field: "the cause", .. }));
    let plain = [0x85, 1, 0x60, 0x60, 0x60, 0x80];
    let many = [&[0x80, 0x80, 0x80, 0x91][..], &plain.repeat(17)].concat();
    assert!(matches!(refused(&many), DecodeError::FieldTooLong { field: "the errors of an aggregate", .. }));
    // One more cause than the depth allows.
    let chain = |length: usize| {
        (0..length)
            .fold(plain.to_vec(), |cause, _| error(&[&[0x80, 0x80, 0x81][..], &cause, &[0x80]].concat()))
    };
    assert!(decoded::<WorkerMessage>(&done(&chain(bounds::ERROR_DEPTH))).is_ok());
    assert!(decoded::<WorkerMessage>(&done(&chain(bounds::ERROR_DEPTH + 1))).is_err());
    // Three aggregates within the bound of each, and beyond that of all.
    let aggregate = |errors: &[u8]| error(&[&[0x80, 0x80, 0x80][..], errors].concat());
    let full = aggregate(&[&[0x90][..], &plain.repeat(16)].concat());
    let within = aggregate(&[&[0x81][..], &full].concat());
    let beyond = aggregate(&[&[0x83][..], &full.repeat(3)].concat());
    assert!(decoded::<WorkerMessage>(&done(&within)).is_ok());
    assert!(decoded::<WorkerMessage>(&done(&beyond)).is_err());
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
            outcome: Err(Failure::Js(exhausting_tree(2))),
            unhandled: vec![exhausting_tree(2); bounds::UNHANDLED + 1],
        },
    ] {
        fits(encoded(&message).len(), WorkerMessage::max_encoded_bytes(&budget));
    }

    let longest = Text::from("b".repeat(bounds::BINDING_NAME_BYTES));
    let binding = Binding {
        function: u32::MAX,
        place: Place::Object(longest.clone()),
        name: longest,
        asynchronous: true,
    };
    let error = HostError {
        name: "e".repeat(bounds::ERROR_NAME_BYTES).into(),
        message: "e".repeat(bounds::ERROR_TEXT_BYTES).into(),
    };
    for message in [
        HostMessage::Bind(vec![binding; bounds::BINDINGS]),
        HostMessage::Release(vec![u64::MAX; bounds::RELEASED]),
        script(bounds::SOURCE_BYTES, bounds::NAME_BYTES),
        wasm(bounds::WASM_BYTES, bounds::WASM_ENTRIES, bounds::WASM_ENTRIES, bounds::WASM_PARAMETERS),
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
