//! Asynchronous calls, requests that overlap, and invocations from inside a call.

use super::*;

/// With function 0 synchronous and function 1 asynchronous, and one evaluation begun.
fn mixed(options: &Options) -> (Session, u64) {
    let mut session = configured(options);
    session.bind(&Place::Global, &["f".into(), "g".into()], &[false, true]).unwrap();
    let id = session.eval(at(0), "g()".into(), "script.js".to_owned(), Language::JavaScript, false).unwrap();
    session.output().clear();
    (session, id)
}

fn calls(session: &mut Session, now: Nanos, id: u64, request: u64, function: u32) -> Option<Event> {
    hear(session, &WorkerMessage::Call { id, request, function, arguments: vec![] });
    session.next_event(now).unwrap()
}

fn waits(session: &mut Session, now: Nanos, taken: u64) {
    hear(session, &WorkerMessage::Waiting { taken });
    assert_eq!(session.next_event(now), Ok(None));
}

fn ends(session: &mut Session, now: Nanos, id: u64, outcome: Result<Value, Failure>) -> Done {
    hear(session, &WorkerMessage::Done { id, outcome, unhandled: vec![] });
    match session.next_event(now) {
        Ok(Some(Event::Done(done))) => done,
        other => panic!("{other:?}"),
    }
}

const ASYNC: u32 = 1;
const SYNC: u32 = 0;

#[test]
fn an_asynchronous_call_leaves_the_guest_running_until_it_says_that_it_waits() {
    let (mut session, id) = mixed(&Options::default());
    for call in [1, 2] {
        let event = calls(&mut session, at(0), call, id, ASYNC);
        let expected = Call { id: call, request: id, function: ASYNC, arguments: vec![], asynchronous: true };
        assert_eq!(event, Some(Event::Call(expected)));
        assert!(!session.is_blocked());
    }
    waits(&mut session, at(1), 1);
    session.answer(at(2), 2, Ok(Value::Null)).unwrap();
    session.answer(at(2), 1, Ok(Value::Null)).unwrap();
    assert!(matches!(
        said(&mut session)[..],
        [HostMessage::Answer { id: 2, .. }, HostMessage::Answer { id: 1, .. }]
    ));
    assert_eq!(ends(&mut session, at(3), id, Ok(Value::Null)).given_up, []);
    assert!(session.is_idle());
}

#[test]
fn a_wait_that_something_crossed_is_no_wait() {
    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, ASYNC);
    calls(&mut session, at(0), 2, id, ASYNC);
    session.answer(at(1), 1, Ok(Value::Null)).unwrap();
    // The worker has taken the evaluation and not the answer, which makes it go on and call again.
    waits(&mut session, at(2), 1);
    assert!(calls(&mut session, at(3), 3, id, ASYNC).is_some());
    waits(&mut session, at(4), 2);
    assert!(violation(&mut session, &call(4)).contains("nothing to run"));
}

#[test]
fn a_wait_for_nothing_is_a_violation() {
    let (mut session, _) = mixed(&Options::default());
    assert!(violation(&mut session, &WorkerMessage::Waiting { taken: 1 }).contains("nothing"));
    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, ASYNC);
    assert!(violation(&mut session, &WorkerMessage::Waiting { taken: 9 }).contains("9 messages taken of 1"));
}

#[test]
fn a_result_before_its_calls_are_answered_is_a_violation_and_an_error_gives_them_up() {
    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, ASYNC);
    let early = WorkerMessage::Done { id, outcome: Ok(Value::Null), unhandled: vec![] };
    assert!(violation(&mut session, &early).contains("before its calls"));

    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, ASYNC);
    let done = ends(&mut session, at(1), id, Err(Failure::Js(JsError::default())));
    assert_eq!(done.given_up, [1]);
    session.answer(at(2), 1, Ok(Value::Null)).unwrap();
    assert!(session.output().is_empty(), "nobody waits for the answer");
}

#[test]
fn the_guests_clock_stands_still_while_it_waits_and_its_patience_does_not() {
    let options = Options {
        timeout: Duration::from_secs(1),
        max_host_wait: Duration::from_secs(5),
        request_timeout: Duration::from_secs(60),
        ..Options::default()
    };
    let (mut session, id) = mixed(&options);
    let grace = GRACE.as_millis() as u64;
    calls(&mut session, at(100), 1, id, ASYNC);
    assert_eq!(session.deadline(), at(1000 + grace), "the guest goes on");
    waits(&mut session, at(400), 1);
    assert_eq!(session.deadline(), at(60_000 + grace));
    assert_eq!(session.tick(at(5399)), at(5400), "400 ms of it were the guest's own");
    assert!(!session.is_stopping(id));
    session.tick(at(5400));
    assert_eq!(said(&mut session), [HostMessage::Cancel { id }]);
    assert_eq!(session.deadline(), at(6000 + grace), "600 ms of the guest's second are left");
    let done = ends(&mut session, at(5401), id, Err(Failure::Cancelled));
    assert_eq!((done.stopped, done.given_up), (Some(Stopping::HostWait), vec![1]));
}

