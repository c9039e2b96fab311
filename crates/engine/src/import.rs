//! From a [`Value`] to a guest's value.
//!
//! A tree goes in as JSON text, which the engine reads without running guest code: each property is defined, not
//! assigned, so neither setters nor a patched prototype are asked, and `__proto__` is a plain key. What JSON cannot say
//! goes in as `null` first and is then put into its place; the property exists by then and is the tree's own, so again
//! nothing of the guest's is asked.

use pydeno_wire::{BigInt, Text, Value};

use crate::ffi::{Context, EngineString, Kept, Local, Thrown};
use crate::isolate::Shared;
use crate::json::{self, Special};
use crate::pieces::{self, PIECE};

/// Imports one value.
pub(crate) fn value<'c>(
    context: &'c Context,
    shared: &Shared,
    value: &Value,
) -> Result<Local<'c>, Thrown<'c>> {
    let importer = Importer { context, shared };
    match value {
        Value::Array(_) | Value::Object(_) => importer.tree(Branch::Value(value)),
        leaf => importer.leaf(leaf),
    }
}

/// Imports values as an array of the guest's.
pub(crate) fn list<'c>(
    context: &'c Context,
    shared: &Shared,
    values: &[Value],
) -> Result<Local<'c>, Thrown<'c>> {
    let importer = Importer { context, shared };
    let values: Vec<&Value> = values.iter().collect();
    importer.tree(Branch::List(&values))
}

struct Importer<'c, 's> {
    context: &'c Context,
    shared: &'s Shared,
}

/// Something that goes in as JSON.
#[derive(Clone, Copy)]
pub(crate) enum Branch<'v> {
    /// An array or an object.
    Value(&'v Value),
    /// An array of these, which belong to something else.
    List(&'v [&'v Value]),
}

/// Where a child stands in its container.
enum Place<'v> {
    Index(u32),
    Key(&'v Text),
}

impl<'v> Branch<'v> {
    /// The child at this position, in the order of writing.
    fn child(self, position: u32) -> Option<(Place<'v>, &'v Value)> {
        let index = position as usize;
        match self {
            Self::Value(Value::Array(items)) => Some((Place::Index(position), items.get(index)?)),
            Self::Value(Value::Object(properties)) => {
                let (key, value) = properties.get(index)?;
                Some((Place::Key(key), value))
            }
            Self::Value(_) => None,
            Self::List(items) => Some((Place::Index(position), items.get(index)?)),
        }
    }
}

impl<'c> Importer<'c, '_> {
    fn tree(&self, branch: Branch<'_>) -> Result<Local<'c>, Thrown<'c>> {
        let (text, specials) = json::write(branch);
        let text = EngineString::passing(self.context.table(), &text);
        // The text is JSON, so what is missing is memory or stack.
        let Some(root) = self.context.parse_json(&text) else { return Err(self.exhausted()) };
        drop(text);
        self.patch(root, branch, 0, &specials)?;
        Ok(root)
    }

    /// Puts into a container what JSON could not say, at any depth. Every container on the way hangs on the root,
    /// which is on the stack.
    fn patch(
        &self,
        container: Local<'c>,
        branch: Branch<'_>,
        depth: usize,
        mut specials: &[Special],
    ) -> Result<(), Thrown<'c>> {
        while let Some(position) = specials.first().and_then(|special| special.get(depth)).copied() {
            let here =
                specials.partition_point(|special| special.get(depth).is_some_and(|&at| at <= position));
            let (run, rest) = specials.split_at(here);
            specials = rest;
            let Some((place, child)) = branch.child(position) else { continue };
            if run[0].len() == depth + 1 {
                let leaf = self.leaf(child)?;
                self.put(container, &place, leaf)?;
            } else {
                let inner = self.get(container, &place)?;
                self.patch(inner, Branch::Value(child), depth + 1, run)?;
            }
        }
        Ok(())
    }

    fn get(&self, container: Local<'c>, place: &Place<'_>) -> Result<Local<'c>, Thrown<'c>> {
        match place {
            Place::Index(index) => self.context.get_index(container, *index),
            Place::Key(key) => self.context.get(container, &EngineString::new(self.context.table(), key)),
        }
    }

    fn put(&self, container: Local<'c>, place: &Place<'_>, value: Local<'c>) -> Result<(), Thrown<'c>> {
        match place {
            Place::Index(index) => self.context.set_index(container, *index, value),
            Place::Key(key) => {
                let key = EngineString::new(self.context.table(), key);
                self.context.set(container, &key, value)
            }
        }
    }

    fn leaf(&self, value: &Value) -> Result<Local<'c>, Thrown<'c>> {
        let context = self.context;
        Ok(match value {
            Value::Undefined => context.undefined(),
            Value::Null => context.null(),
            Value::Bool(value) => context.boolean(*value),
            Value::Number(value) => context.number(*value),
            Value::String(value) => context.string(&EngineString::new(context.table(), value)),
            Value::BigInt(value) => self.big_int(value)?,
            Value::Date(milliseconds) => context.date(*milliseconds as f64)?,
            Value::Bytes(bytes) if bytes.len() > PIECE => pieces::put(context, &self.shared.prelude, bytes)?,
            Value::Bytes(bytes) => {
                let pinned = context.bytes(bytes)?;
                self.shared.prelude.call(context, &self.shared.prelude.unpin, &[pinned])?
            }
            Value::Function(function) => {
                let held = self.shared.held.get(context, function.handle);
                held.ok_or_else(|| self.error("TypeError", "The function is no longer held by the host."))?
            }
            Value::Stream(stream) => {
                let found = self.shared.streams().import(context, self.shared, *stream)?;
                found.ok_or_else(|| self.error("TypeError", "The stream is no longer held by the host."))?
            }
            Value::Array(_) | Value::Object(_) => self.tree(Branch::Value(value))?,
            Value::Set(members) => {
                let members: Vec<&Value> = members.iter().collect();
                self.collection(&members, &self.shared.prelude.make_set)?
            }
            Value::Map(entries) => {
                let contents: Vec<&Value> = entries.iter().flat_map(|(key, value)| [key, value]).collect();
                self.collection(&contents, &self.shared.prelude.make_map)?
            }
        })
    }

    fn collection(&self, contents: &[&Value], make: &Kept) -> Result<Local<'c>, Thrown<'c>> {
        let list = self.tree(Branch::List(contents))?;
        self.shared.prelude.call(self.context, make, &[list, self.context.number(contents.len() as f64)])
    }

    fn big_int(&self, value: &BigInt) -> Result<Local<'c>, Thrown<'c>> {
        let context = self.context;
        let small = value.magnitude();
        if small.len() < 8 {
            let magnitude = small.iter().fold(0, |number, &byte| number << 8 | i64::from(byte));
            return context.big_int(if value.is_negative() { -magnitude } else { magnitude });
        }
        let text = json::hexadecimal(value.magnitude());
        let magnitude = context.big_int_from_text(&EngineString::from_str(context.table(), &text))?;
        if value.is_negative() {
            self.shared.prelude.call(context, &self.shared.prelude.negate, &[magnitude])
        } else {
            Ok(magnitude)
        }
    }

    fn exhausted(&self) -> Thrown<'c> {
        self.error("RangeError", "Out of memory or stack")
    }

    fn error(&self, name: &str, message: &str) -> Thrown<'c> {
        let text = |text| EngineString::from_str(self.context.table(), text);
        let error = self.shared.prelude.error(self.context, &text(name), Some(name), &text(message));
        error.map_or_else(|thrown| thrown, Thrown)
    }
}
