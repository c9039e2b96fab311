//! Interfaces that scripts expect of the web and that need nothing outside: timers, text encoding, `URL`, events and so on.
//!
//! What they do stands in `js/web/`, on functions of this module where a script would be slow or wrong. Those are safe to
//! call with anything. `install.js` is all that runs before the guest; it keeps the built-ins that the interfaces need. The
//! script of an interface runs when the guest first asks for it.

mod base64;
mod encoding;
mod timers;
mod url;

use std::rc::Rc;

use pydeno_wire::{Text, Value};

pub(crate) use self::timers::Timers;
use crate::exception;
use crate::ffi::{Context, EngineString, Kept, Kind, Local, NativeFunction, Thrown};
use crate::import;
use crate::isolate::Shared;
use crate::prelude::PreludeError;
use crate::random::Generator;

const INSTALL: &str = include_str!("js/web/install.js");

/// The scripts that run on demand, by the name that `install.js` asks for them with.
const SCRIPTS: [(&str, &str); 9] = [
    ("blob", include_str!("js/web/blob.js")),
    ("console", include_str!("js/web/console.js")),
    ("crypto", include_str!("js/web/crypto.js")),
    ("dom_exception", include_str!("js/web/dom_exception.js")),
    ("encoding", include_str!("js/web/encoding.js")),
    ("events", include_str!("js/web/events.js")),
    ("performance", include_str!("js/web/performance.js")),
    ("structured_clone", include_str!("js/web/structured_clone.js")),
    ("url", include_str!("js/web/url.js")),
];

/// The most random bytes that are given at a time, as in the Web Cryptography specification.
const MOST_RANDOM: usize = 65_536;

/// Makes the interfaces; what is returned has to live as long as the context.
pub(crate) fn install(
    context: &Context,
    shared: &Rc<Shared>,
    random: &Generator,
) -> Result<Vec<NativeFunction>, PreludeError> {
    shared.prelude.take_clock(context)?;
    shared.prelude.begin_time(context)?;
    let mut natives = Natives { context, shared, made: Vec::new() };
    natives.of_scripts();
    natives.of_timers();
    natives.of_texts();
    natives.of_urls();
    let generator = random.clone();
    natives.add("random", move |context, _, arguments| {
        let wanted = number(context, arguments, 0).clamp(0.0, MOST_RANDOM as f64) as usize;
        let mut bytes = vec![0; wanted];
        if generator.fill(&mut bytes).is_err() {
            return Ok(context.undefined());
        }
        context.bytes(&bytes)
    });
    let record = context.evaluate(
        &EngineString::from_str(context.table(), "({ __proto__: null })"),
        &EngineString::from_str(context.table(), ""),
    );
    let failed = |error| PreludeError::new(context, error);
    let record = record.map_err(failed)?;
    for (name, native) in &natives.made {
        let name = EngineString::from_str(context.table(), name);
        context.set(record, &name, native.get(context)).map_err(|thrown| failed(thrown.into()))?;
    }
    let run = shared.prelude.link(context, INSTALL, record)?;
    shared.requests.timers.run_with(Kept::new(context, run));
    Ok(natives.made.into_iter().map(|(_, native)| native).collect())
}

/// The functions that the scripts build on.
struct Natives<'a> {
    context: &'a Context,
    shared: &'a Rc<Shared>,
    made: Vec<(&'static str, NativeFunction)>,
}