#[test]
fn too_many_calls_in_flight_stop_the_evaluation() {
    let options = Options { max_inflight_host_calls: 1, ..Options::default() };
    let (mut session, id) = mixed(&options);
    assert!(calls(&mut session, at(0), 1, id, ASYNC).is_some());
    session.answer(at(0), 1, Ok(Value::Null)).unwrap();
    assert!(calls(&mut session, at(0), 2, id, ASYNC).is_some(), "one at a time is allowed");
    session.output().clear();
    assert_eq!(calls(&mut session, at(0), 3, id, ASYNC), None);
    let messages = said(&mut session);
    assert!(
        matches!(
            messages[..],
            [HostMessage::Cancel { .. }, HostMessage::Answer { id: 3, outcome: Err(_), .. }]
        ),
        "{messages:?}"
    );
    let done = ends(&mut session, at(0), id, Err(Failure::Cancelled));
    assert_eq!((done.stopped, done.given_up), (Some(Stopping::InflightLimit), vec![2]));
}

#[test]
fn evaluations_overlap_and_each_has_its_own_limits() {
    let options = Options { max_host_calls: 1, timeout: Duration::from_secs(1), ..Options::default() };
    let (mut session, first) = mixed(&options);
    assert!(calls(&mut session, at(0), 1, first, ASYNC).is_some());
    waits(&mut session, at(0), 1);
    let second =
        session.eval(at(10), "g()".into(), "script.js".to_owned(), Language::JavaScript, false).unwrap();
    assert_eq!(session.deadline(), at(10 + 1000 + GRACE.as_millis() as u64));
    assert!(calls(&mut session, at(10), 2, second, ASYNC).is_some());
    waits(&mut session, at(20), 2);
    session.answer(at(30), 2, Ok(Value::Null)).unwrap();
    ends(&mut session, at(40), second, Ok(Value::Null));
    assert!(!session.is_idle());
    waits(&mut session, at(40), 3);
    session.answer(at(50), 1, Ok(Value::Null)).unwrap();
    ends(&mut session, at(60), first, Ok(Value::Null));
    assert!(session.is_idle());
}

#[test]
fn a_call_for_a_request_that_does_not_run_is_a_violation() {
    let (mut session, id) = mixed(&Options::default());
    let stray = WorkerMessage::Call { id: 1, request: id + 1, function: ASYNC, arguments: vec![] };
    assert!(violation(&mut session, &stray).contains("does not run"));
}

#[test]
fn an_invocation_inside_a_call_ends_before_the_call_is_answered() {
    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, SYNC);
    assert!(session.is_blocked());
    let inner = session.invoke(at(1), 3, vec![Value::Null]).unwrap();
    assert!(!session.is_blocked());
    let outer_first = WorkerMessage::Done { id, outcome: Ok(Value::Null), unhandled: vec![] };
    hear(&mut session, &WorkerMessage::Call { id: 2, request: inner, function: SYNC, arguments: vec![] });
    assert!(matches!(session.next_event(at(2)), Ok(Some(Event::Call(_)))));
    session.answer(at(3), 2, Ok(Value::Null)).unwrap();
    ends(&mut session, at(4), inner, Ok(Value::Null));
    assert!(session.is_blocked(), "the outer call still waits");
    session.answer(at(5), 1, Ok(Value::Null)).unwrap();
    ends(&mut session, at(6), id, Ok(Value::Null));

    let (mut session, _) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, SYNC);
    session.invoke(at(1), 3, vec![]).unwrap();
    assert!(violation(&mut session, &outer_first).contains("does not run"));
}

#[test]
fn a_worker_does_not_wait_inside_a_call() {
    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, ASYNC);
    calls(&mut session, at(0), 2, id, SYNC);
    session.invoke(at(1), 3, vec![]).unwrap();
    assert!(violation(&mut session, &WorkerMessage::Waiting { taken: 2 }).contains("inside a call"));
}

#[test]
fn calls_are_not_nested_without_end() {
    let (mut session, mut request) = mixed(&Options::default());
    for depth in 1..=MAX_NESTING as u64 {
        assert!(calls(&mut session, at(0), depth, request, SYNC).is_some());
        request = session.invoke(at(0), 3, vec![]).unwrap();
    }
    let once_more = WorkerMessage::Call { id: 1000, request, function: SYNC, arguments: vec![] };
    assert!(violation(&mut session, &once_more).contains("without end"));
}

