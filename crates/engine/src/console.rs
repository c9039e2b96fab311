//! The guest's `console`.

use std::cell::RefCell;
use std::rc::Rc;

use pydeno_wire::Text;
use pydeno_wire::message::ConsoleLevel;

use crate::ffi::{Context, EngineString, Kind, Local, NativeFunction};
use crate::isolate::Shared;
use crate::prelude::Prelude;

/// Receives what the guest writes to its `console`: the method, and the arguments as one text.
pub type ConsoleHook = Box<dyn FnMut(ConsoleLevel, Text)>;

/// Whose time it is while a hook has a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookTime {
    /// The guest's: it writes, and what holds it up is what it wrote before.
    Guest,
    /// The host's, as in a host function.
    Host,
}

const METHODS: [(&str, ConsoleLevel); 5] = [
    ("debug", ConsoleLevel::Debug),
    ("log", ConsoleLevel::Log),
    ("info", ConsoleLevel::Info),
    ("warn", ConsoleLevel::Warn),
    ("error", ConsoleLevel::Error),
];

/// Makes the five methods. Logging never throws and never runs guest code.
pub(crate) fn install(
    context: &Context,
    shared: &Rc<Shared>,
    hook: ConsoleHook,
    time: HookTime,
) -> impl Iterator<Item = NativeFunction> {
    let hook = Rc::new(RefCell::new(hook));
    METHODS.into_iter().map(move |(name, level)| {
        let hook = Rc::clone(&hook);
        let called = Rc::clone(shared);
        let name = EngineString::from_str(context.table(), name);
        let method = NativeFunction::new(
            context,
            &name,
            Box::new(move |context, arguments| {
                if called.deadline.is_over() {
                    called.deadline.hurry();
                    return Ok(context.undefined());
                }
                let text = line(context, &called.prelude, arguments);
                if let Ok(mut hook) = hook.try_borrow_mut() {
                    match time {
                        HookTime::Guest => hook(level, text),
                        HookTime::Host => called.deadline.paused(|| hook(level, text)),
                    }
                }
                Ok(context.undefined())
            }),
        );
        shared.prelude.bind(
            context,
            Some(&EngineString::from_str(context.table(), "console")),
            &name,
            &method,
        );
        method
    })
}

/// The arguments joined by a space: strings as they are, everything else as the prelude's `inspect` shows it.
fn line(context: &Context, prelude: &Prelude, arguments: &[Local<'_>]) -> Text {
    let mut line = Vec::new();
    for (index, &argument) in arguments.iter().enumerate() {
        if index > 0 {
            line.push(b' ');
        }
        let text = if context.kind(argument) == Kind::String {
            context.to_string(argument)
        } else {
            let inspected = prelude.call(context, &prelude.inspect, &[argument]);
            inspected.ok().and_then(|text| context.to_string(text))
        };
        match text {
            Some(text) => line.extend_from_slice(&text.to_text().to_wtf8()),
            // The engine has no memory or no stack left to say it with.
            None => line.extend_from_slice("…".as_bytes()),
        }
    }
    Text::from_wtf8(line).unwrap_or_default()
}
