//! What a guest threw, described without running its code.

use pydeno_wire::codec::bounds::{AGGREGATED, ERROR_DEPTH, RELATED_ERRORS};
use pydeno_wire::message::{ErrorDetails, Frame, JsError};
use pydeno_wire::{Budget, Text, Value};

use crate::conversion_error::ConversionError;
use crate::export;
use crate::ffi::{Context, Kind, Local, Thrown};
use crate::isolate::Shared;
use crate::language::Positions;
use crate::modules::LOADER;
use crate::webassembly::WASM_LOADER;

// Fields of what `describe` in describe.js returns.
const IS_ERROR: u32 = 0;
const NAME: u32 = 1;
const MESSAGE: u32 = 2;
const STACK: u32 = 3;
const LINE: u32 = 4;
const COLUMN: u32 = 5;
const SOURCE_URL: u32 = 6;
const PROPERTIES: u32 = 7;
const COUNT: u32 = 8;
const HAS_CAUSE: u32 = 9;
const CAUSE: u32 = 10;
const ERRORS: u32 = 11;
const ERROR_COUNT: u32 = 12;

/// How much one exception and those that it leads to may carry in values.
const CARRIED: Budget = Budget { bytes: 64 << 10, nodes: 1000, depth: 16 };

/// Describes what was thrown. Never fails: what cannot be had is left out.
pub(crate) fn describe(context: &Context, shared: &Shared, thrown: Thrown<'_>) -> JsError {
    let Thrown(thrown) = thrown;
    let mut teller = Teller { context, shared, budget: CARRIED, left: RELATED_ERRORS, gave_up: false };
    teller.describe(Place { thrown, outer: None, depth: 0 }).unwrap_or_else(|| {
        // There is no stack or memory left even for that.
        JsError { name: "Error".into(), message: "(not described)".into(), ..JsError::default() }
    })
}

/// Where what is described stands among causes and aggregates. Kept on the stack, where the collector looks.
#[derive(Clone, Copy)]
struct Place<'p> {
    thrown: Local<'p>,
    outer: Option<&'p Place<'p>>,
    depth: usize,
}

impl Place<'_> {
    /// Whether a value is described already, here or further out.
    fn is_inside(&self, value: Local<'_>) -> bool {
        self.thrown.is(value) || self.outer.is_some_and(|outer| outer.is_inside(value))
    }
}

struct Teller<'c> {
    context: &'c Context,
    shared: &'c Shared,
    budget: Budget,
    /// How many more errors may be described.
    left: usize,
    /// The engine has failed, or was stopped: nothing more is asked of it.
    gave_up: bool,
}

impl<'c> Teller<'c> {
    /// `None` when the engine fails.
    fn describe(&mut self, place: Place<'_>) -> Option<JsError> {
        let called = self.shared.prelude.call(self.context, &self.shared.prelude.describe, &[place.thrown]);
        let Ok(about) = called else {
            self.gave_up = true;
            return None;
        };
        let description = Description { context: self.context, about };
        let mut error = description.error(&self.shared.positions);
        let details = if description.is_error() {
            ErrorDetails {
                value: None,
                properties: self.properties(&description),
                cause: self.cause(&description, &place),
                errors: self.errors(&description, &place),
            }
        } else {
            let value = self.value(place.thrown);
            // A part of what does not cross as a whole.
            let properties = if value.is_none() { self.properties(&description) } else { Vec::new() };
            ErrorDetails { value, properties, ..ErrorDetails::default() }
        };
        if details != ErrorDetails::default() {
            error.details = Some(Box::new(details));
        }
        Some(error)
    }

    fn value(&mut self, value: Local<'_>) -> Option<Value> {
        if self.gave_up {
            return None;
        }
        match export::data(self.context, self.shared, value, &mut self.budget) {
            Ok(value) => Some(value),
            Err(ConversionError::Refused(_)) => None,
            Err(ConversionError::Engine(_) | ConversionError::NoStack) => {
                self.gave_up = true;
                None
            }
        }
    }

    fn properties(&mut self, description: &Description<'c>) -> Vec<(Text, Value)> {
        let pairs = description.field(PROPERTIES);
        let mut properties = Vec::new();
        for index in 0..description.number(COUNT) / 2 {
            let (Ok(name), Ok(value)) =
                (self.context.get_index(pairs, 2 * index), self.context.get_index(pairs, 2 * index + 1))
            else {
                break;
            };
            if let (Some(name), Some(value)) = (self.context.to_string(name), self.value(value)) {
                properties.push((name.to_text(), value));
            }
        }
        properties
    }

    fn cause(&mut self, description: &Description<'c>, place: &Place<'_>) -> Option<JsError> {
        if !self.context.to_bool(description.field(HAS_CAUSE)) {
            return None;
        }
        self.related(description.field(CAUSE), place)
    }

    fn errors(&mut self, description: &Description<'c>, place: &Place<'_>) -> Vec<JsError> {
        let list = description.field(ERRORS);
        let count = description.number(ERROR_COUNT).min(AGGREGATED as u32);
        let mut errors = Vec::new();
        for index in 0..count {
            let Ok(error) = self.context.get_index(list, index) else { break };
            errors.extend(self.related(error, place));
        }
        errors
    }

    /// Describes a cause or a part of an aggregate; `None` for one that is too deep, one too many, or around this one.
    fn related(&mut self, thrown: Local<'_>, place: &Place<'_>) -> Option<JsError> {
        if self.gave_up || self.left == 0 || place.depth >= ERROR_DEPTH || place.is_inside(thrown) {
            return None;
        }
        self.left -= 1;
        self.describe(Place { thrown, outer: Some(place), depth: place.depth + 1 })
    }
}

