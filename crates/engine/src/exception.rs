//! What a guest threw, described without running its code.

use pydeno_wire::Text;
use pydeno_wire::message::{Failure, Frame, JsError};

use crate::ffi::{Context, EngineString, Kind, Local, Thrown};
use crate::prelude::Prelude;

// Fields of what `describe` in inspect.js returns.
const IS_ERROR: u32 = 0;
const NAME: u32 = 1;
const MESSAGE: u32 = 2;
const STACK: u32 = 3;
const LINE: u32 = 4;
const COLUMN: u32 = 5;
const SOURCE_URL: u32 = 6;

/// Describes what was thrown. Never fails: what cannot be had is left out.
pub(crate) fn describe(context: &Context, prelude: &Prelude, thrown: Thrown<'_>) -> JsError {
    let Thrown(thrown) = thrown;
    match prelude.call(context, &prelude.describe, &[thrown]) {
        Ok(about) => Description { context, about }.error(),
        // There is no stack or memory left even for that.
        Err(_) => JsError { name: "Error".into(), message: "(not described)".into(), ..JsError::default() },
    }
}

/// What the engine says of a text that is no script.
pub(crate) fn syntax_error(message: &EngineString, name: &EngineString, line: i32) -> Failure {
    let frame = Frame {
        function: Text::default(),
        file: name.to_text(),
        line: u32::try_from(line).unwrap_or(0),
        column: 0,
    };
    Failure::Js(JsError {
        name: "SyntaxError".into(),
        message: message.to_text(),
        stack: Text::default(),
        frames: vec![frame],
    })
}

struct Description<'c> {
    context: &'c Context,
    about: Local<'c>,
}

impl Description<'_> {
    fn field(&self, index: u32) -> Local<'_> {
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

    fn error(&self) -> JsError {
        if !self.context.to_bool(self.field(IS_ERROR)) {
            return JsError { message: self.text(MESSAGE), ..JsError::default() };
        }
        let stack = without_the_prelude(self.text(STACK));
        let mut frames = frames(&stack.to_string_lossy());
        if frames.is_empty() {
            // A syntax error has no stack, but knows where the source is wrong.
            let line = self.number(LINE);
            if line > 0 {
                frames.push(Frame {
                    function: Text::default(),
                    file: self.text(SOURCE_URL),
                    line,
                    column: self.number(COLUMN),
                });
            }
        }
        JsError { name: self.text(NAME), message: self.text(MESSAGE), stack, frames }
    }
}

/// The frame of the prelude's function that calls a guest's.
const INVOKE: &str = "invoke@";

fn without_the_prelude(stack: Text) -> Text {
    match stack.as_str() {
        Some(text) if text.contains(INVOKE) => {
            text.lines().filter(|&line| line != INVOKE).collect::<Vec<_>>().join("\n").into()
        }
        _ => stack,
    }
}

/// The engine's words for code that is no function.
const NAMELESS: [&str; 3] = ["global code", "eval code", "module code"];

/// Reads the engine's stack: a line a frame, `function@file:line:column`, or `function@[native code]`.
fn frames(stack: &str) -> Vec<Frame> {
    stack.lines().filter_map(frame).collect()
}

fn frame(line: &str) -> Option<Frame> {
    let (function, place) = line.split_once('@')?;
    let function = if NAMELESS.contains(&function) { "" } else { function };
    let (file, line, column) = match place {
        "[native code]" => ("", 0, 0),
        place => position(place).unwrap_or((place, 0, 0)),
    };
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
        let stack =
            "f@main.js:1:18\n@main.js:1:36\nsort@[native code]\neval code@\nglobal code@dir:x/main.js:12:3";
        assert_eq!(
            frames(stack),
            [
                expected("f", "main.js", 1, 18),
                expected("", "main.js", 1, 36),
                expected("sort", "", 0, 0),
                expected("", "", 0, 0),
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
