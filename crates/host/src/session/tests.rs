use super::*;

use crate::session::request::GRACE;

use pydeno_wire::Function;
use pydeno_wire::message::{JsError, LayerReport, WasmExport, WasmExportKind, WasmImport};

mod overlapping;

fn at(milliseconds: u64) -> Nanos {
    Nanos(milliseconds * 1_000_000)
}

fn hear(session: &mut Session, message: &WorkerMessage) {
    let mut bytes = Vec::new();
    encode_frame(&mut bytes, message, &Budget::default()).unwrap();
    session.reader().feed(&bytes);
}

fn said(session: &mut Session) -> Vec<HostMessage> {
    let mut reader = FrameReader::new(1 << 20);
    reader.feed(&std::mem::take(session.output()));
    let mut messages = Vec::new();
    while let Some(payload) = reader.next_frame().unwrap() {
        messages.push(HostMessage::decode(payload, &Budget::default()).unwrap());
    }
    messages
}

fn ready() -> Ready {
    Ready { build: BUILD.to_owned(), engine: "engine".to_owned(), sandbox: SandboxReport::default() }
}

fn configured(options: &Options) -> Session {
    let mut session = Session::new();
    hear(&mut session, &WorkerMessage::Ready(ready()));
    assert_eq!(session.next_event(at(0)), Ok(Some(Event::Ready(ready()))));
    session.configure(options);
    assert!(matches!(said(&mut session)[..], [HostMessage::Start(_)]));
    session
}

fn running(options: &Options) -> (Session, u64) {
    let mut session = configured(options);
    session.bind(&Place::Global, &["f".into()], &[false]).unwrap();
    let id = session.eval(at(0), "f()".into(), "script.js".to_owned(), Language::JavaScript, false).unwrap();
    session.output().clear();
    (session, id)
}

fn call(id: u64) -> WorkerMessage {
    WorkerMessage::Call { id, request: 1, function: 0, arguments: vec![Value::Null] }
}

fn done(request: u64, outcome: Result<Value, Failure>, stopped: Option<Stopping>) -> Event {
    Event::Done(Done { request, outcome, stopped, unhandled: vec![], given_up: vec![] })
}

fn violation(session: &mut Session, message: &WorkerMessage) -> String {
    hear(session, message);
    session.next_event(at(0)).unwrap_err().0
}

#[test]
fn how_its_answers_are_waited_for_is_told_when_it_changes() {
    let mut session = configured(&Options::default());
    session.set_attentive(false);
    assert_eq!(said(&mut session), [], "it begins so");
    session.set_attentive(true);
    session.set_attentive(true);
    assert_eq!(said(&mut session), [HostMessage::Attentive(true)]);
    session.set_attentive(false);
    assert_eq!(said(&mut session), [HostMessage::Attentive(false)]);
}

#[test]
fn an_evaluation_with_a_host_call_goes_through_in_order() {
    let (mut session, id) = running(&Options::default());
    hear(&mut session, &call(1));
    let event = session.next_event(at(1)).unwrap();
    let arguments = vec![Value::Null];
    let expected = Call { id: 1, request: id, function: 0, arguments, asynchronous: false };
    assert_eq!(event, Some(Event::Call(expected)));
    assert!(session.is_blocked());
    session.answer(at(2), 1, Ok(Value::Number(7.0))).unwrap();
    assert_eq!(said(&mut session), [HostMessage::Answer { id: 1, outcome: Ok(Value::Number(7.0)) }]);
    hear(&mut session, &WorkerMessage::Done { id, outcome: Ok(Value::Number(7.0)), unhandled: vec![] });
    let done = done(id, Ok(Value::Number(7.0)), None);
    assert_eq!(session.next_event(at(3)), Ok(Some(done)));
    assert_eq!(session.next_event(at(3)), Ok(None));
}

#[test]
fn what_a_loaded_module_imports_is_called_and_nothing_beyond_it() {
    let import = || WasmImport { module: "env".into(), name: "f".into(), result: None };
    let module =
        WasmModule { name: "lib".into(), code: vec![0], imports: vec![import(), import()], exports: vec![] };
    let call = |id, request, function| WorkerMessage::Call { id, request, function, arguments: vec![] };
    let (mut session, first) = running(&Options::default());
    hear(&mut session, &WorkerMessage::Done { id: first, outcome: Ok(Value::Null), unhandled: vec![] });
    session.next_event(at(0)).unwrap();
    let (id, first_function) = session.load_wasm(at(0), module.clone()).unwrap();
    assert_eq!(first_function, 1, "one was bound before");
    let timeout_ms = 30_000;
    assert_eq!(said(&mut session), [HostMessage::LoadWasm { id, module, first_function, timeout_ms }]);

    hear(&mut session, &call(1, id, 2));
    let event = session.next_event(at(1)).unwrap();
    let expected = Call { id: 1, request: id, function: 2, arguments: vec![], asynchronous: false };
    assert_eq!(event, Some(Event::Call(expected)));
    session.answer(at(2), 1, Ok(Value::Null)).unwrap();
    assert!(violation(&mut session, &call(2, id, 3)).contains("function 3 of 3"));
}

