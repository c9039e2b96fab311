//! Arbitrary texts, values and messages.

#![allow(dead_code, reason = "every test binary uses its own part")]

use proptest::collection::vec;
use proptest::prelude::*;
use pydeno_wire::message::{
    Binding, ConsoleLevel, ErrorDetails, ExitStatus, Failure, Frame, HostError, HostMessage, JsError,
    Language, LayerReport, Limits, Place, Ready, SandboxMode, SandboxReport, Start, StreamRequest,
    WasmExport, WasmExportKind, WasmImport, WasmModule, WasmNumber, WorkerMessage, ZygoteReply,
    ZygoteRequest,
};
use pydeno_wire::{BigInt, Function, MAX_DATE_MILLISECONDS, Stream, StreamOwner, Text, Value};

/// Code units of which many are surrogates, paired or not.
pub(crate) fn units() -> impl Strategy<Value = Vec<u16>> {
    let unit = prop_oneof![0x20..0x7F_u16, any::<u16>(), 0xD800..0xDC00_u16, 0xDC00..0xE000_u16];
    vec(unit, 0..80)
}

pub(crate) fn text() -> impl Strategy<Value = Text> {
    prop_oneof![
        3 => "[a-c]{0,3}".prop_map(Text::from),
        1 => any::<String>().prop_map(Text::from),
        1 => units().prop_map(|units| Text::from_utf16(&units)),
    ]
}

pub(crate) fn number() -> impl Strategy<Value = f64> {
    let edges = [0.0, -0.0, 1.0, 23.0, 24.0, -24.0, -25.0, 255.0, 256.0, 65_535.0, 65_536.0]
        .into_iter()
        .chain([4_294_967_295.0, 4_294_967_296.0, 9_007_199_254_740_991.0, -9_007_199_254_740_991.0])
        .chain([9_007_199_254_740_992.0, -9_007_199_254_740_992.0, 1e300, 5e-324, 0.5])
        .chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
        .collect::<Vec<_>>();
    prop_oneof![
        prop::sample::select(edges),
        any::<u64>().prop_map(f64::from_bits),
        any::<i32>().prop_map(f64::from)
    ]
}

pub(crate) fn big_int() -> impl Strategy<Value = BigInt> {
    (any::<bool>(), vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..20))
        .prop_map(|(negative, magnitude)| BigInt::new(negative, magnitude))
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        big_int().prop_map(Value::BigInt),
        text().prop_map(Value::String),
        vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        (-MAX_DATE_MILLISECONDS..=MAX_DATE_MILLISECONDS).prop_map(Value::Date),
        (any::<u64>(), text()).prop_map(|(handle, name)| Value::Function(Function { handle, name })),
        (any::<u64>(), any::<bool>()).prop_map(|(handle, is_guests)| {
            let owner = if is_guests { StreamOwner::Guest } else { StreamOwner::Host };
            Value::Stream(Stream { handle, owner })
        }),
    ]
}

/// Values of every kind, up to five deep.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Value::Array),
            vec(inner.clone(), 0..8).prop_map(Value::Set),
            vec((text(), inner.clone()), 0..12).prop_map(object),
            vec((inner.clone(), inner), 0..8).prop_map(Value::Map),
        ]
    })
}

/// An object of those entries whose key no earlier one has.
fn object(entries: Vec<(Text, Value)>) -> Value {
    let mut kept: Vec<(Text, Value)> = Vec::new();
    for (key, value) in entries {
        if kept.iter().all(|(earlier, _)| *earlier != key) {
            kept.push((key, value));
        }
    }
    Value::Object(kept)
}

fn wasm_module() -> impl Strategy<Value = WasmModule> {
    let number =
        prop::sample::select(vec![WasmNumber::I32, WasmNumber::I64, WasmNumber::F32, WasmNumber::F64]);
    let import = (text(), text(), prop::option::of(number.clone()))
        .prop_map(|(module, name, result)| WasmImport { module, name, result });
    let kind = prop_oneof![
        vec(number, 0..4).prop_map(WasmExportKind::Function),
        Just(WasmExportKind::Memory),
        Just(WasmExportKind::Constant),
    ];
    let export = (text(), kind).prop_map(|(name, kind)| WasmExport { name, kind });
    (text(), vec(any::<u8>(), 0..40), vec(import, 0..4), vec(export, 0..4))
        .prop_map(|(name, code, imports, exports)| WasmModule { name, code, imports, exports })
}

