//! The wire schema, pinned: a change here is a change of the protocol between builds.

use pydeno_wire::message::{
    Binding, ConsoleLevel, ErrorDetails, ExitStatus, Failure, Frame, HostError, HostMessage, JsError,
    Language, LayerReport, Limits, Place, Ready, SandboxMode, SandboxReport, Start, StreamRequest,
    WasmExport, WasmExportKind, WasmImport, WasmModule, WasmNumber, WorkerMessage, ZygoteReply,
    ZygoteRequest,
};
use pydeno_wire::{Budget, Function, Message, Stream, StreamOwner, Value};

/// Compares each message's encoding, parts of which may be set apart by blanks, and reads it back.
fn pinned<M: Message + PartialEq + std::fmt::Debug>(table: impl IntoIterator<Item = (M, &'static str)>) {
    for (message, expected) in table {
        let mut bytes = Vec::new();
        message.encode(&mut bytes, &Budget::default()).unwrap();
        let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_eq!(hex, expected.replace(' ', ""), "{message:?}");
        assert_eq!(M::decode(&bytes, &Budget::default()), Ok(message));
    }
}

#[test]
fn host_messages_look_like_this() {
    let limits = Limits {
        max_heap_bytes: 1 << 30,
        max_value_bytes: 65_536,
        max_value_nodes: 1000,
        max_value_depth: 100,
        console: true,
    };
    let plain = Start { limits, clock: None, random_seed: None, strict_eval: false, web: false };
    let repeatable = Start { limits, clock: Some(-1), random_seed: Some(13), strict_eval: true, web: true };
    let bindings = vec![
        Binding { function: 0, place: Place::Global, name: "f".into(), asynchronous: false },
        Binding { function: 1, place: Place::Object("o".into()), name: "g".into(), asynchronous: true },
        Binding { function: 2, place: Place::Module("m".into()), name: "h".into(), asynchronous: false },
        Binding { function: 3, place: Place::Import, name: "i".into(), asynchronous: true },
    ];
    let eval = HostMessage::Eval {
        id: 7,
        source: "1+1".into(),
        name: "a.js".into(),
        language: Language::TypeScript,
        redeclare: true,
        timeout_ms: 1000,
    };
    let module = HostMessage::EvalModule {
        id: 8,
        source: "1".into(),
        name: "m".into(),
        language: Language::JavaScript,
        timeout_ms: 1000,
    };
    let wasm = WasmModule {
        name: "w".into(),
        code: b"\0asm".to_vec(),
        imports: vec![
            WasmImport { module: "e".into(), name: "f".into(), result: None },
            WasmImport { module: "e".into(), name: "g".into(), result: Some(WasmNumber::I64) },
        ],
        exports: vec![
            WasmExport {
                name: "h".into(),
                kind: WasmExportKind::Function(vec![WasmNumber::I32, WasmNumber::F32, WasmNumber::F64]),
            },
            WasmExport { name: "m".into(), kind: WasmExportKind::Memory },
            WasmExport { name: "c".into(), kind: WasmExportKind::Constant },
        ],
    };
    let invoke = |within| HostMessage::Invoke {
        id: 9,
        function: 3,
        arguments: vec![Value::Null],
        timeout_ms: 1000,
        within,
    };
    let pull = |what| HostMessage::Pull { id: 9, stream: 3, what, timeout_ms: 1000 };
    let stream = Value::Stream(Stream { handle: 4, owner: StreamOwner::Host });
    let error = HostError { name: "Error".into(), message: "no".into() };
    pinned([
        (HostMessage::Start(plain), "8a 00 1a40000000 1a00010000 1903e8 1864 f5 f6 f6 f4 f4"),
        (HostMessage::Start(repeatable), "8a 00 1a40000000 1a00010000 1903e8 1864 f5 20 0d f5 f5"),
        (
            HostMessage::Bind(bindings),
            "82 01 84 84 00 8100 6166 f4 84 01 8201616f 6167 f5 84 02 8202616d 6168 f4 84 03 8103 6169 f5",
        ),
        (eval, "87 02 07 63312b31 64612e6a73 01 f5 1903e8"),
        (module, "86 07 08 6131 616d 00 1903e8"),
        (
            HostMessage::LoadWasm { id: 8, module: wasm, first_function: 4, timeout_ms: 1000 },
            "88 09 08 6177 440061736d 82 83006165 6166 84016165 6167 01 \
             83 83006168 83000203 8201616d 82026163 04 1903e8",
        ),
        (HostMessage::Answer { id: 8, outcome: Ok(Value::Null) }, "83 03 08 82 00 f6"),
        (HostMessage::Answer { id: 8, outcome: Err(error) }, "83 03 08 83 01 654572726f72 626e6f"),
        (HostMessage::Cancel { id: u64::MAX }, "82 04 1bffffffffffffffff"),
        (HostMessage::Attentive(true), "82 0a f5"),
        (invoke(None), "86 05 09 03 81 f6 1903e8 f6"),
        (invoke(Some(7)), "86 05 09 03 81 f6 1903e8 07"),
        (HostMessage::Release(vec![3, 24]), "82 06 82 03 1818"),
        (pull(StreamRequest::Next), "85 08 09 03 00 1903e8"),
        (pull(StreamRequest::Return), "85 08 09 03 01 1903e8"),
        (HostMessage::Answer { id: 8, outcome: Ok(stream) }, "83 03 08 82 00 d827 82 04 01"),
    ]);
}

#[test]
fn worker_messages_look_like_this() {
    let layers = vec![
        LayerReport { name: "a".into(), applied: true, detail: "d".into(), fix: String::new() },
        LayerReport { name: "b".into(), applied: false, detail: "d".into(), fix: "f".into() },
    ];
    let sandbox = SandboxReport { layers };
    let ready = Ready { build: "1".into(), engine: "e".into(), sandbox: sandbox.clone() };
    let arguments = vec![Value::Number(1.0), Value::Undefined];
    let console = |level| WorkerMessage::Console { level, text: "t".into() };
    let done = |outcome| WorkerMessage::Done { id: 7, outcome, unhandled: vec![] };
    let error = JsError {
        name: "E".into(),
        message: "m".into(),
        stack: "s".into(),
        frames: vec![Frame { function: "f".into(), file: "a".into(), line: 1, column: 2 }],
        details: None,
    };
    let inner = JsError { message: "i".into(), ..JsError::default() };
    let details = ErrorDetails {
        value: Some(Value::Number(1.0)),
        properties: vec![("p".into(), Value::Null)],
        cause: Some(inner.clone()),
        errors: vec![inner.clone(), inner],
    };
    let detailed = JsError { details: Some(Box::new(details)), ..JsError::default() };
    let stray = WorkerMessage::Done { id: 7, outcome: Ok(Value::Null), unhandled: vec![error.clone()] };
    let function = Value::Function(Function { handle: 3, name: "g".into() });
    let stream = Value::Stream(Stream { handle: 3, owner: StreamOwner::Guest });
    let conversion = Failure::Conversion { path: "$".into(), reason: "r".into() };
    pinned([
        (WorkerMessage::Ready(ready), "84 00 6131 6165 82 84 01 6161 6164 60 84 00 6162 6164 6166"),
        (WorkerMessage::Refused(sandbox), "82 01 82 84 01 6161 6164 60 84 00 6162 6164 6166"),
        (WorkerMessage::Call { id: 1, request: 7, function: 2, arguments }, "85 02 01 07 02 82 01 f7"),
        (console(ConsoleLevel::Debug), "83 03 00 6174"),
        (console(ConsoleLevel::Log), "83 03 01 6174"),
        (console(ConsoleLevel::Info), "83 03 02 6174"),
        (console(ConsoleLevel::Warn), "83 03 03 6174"),
        (console(ConsoleLevel::Error), "83 03 04 6174"),
        (WorkerMessage::Waiting { taken: 2 }, "82 05 02"),
        (WorkerMessage::ConsoleDropped { lines: 3, bytes: 24 }, "83 06 03 1818"),
        (done(Ok(Value::Number(2.0))), "84 04 07 82 00 02 80"),
        (done(Ok(function)), "84 04 07 82 00 d827 82 03 6167 80"),
        (done(Ok(stream)), "84 04 07 82 00 d827 82 03 00 80"),
        (stray, "84 04 07 82 00 f6 81 85 01 6145 616d 6173 81 84 01 02 6166 6161"),
        (done(Err(Failure::Js(error))), "84 04 07 85 01 6145 616d 6173 81 84 01 02 6166 6161 80"),
        (
            done(Err(Failure::Js(detailed))),
            "84 04 07 86 01 60 60 60 80 85 01 81 01 81 83 01 6170 f6 81 85 01 60 6169 60 80 \
             82 85 01 60 6169 60 80 85 01 60 6169 60 80 80",
        ),
        (done(Err(Failure::Timeout)), "84 04 07 81 02 80"),
        (done(Err(Failure::HeapLimit)), "84 04 07 81 03 80"),
        (done(Err(Failure::Cancelled)), "84 04 07 81 04 80"),
        (done(Err(conversion)), "84 04 07 83 05 6124 6172 80"),
        (done(Err(Failure::NeverSettles)), "84 04 07 81 06 80"),
        (done(Err(Failure::CannotWait)), "84 04 07 81 07 80"),
        (done(Err(Failure::UnknownFunction)), "84 04 07 81 08 80"),
        (done(Err(Failure::StreamEnded)), "84 04 07 81 09 80"),
    ]);
}

#[test]
fn the_zygotes_messages_look_like_this() {
    let spawn = |sandbox, empty_root, web| ZygoteRequest::Spawn { sandbox, empty_root, web };
    pinned([
        (spawn(SandboxMode::Require, true, false), "84 00 00 f5 f4"),
        (spawn(SandboxMode::Auto, false, true), "84 00 01 f4 f5"),
        (spawn(SandboxMode::Off, false, false), "84 00 02 f4 f4"),
        (ZygoteRequest::Collect { pid: 300 }, "82 01 19012c"),
        (ZygoteRequest::BecomeTemplate { sandbox: SandboxMode::Auto, empty_root: true }, "83 02 01 f5"),
    ]);
    let exited = |status| ZygoteReply::Exited { pid: 300, status };
    pinned([
        (ZygoteReply::Listening { build: "1".into(), engine: "e".into() }, "83 00 6131 6165"),
        (ZygoteReply::EngineUnavailable { reason: "r".into() }, "82 01 6172"),
        (ZygoteReply::Spawned { pid: 300 }, "82 02 19012c"),
        (ZygoteReply::SpawnFailed { reason: "r".into() }, "82 03 6172"),
        (ZygoteReply::TemplateReady, "81 05"),
        (exited(ExitStatus::Code(-1)), "83 04 19012c 82 00 20"),
        (exited(ExitStatus::Signal(9)), "83 04 19012c 82 01 09"),
        (exited(ExitStatus::Unknown), "83 04 19012c 81 02"),
    ]);
}
