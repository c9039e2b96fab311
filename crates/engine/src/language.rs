//! What authors write, as the engine evaluates it: TypeScript without its types, `await` at the top level of a script. And the
//! way back, so that errors name the author's own lines.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use pydeno_transform::{Completion, MAX_SOURCE_BYTES, Position, PositionMap, ScriptOptions, TransformError};
use pydeno_wire::Text;
use pydeno_wire::message::{Failure, Frame, JsError, Language};

use crate::evaluation::Script;
use crate::json;
use crate::modules::IMPORT;

/// How many transformed scripts are remembered, by their names; of one name, the latest.
const MAX_SCRIPTS: usize = 64;
/// How large all their maps together may be, in bytes.
const MAX_MAPS: usize = 16 << 20;
/// The same of modules.
const MAX_MODULE_MAPS: usize = 64 << 20;

/// A script that can be evaluated.
pub(crate) struct Prepared<'s> {
    pub(crate) text: Cow<'s, Text>,
    /// Whether its value is a promise, which is fulfilled with a record that has the author's value.
    pub(crate) is_wrapped: bool,
    /// Whether it has an `import()`.
    pub(crate) imports: bool,
}

/// Where the places in scripts and modules that were transformed come from.
#[derive(Default)]
pub(crate) struct Positions {
    scripts: RefCell<VecDeque<(Text, PositionMap)>>,
    modules: RefCell<ModuleMaps>,
}

#[derive(Default)]
struct ModuleMaps {
    maps: HashMap<Text, PositionMap>,
    /// Of all of them, in bytes.
    size: usize,
}

/// Makes a script one that the engine evaluates. Most need nothing, which costs a look for a few words.
pub(crate) fn prepare<'s>(script: &Script<'s>, positions: &Positions) -> Result<Prepared<'s>, Failure> {
    let untouched = || {
        positions.forget(script.name);
        Ok(Prepared { text: Cow::Borrowed(script.source), is_wrapped: false, imports: false })
    };
    let options = ScriptOptions {
        language: match script.language {
            Language::PlainJavaScript => return untouched(),
            Language::JavaScript => pydeno_transform::Language::JavaScript,
            Language::TypeScript => pydeno_transform::Language::TypeScript,
        },
        redeclare: script.redeclare,
        ..ScriptOptions::default()
    };
    let Some(source) = script.source.as_str() else {
        if script.language == Language::TypeScript {
            let message = "TypeScript with a lone surrogate cannot be read; write it as an escape";
            return Err(syntax_error(script.name, message, Position { line: 0, column: 0 }));
        }
        return untouched();
    };
    // Longer JavaScript is a library, which has the words and no need.
    let is_library = script.language == Language::JavaScript && source.len() > MAX_SOURCE_BYTES;
    if is_library || !pydeno_transform::needs_transform(source, &options) {
        return untouched();
    }
    let import = format!("{IMPORT}({})", json::string(script.name));
    let options = ScriptOptions { import_function: Some(&import), ..options };
    let transformed = pydeno_transform::script(source, &options)
        .map_err(|TransformError { message, position, .. }| syntax_error(script.name, &message, position))?;
    let Cow::Owned(text) = transformed.text else { return untouched() };
    positions.remember(script.name, transformed.map);
    let is_wrapped = transformed.completion == Completion::Promise;
    let imports = text.contains(&import);
    Ok(Prepared { text: Cow::Owned(Text::from(text)), is_wrapped, imports })
}

fn syntax_error(name: &str, message: &str, position: Position) -> Failure {
    let Position { line, column } = position;
    Failure::Js(JsError {
        name: "SyntaxError".into(),
        message: message.into(),
        frames: vec![Frame { function: Text::default(), file: name.into(), line, column }],
        ..JsError::default()
    })
}

impl Positions {
    fn forget(&self, name: &str) {
        let mut scripts = self.scripts.borrow_mut();
        if !scripts.is_empty() {
            scripts.retain(|(other, _)| other.as_str() != Some(name));
        }
    }

    fn remember(&self, name: &str, map: PositionMap) {
        self.forget(name);
        if map.is_identity() {
            return;
        }
        let mut scripts = self.scripts.borrow_mut();
        scripts.push_back((name.into(), map));
        while scripts.len() > MAX_SCRIPTS
            || scripts.iter().map(|(_, map)| map.size()).sum::<usize>() > MAX_MAPS && scripts.len() > 1
        {
            scripts.pop_front();
        }
    }

    /// As `remember`, for a module, which is remembered for as long as there is room.
    pub(crate) fn remember_module(&self, name: &Text, map: &PositionMap) {
        let mut modules = self.modules.borrow_mut();
        if let Some(before) = modules.maps.remove(name) {
            modules.size -= before.size();
        }
        if modules.size + map.size() <= MAX_MODULE_MAPS {
            modules.size += map.size();
            modules.maps.insert(name.clone(), map.clone());
        }
    }

    /// Makes an error's frames name the author's places. The stack's text stays the engine's.
    pub(crate) fn lead_back(&self, frames: &mut [Frame]) {
        if self.scripts.borrow().is_empty() && self.modules.borrow().maps.is_empty() {
            return;
        }
        for frame in frames {
            self.lead_frame_back(frame);
        }
    }

    fn lead_frame_back(&self, frame: &mut Frame) {
        if frame.line == 0 {
            return;
        }
        let (scripts, modules) = (self.scripts.borrow(), self.modules.borrow());
        let script = scripts.iter().find(|(name, _)| *name == frame.file).map(|(_, map)| map);
        if let Some(map) = script.or_else(|| modules.maps.get(&frame.file)) {
            let place = Position { line: frame.line, column: frame.column.max(1) };
            let Position { line, column } = map.original(place);
            frame.line = line;
            if frame.column != 0 {
                frame.column = column;
            }
        }
    }
}