struct Description<'c> {
    context: &'c Context,
    about: Local<'c>,
}

impl<'c> Description<'c> {
    fn field(&self, index: u32) -> Local<'c> {
        self.context.get_index(self.about, index).unwrap_or_else(|_| self.context.undefined())
    }

    fn text(&self, index: u32) -> Text {
        let field = self.field(index);
        if self.context.kind(field) != Kind::String {
            return Text::default();
        }
        self.context.to_string(field).map_or_else(Text::default, |text| text.to_text())
    }

    fn number(&self, index: u32) -> u32 {
        // NaN and what lies outside become 0 or the largest.
        self.context.to_number(self.field(index)) as u32
    }

    fn is_error(&self) -> bool {
        self.context.to_bool(self.field(IS_ERROR))
    }

    fn error(&self, positions: &Positions) -> JsError {
        if !self.is_error() {
            return JsError { message: self.text(MESSAGE), ..JsError::default() };
        }
        let stack = without_the_prelude(self.text(STACK));
        let text = stack.to_string_lossy();
        let mut frames = frames(&text);
        let (line, column) = (self.number(LINE), self.number(COLUMN));
        if frames.is_empty() && line > 0 {
            // A syntax error has no stack, but knows where the source is wrong: in the author's text already.
            frames.push(Frame { function: Text::default(), file: self.text(SOURCE_URL), line, column });
        } else if is_thrown_in_eval(&text)
            && let Some(innermost) = frames.iter_mut().find(|frame| frame.file == MADE_FROM_TEXT)
        {
            // The engine's stack has no places in code made from text, but the error knows its own.
            (innermost.line, innermost.column) = (line, column);
        } else {
            positions.lead_back(&mut frames);
        }
        drop(text);
        JsError { name: self.text(NAME), message: self.text(MESSAGE), stack, frames, details: None }
    }
}

/// The frame of the prelude's function that calls a guest's.
const INVOKE: &str = "invoke@";

/// What native functions the loader of modules calls guest code through.
const LOADER_CALLS: [&str; 2] = ["next@[native code]", "apply@[native code]"];

fn without_the_prelude(stack: Text) -> Text {
    let Some(text) = stack.as_str() else { return stack };
    if !text.contains(INVOKE) && !text.contains(LOADER) && !text.contains(WASM_LOADER) {
        return stack;
    }
    let mut is_loaders = false;
    let mut lines: Vec<&str> = text.lines().rev().collect();
    // The host calls the loader through a function of the prelude that has neither name nor file.
    if let [outermost, within, ..] = lines[..]
        && outermost == "@"
        && within.contains(LOADER)
    {
        lines.remove(0);
    }
    lines.retain(|&line| {
        is_loaders = line.contains(LOADER) || is_loaders && LOADER_CALLS.contains(&line);
        line != INVOKE && !is_loaders && !line.contains(WASM_LOADER)
    });
    lines.reverse();
    lines.join("\n").into()
}

/// The engine's words for code that is no function.
const NAMELESS: [&str; 3] = ["global code", EVAL_CODE, "module code"];

/// The file of code that the guest made from a text, of which the engine says nothing.
const MADE_FROM_TEXT: &str = "<eval>";
/// The engine's word for the code of `eval`.
const EVAL_CODE: &str = "eval code";
/// What `Function` calls a function that it makes.
const MADE_BY_FUNCTION: &str = "anonymous";

/// Whether the innermost frame that is not native is the code of `eval` itself, and no function in it.
fn is_thrown_in_eval(stack: &str) -> bool {
    let innermost = stack.lines().find(|line| !line.ends_with("@[native code]"));
    innermost.and_then(|line| line.strip_suffix('@')) == Some(EVAL_CODE)
}

/// Reads the engine's stack: a line a frame, `function@file:line:column`, `function@[native code]`, or `function@` where
/// there is no file: in code made from text, and in what the engine adds, such as the constructor of a class without one.
fn frames(stack: &str) -> Vec<Frame> {
    stack.lines().filter_map(frame).collect()
}

fn frame(line: &str) -> Option<Frame> {
    let (function, place) = line.split_once('@')?;
    let (file, line, column) = match place {
        "" if [EVAL_CODE, MADE_BY_FUNCTION].contains(&function) => (MADE_FROM_TEXT, 0, 0),
        "" | "[native code]" => ("", 0, 0),
        place => position(place).unwrap_or((place, 0, 0)),
    };
    let function = if NAMELESS.contains(&function) { "" } else { function };
    Some(Frame { function: function.into(), file: file.into(), line, column })
}

fn position(place: &str) -> Option<(&str, u32, u32)> {
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file, line.parse().ok()?, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(function: &str, file: &str, line: u32, column: u32) -> Frame {
        Frame { function: function.into(), file: file.into(), line, column }
    }

    #[test]
    fn every_shape_of_line_that_the_engine_writes_is_read() {
        let stack = "f@main.js:1:18\n@main.js:1:36\nsort@[native code]\neval code@\nOwn@\nglobal code@dir:x/main.js:12:3";
        assert_eq!(
            frames(stack),
            [
                expected("f", "main.js", 1, 18),
                expected("", "main.js", 1, 36),
                expected("sort", "", 0, 0),
                expected("", "<eval>", 0, 0),
                expected("Own", "", 0, 0),
                expected("", "dir:x/main.js", 12, 3),
            ]
        );
    }

    #[test]
    fn a_stack_that_the_guest_wrote_is_read_as_far_as_it_goes() {
        assert_eq!(frames("nothing here"), []);
        assert_eq!(frames("f@x:99999999999:1"), [expected("f", "x:99999999999:1", 0, 0)]);
    }
}
