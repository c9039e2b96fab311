use super::*;
use crate::agent::surface::Tool;

fn machine(durable: bool) -> Machine {
    let tool = |name: &str, max_calls| Tool { name: name.into(), max_calls };
    let tools = vec![tool("plain", None), tool("rare", Some(1)), tool("hidden", None)];
    let surface = Surface { namespace: None, tools, declared: 2, has_catalog: true };
    let bounds = Bounds { tool_calls: 3, pause: Duration::from_secs(1), journal_bytes: 100_000 };
    Machine::new(surface, bounds, Journal::default(), durable)
}

fn untold(machine: &mut Machine) -> Vec<(u64, Target)> {
    let run = machine.run().unwrap();
    std::iter::from_fn(|| run.next_untold()).map(|call| (call.id, call.target)).collect()
}

fn number(number: f64) -> Vec<Value> {
    vec![Value::Number(number)]
}

/// One run with two calls, answered in the other order.
fn recorded() -> Machine {
    let mut machine = machine(true);
    machine.begin("p".into(), "p.js", Language::JavaScript).unwrap();
    assert_eq!(machine.called(10, 0, number(1.0)).unwrap(), Called::Noted);
    assert_eq!(machine.called(11, 1, number(2.0)).unwrap(), Called::Noted);
    assert_eq!(untold(&mut machine), [(0, Target::Tool(0)), (1, Target::Tool(1))]);
    assert!(machine.answer(1, Answer::Value("b".into())));
    assert!(machine.answer(0, Answer::Value("a".into())));
    assert!(!machine.answer(0, Answer::Value("again".into())), "a call has one answer");
    assert_eq!(machine.next_answer().unwrap(), Some((11, Ok("b".into()))));
    assert_eq!(machine.next_answer().unwrap(), Some((10, Ok("a".into()))));
    assert_eq!(machine.next_answer().unwrap(), None);
    assert!(matches!(machine.ended(Ok("end".into())), Ok(Some(Ok(_)))));
    machine
}

#[test]
fn a_replay_hands_over_the_same_answers_in_the_same_order_and_tells_nobody() {
    let mut machine = recorded();
    let spent = machine.journal().unwrap().spent;
    machine.begin_replay();
    assert_eq!(machine.next_replay(), Some(("p".into(), "p.js".into(), Language::JavaScript)));
    machine.called(70, 0, number(1.0)).unwrap();
    machine.called(71, 1, number(2.0)).unwrap();
    assert_eq!(untold(&mut machine), []);
    assert_eq!(machine.next_answer().unwrap(), Some((71, Ok("b".into()))));
    assert_eq!(machine.next_answer().unwrap(), Some((70, Ok("a".into()))));
    assert!(matches!(machine.ended(Ok("end".into())), Ok(None)));
    assert_eq!(machine.next_replay(), None);
    assert_eq!(machine.journal().unwrap().spent, spent, "a replay spends nothing");
}

#[test]
fn the_first_difference_of_a_replay_is_a_divergence() {
    type Step = fn(&mut Machine) -> Result<(), AgentError>;
    let steps: [Step; 5] = [
        |machine| machine.called(70, 1, number(1.0)).map(drop),
        |machine| machine.called(70, 0, number(9.0)).map(drop),
        |machine| machine.next_answer().map(drop),
        |machine| machine.ended(Ok("end".into())).map(drop),
        |machine| {
            machine.called(70, 0, number(1.0))?;
            machine.called(71, 1, number(2.0))?;
            machine.next_answer()?;
            machine.next_answer()?;
            machine.ended(Ok("other".into())).map(drop)
        },
    ];
    for step in steps {
        let mut machine = recorded();
        machine.begin_replay();
        machine.next_replay();
        assert!(matches!(step(&mut machine), Err(AgentError::Divergence { run: 1, .. })));
        assert!(machine.journal().is_err(), "nothing is made of it any more");
    }
}

#[test]
fn a_call_over_the_tools_budget_is_refused_and_one_over_the_sessions_ends_the_run() {
    let mut machine = machine(true);
    machine.begin("p".into(), "p.js", Language::JavaScript).unwrap();
    machine.called(1, 1, Vec::new()).unwrap();
    machine.called(2, 1, Vec::new()).unwrap();
    assert_eq!(untold(&mut machine).len(), 1);
    let (wire, refusal) = machine.next_answer().unwrap().unwrap();
    assert_eq!((wire, refusal.unwrap_err().name), (2, "ToolBudgetError".into()));
    machine.called(3, 0, Vec::new()).unwrap();
    machine.called(4, 0, Vec::new()).unwrap();
    assert_eq!(machine.called(5, 0, Vec::new()).unwrap(), Called::Stop);
    let told = machine.ended(Err(Error::Cancelled)).unwrap().unwrap();
    assert!(matches!(told, Err(AgentError::CallBudget { max_tool_calls: 3 })));
    assert!(machine.is_stale, "where it was stopped is in no journal");
    assert_eq!(machine.journal().unwrap().spent.calls, 3);
}

#[test]
fn a_tool_of_the_catalog_is_called_by_name_and_no_other_is() {
    let mut machine = machine(true);
    machine.begin("p".into(), "p.js", Language::JavaScript).unwrap();
    machine.called(1, 4, vec!["hidden".into(), Value::Null]).unwrap();
    machine.called(2, 4, vec!["absent".into()]).unwrap();
    machine.called(3, 4, Vec::new()).unwrap();
    assert_eq!(untold(&mut machine), [(0, Target::Tool(2))]);
    let mut refusals = Vec::new();
    while let Some((wire, refusal)) = machine.next_answer().unwrap() {
        refusals.push((wire, refusal.unwrap_err().name.to_string_lossy().into_owned()));
    }
    assert_eq!(refusals, [(2, "ToolNotFoundError".into()), (3, "TypeError".into())]);
}

#[test]
fn a_worker_that_is_lost_in_a_replay_loses_nothing_of_the_journal() {
    let mut machine = recorded();
    let journal = machine.journal().unwrap();
    machine.begin_replay();
    machine.next_replay();
    machine.called(70, 0, number(1.0)).unwrap();
    machine.lost();
    assert_eq!(machine.journal().unwrap(), journal);
    assert!(machine.is_stale);
}

#[test]
fn a_session_that_is_not_durable_keeps_nothing() {
    let mut machine = machine(false);
    machine.begin("p".into(), "p.js", Language::JavaScript).unwrap();
    machine.ended(Ok(Value::Null)).unwrap();
    assert!(matches!(machine.journal(), Err(AgentError::Journal(JournalFault::NotKept(_)))));
}