pub(crate) fn host_message() -> impl Strategy<Value = HostMessage> {
    let limits = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>()).prop_map(
        |(max_heap_bytes, max_value_bytes, max_value_nodes, max_value_depth, console)| Limits {
            max_heap_bytes,
            max_value_bytes,
            max_value_nodes,
            max_value_depth,
            console,
        },
    );
    let options =
        (prop::option::of(any::<i64>()), prop::option::of(any::<u64>()), any::<bool>(), any::<bool>());
    let start = (limits, options).prop_map(|(limits, (clock, random_seed, strict_eval, web))| Start {
        limits,
        clock,
        random_seed,
        strict_eval,
        web,
    });
    let place = prop_oneof![
        Just(Place::Global),
        text().prop_map(Place::Object),
        text().prop_map(Place::Module),
        Just(Place::Import),
    ];
    let binding = (any::<u32>(), place, text(), any::<bool>())
        .prop_map(|(function, place, name, asynchronous)| Binding { function, place, name, asynchronous });
    let error = (text(), text()).prop_map(|(name, message)| HostError { name, message });
    prop_oneof![
        start.prop_map(HostMessage::Start),
        vec(binding, 0..5).prop_map(HostMessage::Bind),
        (any::<u64>(), text(), any::<String>(), any::<u64>()).prop_map(|(id, source, name, timeout_ms)| {
            let languages = [Language::JavaScript, Language::TypeScript, Language::PlainJavaScript];
            let language = languages[(id % 3) as usize];
            let redeclare = id % 3 == 0;
            HostMessage::Eval { id, source, name, language, redeclare, timeout_ms }
        }),
        (any::<u64>(), text(), any::<String>(), any::<u64>()).prop_map(|(id, source, name, timeout_ms)| {
            let language = if id % 2 == 0 { Language::JavaScript } else { Language::TypeScript };
            HostMessage::EvalModule { id, source, name, language, timeout_ms }
        }),
        (any::<u64>(), prop_oneof![value().prop_map(Ok), error.prop_map(Err)])
            .prop_map(|(id, outcome)| HostMessage::Answer { id, outcome }),
        any::<bool>().prop_map(HostMessage::Attentive),
        any::<u64>().prop_map(|id| HostMessage::Cancel { id }),
        (any::<u64>(), any::<u64>(), vec(value(), 0..4), any::<u64>(), any::<Option<u64>>()).prop_map(
            |(id, function, arguments, timeout_ms, within)| HostMessage::Invoke {
                id,
                function,
                arguments,
                timeout_ms,
                within
            }
        ),
        (any::<u64>(), wasm_module(), any::<u32>(), any::<u64>()).prop_map(
            |(id, module, first_function, timeout_ms)| HostMessage::LoadWasm {
                id,
                module,
                first_function,
                timeout_ms
            }
        ),
        vec(any::<u64>(), 0..5).prop_map(HostMessage::Release),
        (any::<u64>(), any::<u64>(), any::<bool>(), any::<u64>()).prop_map(
            |(id, stream, ends, timeout_ms)| {
                let what = if ends { StreamRequest::Return } else { StreamRequest::Next };
                HostMessage::Pull { id, stream, what, timeout_ms }
            }
        ),
    ]
}

fn report() -> impl Strategy<Value = SandboxReport> {
    let layer = (any::<String>(), any::<bool>(), any::<String>(), any::<String>())
        .prop_map(|(name, applied, detail, fix)| LayerReport { name, applied, detail, fix });
    vec(layer, 0..4).prop_map(|layers| SandboxReport { layers })
}

/// One that leads to no other.
fn lone_js_error() -> impl Strategy<Value = JsError> {
    let details = (prop::option::of(small_value()), vec((text(), small_value()), 0..3))
        .prop_map(|(value, properties)| ErrorDetails { value, properties, ..ErrorDetails::default() });
    (plain_js_error(), prop::option::of(details.prop_map(Box::new)))
        .prop_map(|(error, details)| JsError { details, ..error })
}