impl Natives<'_> {
    fn add(
        &mut self,
        name: &'static str,
        body: impl for<'c> Fn(&'c Context, &Shared, &[Local<'c>]) -> Result<Local<'c>, Thrown<'c>> + 'static,
    ) {
        let shared = Rc::clone(self.shared);
        let function = NativeFunction::new(
            self.context,
            &EngineString::from_str(self.context.table(), name),
            Box::new(move |context, arguments| body(context, &shared, arguments)),
        );
        self.made.push((name, function));
    }

    fn of_scripts(&mut self) {
        // The function that a script of ours is; the guest has no part in it.
        self.add("load", |context, _, arguments| {
            let wanted = string(context, arguments, 0).map(|name| name.to_text());
            let script = SCRIPTS.iter().find(|(name, _)| wanted.as_ref().is_some_and(|text| text == name));
            let Some((_, source)) = script else { return Ok(context.undefined()) };
            context.evaluate_own(source)
        });
        self.add("report", |context, shared, arguments| {
            if let (Some(&thrown), Some(request)) = (arguments.first(), shared.requests.outermost())
                && shared.deadline.stopped().is_none()
                && shared.requests.keeps_rejection(request)
            {
                let error = exception::describe(context, shared, Thrown(thrown));
                shared.requests.add_uncaught(request, error);
            }
            Ok(context.undefined())
        });
        self.add("classify", |context, shared, arguments| {
            let class = arguments.first().map_or(0, |&value| shared.prelude.classify(context, value) as u32);
            Ok(context.number(f64::from(class)))
        });
    }

    fn of_timers(&mut self) {
        self.add("setTimer", |context, shared, arguments| {
            let (&[callback, delay, values, repeats], Some(owner)) = (arguments, shared.requests.outermost())
            else {
                return Ok(context.undefined());
            };
            let delay = context.to_number(delay).max(0.0) as u64;
            let [callback, values] = [callback, values].map(|value| Kept::new(context, value));
            let timers = &shared.requests.timers;
            let id = timers.set(owner, callback, values, delay, context.to_bool(repeats));
            Ok(id.map_or_else(|| context.undefined(), |id| context.number(id as f64)))
        });
        self.add("clearTimer", |context, shared, arguments| {
            let id = number(context, arguments, 0);
            if id >= 1.0 {
                shared.requests.timers.clear(id as u64);
            }
            Ok(context.undefined())
        });
    }

    fn of_texts(&mut self) {
        self.add("encode", |context, _, arguments| {
            let text = string(context, arguments, 0).map(|text| text.to_text()).unwrap_or_default();
            context.bytes(text.to_string_lossy().as_bytes())
        });
        self.add("decode", |context, _, arguments| {
            let &[name, bytes, is_fatal, is_last] = arguments else { return Ok(context.undefined()) };
            let name = context.to_string(name).map(|name| name.to_text()).unwrap_or_default();
            let bytes = our_bytes(context, bytes)?;
            let [is_fatal, is_last] = [is_fatal, is_last].map(|flag| context.to_bool(flag));
            let units = encoding::decode(&name.to_string_lossy(), &bytes, is_fatal, is_last);
            Ok(units.map_or_else(|| context.undefined(), |units| of_units(context, &units)))
        });
        self.add("binary", |context, _, arguments| {
            let &[bytes] = arguments else { return Ok(context.undefined()) };
            let units: Vec<u16> = our_bytes(context, bytes)?.into_iter().map(u16::from).collect();
            Ok(of_units(context, &units))
        });
        self.add("incomplete", |context, _, arguments| {
            let &[name, bytes] = arguments else { return Ok(context.undefined()) };
            let name = context.to_string(name).map(|name| name.to_text()).unwrap_or_default();
            let bytes = our_bytes(context, bytes)?;
            let count = encoding::incomplete(&name.to_string_lossy(), &bytes);
            Ok(count.map_or_else(|| context.undefined(), |count| context.number(count as f64)))
        });
        self.add("encodingOf", |context, _, arguments| {
            let label = string(context, arguments, 0).map(|label| label.to_text()).unwrap_or_default();
            Ok(optional(context, encoding::name_of(&label.to_string_lossy()).as_deref()))
        });
        self.add("btoa", |context, _, arguments| {
            let text = string(context, arguments, 0).and_then(|text| base64::encode(text.units()));
            Ok(optional(context, text.as_deref()))
        });
        self.add("atob", |context, _, arguments| {
            let units = string(context, arguments, 0).and_then(|text| base64::decode(text.units()));
            Ok(units.map_or_else(|| context.undefined(), |units| of_units(context, &units)))
        });
    }

    fn of_urls(&mut self) {
        self.add("parseUrl", |context, _, arguments| {
            let [input, base] = [0, 1].map(|index| scalar_values(context, arguments, index));
            let parts = input.and_then(|input| url::parse(&input, base.as_deref()));
            Ok(optional(context, parts.as_deref()))
        });
        self.add("setUrl", |context, _, arguments| {
            let [href, part, value] = [0, 1, 2].map(|index| scalar_values(context, arguments, index));
            let parts = match (href, part, value) {
                (Some(href), Some(part), Some(value)) => url::set(&href, &part, &value),
                _ => None,
            };
            Ok(optional(context, parts.as_deref()))
        });
        self.add("parseForm", |context, shared, arguments| {
            let query = scalar_values(context, arguments, 0).unwrap_or_default();
            let texts = url::parse_form(&query).into_iter().map(|text| Value::String(Text::from(text)));
            import::value(context, shared, &Value::Array(texts.collect()))
        });
        self.add("encodeForm", |context, _, arguments| {
            let text = scalar_values(context, arguments, 0).unwrap_or_default();
            Ok(optional(context, Some(&url::encode_form(&text))))
        });
    }
}

fn number(context: &Context, arguments: &[Local<'_>], index: usize) -> f64 {
    arguments.get(index).map_or(f64::NAN, |&value| context.to_number(value))
}

fn string(context: &Context, arguments: &[Local<'_>], index: usize) -> Option<EngineString> {
    let &value = arguments.get(index)?;
    if context.kind(value) == Kind::String { context.to_string(value) } else { None }
}

/// A string with U+FFFD for what is no character.
fn scalar_values(context: &Context, arguments: &[Local<'_>], index: usize) -> Option<String> {
    let text = string(context, arguments, index)?.to_text();
    Some(text.to_string_lossy().into_owned())
}

/// The bytes of a typed array that the scripts have made for this alone.
fn our_bytes<'c>(context: &'c Context, array: Local<'c>) -> Result<Vec<u8>, Thrown<'c>> {
    if context.has_bytes(array) { context.copy_bytes(array) } else { Ok(Vec::new()) }
}

fn of_units<'c>(context: &'c Context, units: &[u16]) -> Local<'c> {
    context.string(&EngineString::from_utf16(context.table(), units))
}

fn optional<'c>(context: &'c Context, text: Option<&str>) -> Local<'c> {
    text.map_or_else(
        || context.undefined(),
        |text| context.string(&EngineString::from_str(context.table(), text)),
    )
}
