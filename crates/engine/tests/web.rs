//! The interfaces of the web, and timers on a time of their own.

mod guest;

use std::time::Duration;

use guest::{Guest, number, string};
use pydeno_wire::Value;
use pydeno_wire::message::Failure;

fn web() -> Guest {
    let guest = Guest::new();
    guest.0.install_web().expect("the interfaces can be made");
    guest
}

fn holds(guest: &Guest, claim: &str) {
    assert_eq!(guest.eval(claim), Ok(Value::Bool(true)), "{claim}");
}

#[test]
fn timers_go_off_in_the_order_of_their_times_and_take_none() {
    let guest = web();
    let order = guest.value(
        "const order = []; const note = what => () => order.push(what);
         setTimeout(note('c'), 86400000); setTimeout(note('b'), 1000); setTimeout(note('a'), 1000);
         setTimeout(note('0')); queueMicrotask(note('now'));
         new Promise(resolve => setTimeout(() => resolve(order.join(' ')), 86400001))",
    );
    assert_eq!(order, string("now 0 b a c"));
}