#[test]
fn a_module_has_what_it_exports_and_a_worker_cannot_say_otherwise() {
    let exports = vec![WasmExport { name: "f".into(), kind: WasmExportKind::Function(vec![]) }];
    let module = WasmModule { name: "lib".into(), code: vec![0], imports: vec![], exports };
    let loaded = |value| {
        let mut session = configured(&Options::default());
        let (id, _) = session.load_wasm(at(0), module.clone()).unwrap();
        hear(&mut session, &WorkerMessage::Done { id, outcome: value, unhandled: vec![] });
        session.next_event(at(1))
    };
    let function = Value::Function(Function { handle: 1, name: "f".into() });
    let exports = Value::Object(vec![("f".into(), function.clone())]);
    assert_eq!(loaded(Ok(exports.clone())), Ok(Some(done(1, Ok(exports), None))));
    for claim in [Value::Null, function.clone(), Value::Object(vec![("g".into(), function)])] {
        assert!(loaded(Ok(claim)).unwrap_err().0.contains("exports that the module does not have"));
    }
    assert_eq!(loaded(Err(Failure::Timeout)), Ok(Some(done(1, Err(Failure::Timeout), None))));
}

#[test]
fn a_module_that_is_too_long_for_a_message_leaves_the_session_as_it_was() {
    let (mut session, _) = running(&Options::default());
    let code = vec![0; bounds::WASM_BYTES + 1];
    let module = WasmModule { name: "lib".into(), code, imports: vec![], exports: vec![] };
    let error = session.load_wasm(at(0), module).unwrap_err();
    assert!(matches!(error, EncodeError::FieldTooLong { field: "the module", .. }), "{error}");
    assert_eq!(said(&mut session), []);
    assert_eq!(session.functions.len(), 1);
}

#[test]
fn a_refusal_carries_the_layers_and_ends_the_conversation() {
    let mut session = Session::new();
    let report = SandboxReport {
        layers: vec![LayerReport {
            name: "landlock".into(),
            applied: false,
            detail: "ENOSYS".into(),
            fix: "a kernel".into(),
        }],
    };
    hear(&mut session, &WorkerMessage::Refused(report.clone()));
    assert_eq!(session.next_event(at(0)), Ok(Some(Event::Refused(report))));
    assert!(violation(&mut session, &WorkerMessage::Ready(ready())).contains("over"));
}

#[test]
fn what_does_not_fit_the_state_is_a_violation() {
    let mut session = Session::new();
    assert!(
        violation(&mut session, &call(1)).contains("decode"),
        "no value is taken before there are limits"
    );

    let mut session = Session::new();
    let console = WorkerMessage::Console { level: ConsoleLevel::Log, text: "x".into() };
    assert!(violation(&mut session, &console).contains("report its sandbox"));

    let mut session = configured(&Options::default());
    assert!(violation(&mut session, &call(1)).contains("nothing was asked"));

    let (mut session, id) = running(&Options::default());
    let other = WorkerMessage::Done { id: id + 1, outcome: Ok(Value::Null), unhandled: vec![] };
    assert!(violation(&mut session, &other).contains("does not run"));

    let (mut session, id) = running(&Options::default());
    hear(&mut session, &call(1));
    session.next_event(at(0)).unwrap();
    let early = WorkerMessage::Done { id, outcome: Ok(Value::Null), unhandled: vec![] };
    assert!(violation(&mut session, &early).contains("wait"));

    let (mut session, _) = running(&Options::default());
    assert!(violation(&mut session, &WorkerMessage::Ready(ready())).contains("readiness"));
}

#[test]
fn a_worker_of_another_build_is_not_talked_to() {
    let mut session = Session::new();
    let other = Ready { build: "0.0.0".to_owned(), ..ready() };
    assert!(violation(&mut session, &WorkerMessage::Ready(other)).contains("0.0.0"));
}

#[test]
fn a_call_of_a_function_that_was_never_bound_is_a_violation() {
    let (mut session, _) = running(&Options::default());
    let unknown = WorkerMessage::Call { id: 1, request: 1, function: 1, arguments: Vec::new() };
    assert!(violation(&mut session, &unknown).contains("function 1 of 1"));
}

#[test]
fn call_numbers_only_grow() {
    let (mut session, _) = running(&Options::default());
    hear(&mut session, &call(5));
    session.next_event(at(0)).unwrap();
    session.answer(at(0), 5, Ok(Value::Null)).unwrap();
    assert!(violation(&mut session, &call(5)).contains("call 5 after call 5"));
}