#[test]
fn a_cancelled_request_that_waits_is_woken_to_end() {
    let (mut session, id) = mixed(&Options::default());
    calls(&mut session, at(0), 1, id, ASYNC);
    waits(&mut session, at(0), 1);
    session.stop(at(1), id, Stopping::Cancelled);
    // The cancellation crossed another wait.
    waits(&mut session, at(1), 1);
    let done = ends(&mut session, at(2), id, Err(Failure::Cancelled));
    assert_eq!((done.stopped, done.given_up), (Some(Stopping::Cancelled), vec![1]));
}

#[test]
fn functions_are_released_in_as_few_messages_as_they_fit() {
    let mut session = configured(&Options::default());
    session.release(&[]);
    assert!(session.output().is_empty());
    let many: Vec<u64> = (0..=bounds::RELEASED as u64).collect();
    session.release(&many);
    let told: Vec<u64> = said(&mut session)
        .into_iter()
        .flat_map(|message| match message {
            HostMessage::Release(functions) => functions,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, many);
}

#[test]
fn the_unhandled_rejections_of_a_request_come_with_its_end() {
    let (mut session, id) = mixed(&Options::default());
    let error = JsError { message: "stray".into(), ..JsError::default() };
    hear(&mut session, &WorkerMessage::Done { id, outcome: Ok(Value::Null), unhandled: vec![error.clone()] });
    match session.next_event(at(0)) {
        Ok(Some(Event::Done(done))) => assert_eq!(done.unhandled, [error]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invocation_says_inside_which_call_it_is_made() {
    let invocations = |session: &mut Session| -> Vec<Option<u64>> {
        let within = |message| match message {
            HostMessage::Invoke { within, .. } => Some(within),
            _ => None,
        };
        said(session).into_iter().filter_map(within).collect()
    };
    let (mut session, id) = mixed(&Options::default());
    session.invoke(at(0), 3, vec![]).unwrap();
    assert_eq!(invocations(&mut session), [None]);
    calls(&mut session, at(0), 7, id, SYNC);
    session.invoke(at(1), 3, vec![]).unwrap();
    assert_eq!(invocations(&mut session), [Some(7)]);
}

#[test]
fn requests_that_crossed_a_call_end_when_it_has_been_answered() {
    let (mut session, id) = mixed(&Options::default());
    let other = session.eval(at(0), "2".into(), "script.js".to_owned(), Language::JavaScript, false).unwrap();
    let third = session.invoke(at(0), 3, vec![]).unwrap();
    calls(&mut session, at(1), 1, id, SYNC);
    assert!(session.is_blocked());
    let inner = session.invoke(at(2), 3, vec![]).unwrap();
    ends(&mut session, at(3), inner, Ok(Value::Null));
    assert!(session.is_blocked());
    session.answer(at(4), 1, Ok(Value::Null)).unwrap();
    for request in [id, other, third] {
        ends(&mut session, at(5), request, Ok(Value::Null));
    }
    assert!(session.is_idle());
}

#[test]
fn lines_of_the_console_have_a_bound_even_when_they_are_empty() {
    let (mut session, _) = mixed(&Options { console: true, ..Options::default() });
    let mut taken = 0;
    for _ in 0..100_000 {
        hear(&mut session, &WorkerMessage::Console { level: ConsoleLevel::Log, text: Text::default() });
        taken += usize::from(session.next_event(at(0)).unwrap().is_some());
    }
    assert_eq!(taken, CONSOLE_BYTES / CONSOLE_LINE_BYTES);
}

#[test]
fn a_note_on_console_text_that_was_dropped_is_the_hosts_own_and_comes_only_so_often() {
    let (mut session, _) = mixed(&Options { console: true, ..Options::default() });
    let mut taken = 0;
    for _ in 0..1000 {
        hear(&mut session, &WorkerMessage::ConsoleDropped { lines: 2, bytes: 7 });
        match session.next_event(at(0)).unwrap() {
            Some(Event::Console { level: ConsoleLevel::Dropped, text }) => {
                assert!(text.display_safe().contains("2 more lines, 7 bytes"));
                taken += 1;
            }
            other => assert_eq!(other, None),
        }
    }
    assert_eq!(taken, MAX_CONSOLE_NOTES);
    let (mut session, _) = mixed(&Options::default());
    let note = WorkerMessage::ConsoleDropped { lines: 2, bytes: 7 };
    assert!(violation(&mut session, &note).starts_with("a note on console text"));
}
