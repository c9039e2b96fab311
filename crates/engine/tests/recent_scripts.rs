//! A script that comes again is evaluated anew, although it is not read anew.

mod guest;

use std::rc::Rc;

use guest::{Guest, number, string};
use pydeno_engine::EvalLimits;
use pydeno_wire::{Text, Value};

#[test]
fn the_same_script_has_another_value_where_the_state_is_another() {
    let guest = Guest::new();
    guest.value("globalThis.n = 0; 0");
    for count in 1..20 {
        assert_eq!(guest.value("n += 1"), number(f64::from(count)));
    }
}

#[test]
fn each_evaluation_makes_functions_and_templates_of_its_own() {
    let guest = Guest::new();
    guest.value("globalThis.seen = new Set; globalThis.note = (it) => (seen.add(it), seen.size); 0");
    for count in 1..4 {
        assert_eq!(guest.value("note(() => 1)"), number(f64::from(2 * count - 1)));
        assert_eq!(guest.value("note`text`"), number(f64::from(2 * count)));
    }
}

#[test]
fn what_a_script_declares_cannot_be_declared_by_it_again() {
    let guest = Guest::new();
    assert_eq!(guest.value("let once = 1; once"), number(1.0));
    for _ in 0..3 {
        assert_eq!(guest.error("let once = 1; once").name, "SyntaxError");
    }
    assert_eq!(guest.value("once"), number(1.0));
}

#[test]
fn a_text_under_another_name_is_another_script() {
    let guest = Guest::new();
    for name in ["one.js", "two.js", "one.js"] {
        let source = Text::from("new Error().stack");
        let Ok(Value::String(stack)) = guest.0.eval(&source, name, &EvalLimits::default()) else {
            panic!("the stack is text")
        };
        assert!(stack.to_string().contains(name), "{name}: {stack}");
    }
}

#[test]
fn a_script_that_does_not_parse_fails_every_time() {
    let guest = Guest::new();
    for _ in 0..3 {
        let error = guest.error("let = = 1");
        assert_eq!((error.name.to_string(), error.frames[0].line), ("SyntaxError".to_owned(), 1));
    }
}

#[test]
fn a_script_goes_on_while_others_take_its_place() {
    let guest = Rc::new(Guest::new());
    let inner = Rc::downgrade(&guest);
    let evaluate = move |request: u64, _: Vec<Value>| {
        let guest = inner.upgrade().expect("it is alive");
        for other in 0..32 {
            let source = Text::from(format!("{other} + 1"));
            guest.0.begin_eval(request + 1, &source, "test.js", &EvalLimits::default());
            let ended = guest.0.take_ended().expect("a nested request ends at once");
            assert_eq!(ended.outcome, Ok(number(f64::from(other + 1))));
        }
        Ok(Value::Null)
    };
    guest.0.bind(None, &"others".into(), Box::new(evaluate)).expect("a new name can be bound");
    for _ in 0..3 {
        assert_eq!(guest.value("others(); [1, 2].map((n) => `${n}!`).join()"), string("1!,2!"));
    }
}