#[test]
fn bytes_that_are_no_message_are_a_violation() {
    let (mut session, _) = running(&Options::default());
    session.reader().feed(&[3, 0, 0, 0, 0xff, 0xff, 0xff]);
    assert!(session.next_event(at(0)).is_err());
}

#[test]
fn a_frame_longer_than_any_value_is_refused_by_its_length_alone() {
    let options = Options { max_value_bytes: 1000, ..Options::default() };
    let (mut session, _) = running(&options);
    session.reader().feed(&u32::MAX.to_le_bytes());
    assert!(session.next_event(at(0)).is_err());
}

#[test]
fn a_value_over_the_budget_is_a_violation_when_the_worker_sends_it() {
    let options = Options { max_value_nodes: 2, ..Options::default() };
    let (mut session, id) = running(&options);
    let outcome = Ok(Value::Array(vec![Value::Null; 5]));
    assert!(
        violation(&mut session, &WorkerMessage::Done { id, outcome, unhandled: vec![] }).contains("decode")
    );
}

#[test]
fn an_answer_over_the_budget_sends_nothing_and_can_be_replaced() {
    let options = Options { max_value_bytes: 100, ..Options::default() };
    let (mut session, _) = running(&options);
    hear(&mut session, &call(1));
    session.next_event(at(0)).unwrap();
    session.answer(at(0), 1, Ok(Value::Bytes(vec![0; 1000]))).unwrap_err();
    assert!(session.output().is_empty());
    session.answer(at(0), 1, Ok(Value::Null)).unwrap();
}

#[test]
fn the_deadline_counts_the_guests_time_and_not_the_hosts() {
    let options = Options {
        timeout: Duration::from_secs(1),
        request_timeout: Duration::from_secs(60),
        ..Options::default()
    };
    let (mut session, _) = running(&options);
    let grace = GRACE.as_millis() as u64;
    assert_eq!(session.deadline(), at(1000 + grace));
    hear(&mut session, &call(1));
    session.next_event(at(400)).unwrap();
    assert_eq!(
        session.deadline(),
        at(60_000 + grace),
        "in a host function only the request's own limit counts"
    );
    session.answer(at(10_000), 1, Ok(Value::Null)).unwrap();
    assert_eq!(session.deadline(), at(10_600 + grace), "600 ms of the guest's second are left");
}

#[test]
fn the_request_timeout_bounds_everything() {
    let options = Options {
        timeout: Duration::from_secs(30),
        request_timeout: Duration::from_secs(2),
        ..Options::default()
    };
    let (mut session, id) = running(&options);
    assert_eq!(session.tick(at(1999)), at(2000));
    assert!(!session.is_stopping(id));
    session.tick(at(2000));
    assert_eq!(said(&mut session), [HostMessage::Cancel { id }], "it is asked to end");
    assert_eq!(session.deadline(), at(2000 + GRACE.as_millis() as u64), "and then killed");
    hear(&mut session, &WorkerMessage::Done { id, outcome: Err(Failure::Cancelled), unhandled: vec![] });
    let done = done(id, Err(Failure::Cancelled), Some(Stopping::RequestTimeout));
    assert_eq!(session.next_event(at(2001)), Ok(Some(done)));
}

#[test]
fn one_call_too_many_stops_the_evaluation_without_asking_the_host() {
    let options = Options { max_host_calls: 1, ..Options::default() };
    let (mut session, id) = running(&options);
    hear(&mut session, &call(1));
    session.next_event(at(0)).unwrap();
    session.answer(at(0), 1, Ok(Value::Null)).unwrap();
    session.output().clear();

    hear(&mut session, &call(2));
    assert_eq!(session.next_event(at(0)), Ok(None));
    let messages = said(&mut session);
    assert!(
        matches!(&messages[..], [HostMessage::Cancel { id: cancelled }, HostMessage::Answer { id: 2, outcome: Err(_), .. }] if *cancelled == id)
    );

    hear(&mut session, &WorkerMessage::Done { id, outcome: Err(Failure::Cancelled), unhandled: vec![] });
    let done = done(id, Err(Failure::Cancelled), Some(Stopping::HostCallBudget));
    assert_eq!(session.next_event(at(0)), Ok(Some(done)));
}

#[test]
fn the_call_budget_is_each_evaluations_own() {
    let options = Options { max_host_calls: 1, ..Options::default() };
    let (mut session, mut id) = running(&options);
    for call_id in 1..=3 {
        let call = WorkerMessage::Call { id: call_id, request: id, function: 0, arguments: vec![] };
        hear(&mut session, &call);
        assert!(matches!(session.next_event(at(0)), Ok(Some(Event::Call(_)))));
        session.answer(at(0), call_id, Ok(Value::Null)).unwrap();
        hear(&mut session, &WorkerMessage::Done { id, outcome: Ok(Value::Null), unhandled: vec![] });
        session.next_event(at(0)).unwrap();
        id = session.eval(at(0), "f()".into(), "script.js".to_owned(), Language::JavaScript, false).unwrap();
    }
}

