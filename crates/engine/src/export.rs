//! From a guest's value to a [`Value`].

use pydeno_wire::{Budget, Path, Segment, Text, Value};

use crate::conversion_error::{ConversionError, Refusal, Refused};
use crate::ffi::{Context, Kind, Local};
use crate::isolate::Shared;
use crate::prelude::Prelude;
use crate::tape;

/// Exports one value, and takes what it costs from the budget.
///
/// A primitive is read with a call or two; only for objects does the prelude run.
pub(crate) fn value<'c>(
    context: &'c Context,
    shared: &Shared,
    value: Local<'c>,
    budget: &mut Budget,
) -> Result<Value, ConversionError<'c>> {
    match primitive(context, value, budget)? {
        Some(value) => Ok(value),
        None => through_the_prelude(context, shared, value, budget, shared.held.room()),
    }
}

/// As [`value`], but refuses functions, which somebody would have to let go of.
pub(crate) fn data<'c>(
    context: &'c Context,
    shared: &Shared,
    value: Local<'c>,
    budget: &mut Budget,
) -> Result<Value, ConversionError<'c>> {
    match primitive(context, value, budget)? {
        Some(value) => Ok(value),
        None => through_the_prelude(context, shared, value, budget, 0),
    }
}

/// Exports a value that needs no prelude; `None` for one that does.
pub(crate) fn primitive(
    context: &Context,
    value: Local<'_>,
    budget: &mut Budget,
) -> Result<Option<Value>, Refused> {
    let kind = context.kind(value);
    let exported = match kind {
        Kind::Undefined => Value::Undefined,
        Kind::Null => Value::Null,
        Kind::Boolean => Value::Bool(context.to_bool(value)),
        Kind::Number => Value::Number(context.number_of(value, kind)),
        Kind::String => {
            let string =
                context.string_of(value, kind).ok_or_else(|| Refused::root(Refusal::TooManyBytes))?;
            take(&mut budget.bytes, string.len(), Refusal::TooManyBytes)?;
            Value::String(string.to_text())
        }
        Kind::Symbol => return Err(Refused::root(Refusal::Symbol)),
        Kind::Object | Kind::BigInt => return Ok(None),
    };
    take(&mut budget.nodes, 1, Refusal::TooManyNodes)?;
    Ok(Some(exported))
}

fn take(left: &mut usize, used: usize, refusal: Refusal) -> Result<(), Refused> {
    *left = left.checked_sub(used).ok_or_else(|| Refused::root(refusal))?;
    Ok(())
}

fn through_the_prelude<'c>(
    context: &'c Context,
    shared: &Shared,
    value: Local<'c>,
    budget: &mut Budget,
    room_for_functions: usize,
) -> Result<Value, ConversionError<'c>> {
    let prelude = &shared.prelude;
    if budget.nodes == 0 {
        return Err(Refused::root(Refusal::TooManyNodes).into());
    }
    let arguments = [
        value,
        context.number(budget.nodes as f64),
        context.number(budget.bytes as f64),
        context.number(f64::from(budget.effective_depth())),
        context.number(room_for_functions as f64),
    ];
    let refusal = prelude.flatten(context, &arguments)?;
    if let Some(reason) = Refusal::from_number(context.to_number(refusal)) {
        let path = path(context, prelude)?;
        prelude.call(context, &prelude.release, &[])?;
        return Err(Refused { path, reason }.into());
    }
    let before = shared.held.mark();
    read(context, shared, budget).inspect_err(|_| shared.held.release_since(before))
}

/// From here on the prelude is told to let go of what it holds of a value; below, telling it costs more.
const LARGE: usize = 4096;

fn read<'c>(
    context: &'c Context,
    shared: &Shared,
    budget: &mut Budget,
) -> Result<Value, ConversionError<'c>> {
    let prelude = &shared.prelude;
    let result = &prelude.result;
    let unreadable = || Refused::root(Refusal::Unreadable);
    let numbers = context.copy_counted_numbers(result.get(context, &result.tape)?)?;
    let ([_, nodes, bytes, buffers, functions], tape) = numbers.split_first_chunk().ok_or_else(unreadable)?;
    budget.nodes = budget.nodes.saturating_sub(*nodes as usize);
    budget.bytes = budget.bytes.saturating_sub(*bytes as usize);
    let text = context.to_string(result.get(context, &result.text)?).ok_or_else(unreadable)?;
    let list =
        |count: f64, name| if count > 0.0 { result.get(context, name) } else { Ok(context.undefined()) };
    let lists = tape::Lists {
        buffers: list(*buffers, &result.buffers)?,
        functions: list(*functions, &result.functions)?,
        held: &shared.held,
        stack: shared.stack,
        prelude,
    };
    let value = tape::read(context, tape, &text, lists)?.ok_or_else(unreadable)?;
    if *functions > 0.0 || tape.len().max(*bytes as usize) >= LARGE {
        prelude.call(context, &prelude.release, &[])?;
    }
    Ok(value)
}

// Steps of a path; flatten.js writes them.
const KEY: u8 = 0;
const INDEX: u8 = 1;
const MEMBER: u8 = 2;
const MAP_KEY: u8 = 3;

/// The way to what was refused.
fn path<'c>(context: &'c Context, prelude: &Prelude) -> Result<Path, ConversionError<'c>> {
    let result = &prelude.result;
    let steps = result.number(context, &result.steps)? as u32;
    let list = result.get(context, &result.path)?;
    let mut segments = Vec::with_capacity(steps as usize);
    for step in (0..steps).rev() {
        let kind = context.to_number(context.get_index(list, 2 * step)?);
        let key = context.get_index(list, 2 * step + 1)?;
        let index = || context.to_number(key) as usize;
        segments.push(match kind as u8 {
            KEY => Segment::Key(context.to_string(key).map_or_else(Text::default, |key| key.to_text())),
            INDEX => Segment::Index(index()),
            MEMBER => Segment::Member(index()),
            MAP_KEY => Segment::MapKey(index()),
            _ => Segment::MapValue(index()),
        });
    }
    Ok(segments.into_iter().collect())
}