fn js_error() -> impl Strategy<Value = JsError> {
    lone_js_error().prop_recursive(3, 8, 3, |inner| {
        let property = (text(), small_value());
        let details = (
            prop::option::of(small_value()),
            vec(property, 0..3),
            prop::option::of(inner.clone()),
            vec(inner, 0..3),
        )
            .prop_map(|(value, properties, cause, errors)| ErrorDetails {
                value,
                properties,
                cause,
                errors,
            });
        (plain_js_error(), details)
            .prop_map(|(error, details)| JsError { details: Some(Box::new(details)), ..error })
    })
}

/// Errors carry no functions.
fn small_value() -> impl Strategy<Value = Value> {
    scalar().prop_map(|value| match value {
        Value::Function(function) => Value::Array(vec![Value::String(function.name)]),
        Value::Stream(_) => Value::Null,
        other => other,
    })
}

fn plain_js_error() -> impl Strategy<Value = JsError> {
    let frame = (text(), text(), any::<u32>(), any::<u32>())
        .prop_map(|(function, file, line, column)| Frame { function, file, line, column });
    (text(), text(), text(), vec(frame, 0..4)).prop_map(|(name, message, stack, frames)| JsError {
        name,
        message,
        stack,
        frames,
        details: None,
    })
}

fn failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        js_error().prop_map(Failure::Js),
        Just(Failure::Timeout),
        Just(Failure::HeapLimit),
        Just(Failure::Cancelled),
        (any::<String>(), any::<String>()).prop_map(|(path, reason)| Failure::Conversion { path, reason }),
        Just(Failure::NeverSettles),
        Just(Failure::CannotWait),
        Just(Failure::UnknownFunction),
        Just(Failure::StreamEnded),
    ]
}

pub(crate) fn worker_message() -> impl Strategy<Value = WorkerMessage> {
    let level = prop::sample::select(vec![
        ConsoleLevel::Debug,
        ConsoleLevel::Log,
        ConsoleLevel::Info,
        ConsoleLevel::Warn,
        ConsoleLevel::Error,
    ]);
    prop_oneof![
        (any::<String>(), any::<String>(), report())
            .prop_map(|(build, engine, sandbox)| WorkerMessage::Ready(Ready { build, engine, sandbox })),
        report().prop_map(WorkerMessage::Refused),
        (any::<u64>(), any::<u64>(), any::<u32>(), vec(value(), 0..4)).prop_map(
            |(id, request, function, arguments)| WorkerMessage::Call { id, request, function, arguments }
        ),
        any::<u64>().prop_map(|taken| WorkerMessage::Waiting { taken }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(lines, bytes)| WorkerMessage::ConsoleDropped { lines, bytes }),
        (level, text()).prop_map(|(level, text)| WorkerMessage::Console { level, text }),
        (
            any::<u64>(),
            prop_oneof![value().prop_map(Ok), failure().prop_map(Err)],
            vec(lone_js_error(), 0..3)
        )
            .prop_map(|(id, outcome, unhandled)| WorkerMessage::Done { id, outcome, unhandled }),
    ]
}

pub(crate) fn zygote_request() -> impl Strategy<Value = ZygoteRequest> {
    let mode = prop::sample::select(vec![SandboxMode::Require, SandboxMode::Auto, SandboxMode::Off]);
    prop_oneof![
        (mode.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(sandbox, empty_root, web)| ZygoteRequest::Spawn { sandbox, empty_root, web }),
        (mode, any::<bool>())
            .prop_map(|(sandbox, empty_root)| ZygoteRequest::BecomeTemplate { sandbox, empty_root }),
        any::<i32>().prop_map(|pid| ZygoteRequest::Collect { pid }),
    ]
}

pub(crate) fn zygote_reply() -> impl Strategy<Value = ZygoteReply> {
    let status = prop_oneof![
        any::<i32>().prop_map(ExitStatus::Code),
        any::<i32>().prop_map(ExitStatus::Signal),
        Just(ExitStatus::Unknown),
    ];
    prop_oneof![
        (any::<String>(), any::<String>())
            .prop_map(|(build, engine)| ZygoteReply::Listening { build, engine }),
        any::<String>().prop_map(|reason| ZygoteReply::EngineUnavailable { reason }),
        any::<i32>().prop_map(|pid| ZygoteReply::Spawned { pid }),
        any::<String>().prop_map(|reason| ZygoteReply::SpawnFailed { reason }),
        Just(ZygoteReply::TemplateReady),
        (any::<i32>(), status).prop_map(|(pid, status)| ZygoteReply::Exited { pid, status }),
    ]
}