#[test]
fn stopping_twice_asks_once_and_stopping_nothing_says_nothing() {
    let (mut session, id) = running(&Options::default());
    session.stop(at(0), id, Stopping::Cancelled);
    session.stop(at(0), id, Stopping::Cancelled);
    assert_eq!(said(&mut session), [HostMessage::Cancel { id }]);

    let mut idle = configured(&Options::default());
    idle.stop(at(0), 1, Stopping::Cancelled);
    assert!(idle.output().is_empty());
}

#[test]
fn console_text_is_taken_only_where_there_is_a_console_and_only_so_much() {
    let line = WorkerMessage::Console { level: ConsoleLevel::Log, text: "x".repeat(300_000).as_str().into() };
    let (mut session, _) = running(&Options::default());
    assert!(violation(&mut session, &line).contains("console"));

    let (mut session, _) = running(&Options { console: true, ..Options::default() });
    let mut heard = 0;
    for _ in 0..10 {
        hear(&mut session, &line);
        heard += u32::from(session.next_event(at(0)).unwrap().is_some());
    }
    assert_eq!(heard, 3, "a fourth line would pass a mebibyte");
}

#[test]
fn guest_errors_arrive_whole() {
    let (mut session, id) = running(&Options::default());
    let error = JsError { name: "TypeError".into(), message: "a\nb".into(), ..JsError::default() };
    hear(
        &mut session,
        &WorkerMessage::Done { id, outcome: Err(Failure::Js(error.clone())), unhandled: vec![] },
    );
    let done = done(id, Err(Failure::Js(error)), None);
    assert_eq!(session.next_event(at(0)), Ok(Some(done)));
}

#[test]
fn a_name_longer_than_a_message_holds_is_refused_and_nothing_is_said() {
    let mut session = configured(&Options::default());
    session.eval(at(0), "1".into(), "n".repeat(1 << 20), Language::JavaScript, false).unwrap_err();
    session.bind(&Place::Global, &["n".repeat(1 << 20).as_str().into()], &[false]).unwrap_err();
    assert!(session.output().is_empty());
    session.eval(at(0), "1".into(), "script.js".to_owned(), Language::JavaScript, false).unwrap();
}

#[test]
fn a_stream_is_asked_and_gives_an_item_or_ends() {
    for outcome in [Ok(Value::Null), Err(Failure::StreamEnded)] {
        let mut session = configured(&Options::default());
        let id = session.pull(at(0), 5, StreamRequest::Next);
        let timeout_ms = Options::default().timeout.as_millis() as u64;
        let asked = HostMessage::Pull { id, stream: 5, what: StreamRequest::Next, timeout_ms };
        assert_eq!(said(&mut session), [asked]);
        hear(&mut session, &WorkerMessage::Done { id, outcome: outcome.clone(), unhandled: vec![] });
        assert_eq!(session.next_event(at(1)), Ok(Some(done(id, outcome, None))));
        assert!(session.is_idle());
    }
}

#[test]
fn only_a_stream_that_was_asked_can_end() {
    let (mut session, id) = running(&Options::default());
    let ended = WorkerMessage::Done { id, outcome: Err(Failure::StreamEnded), unhandled: vec![] };
    assert_eq!(violation(&mut session, &ended), "the end of a stream that was not asked");
}

#[test]
fn a_stream_of_the_host_is_asked_by_an_asynchronous_call() {
    let (mut session, id) = running(&Options::default());
    session.streams().store(true, Ordering::Relaxed);
    let arguments = vec![Value::Number(1.0), Value::Number(0.0)];
    let ask = WorkerMessage::Call { id: 1, request: id, function: STREAMS, arguments: arguments.clone() };
    hear(&mut session, &ask);
    let expected = Call { id: 1, request: id, function: STREAMS, arguments, asynchronous: true };
    assert_eq!(session.next_event(at(1)), Ok(Some(Event::Call(expected))));
    let unknown = WorkerMessage::Call { id: 2, request: id, function: STREAMS - 1, arguments: vec![] };
    assert!(violation(&mut session, &unknown).starts_with("a call of function"));
}

#[test]
fn without_streams_of_the_host_none_is_asked() {
    let (mut session, id) = running(&Options::default());
    let ask = WorkerMessage::Call { id: 1, request: id, function: STREAMS, arguments: vec![] };
    assert!(violation(&mut session, &ask).starts_with("a call of function"));
}
