//! [`JsError`] in bytes, with the errors that it leads to.

use super::bounds::{
    AGGREGATED, ERROR_DEPTH, ERROR_NAME_BYTES, ERROR_PROPERTIES, ERROR_PROPERTY_NAME_BYTES, ERROR_TEXT_BYTES,
    FRAME_NAME_BYTES, FRAMES, RELATED_ERRORS, RELATED_FRAMES, RELATED_NAME_BYTES, RELATED_TEXT_BYTES,
};
use super::error::{DecodeError, EncodeError};
use super::record::{RECORD_OVERHEAD, Record, RecordReader, RecordWriter};
use crate::message::{ErrorDetails, Frame, JsError};
use crate::value::Value;

/// The record of an error; that of its details has the same number, in a place where nothing else can stand.
pub(super) const ERROR: u64 = 1;
/// Fields of an error without details.
const PLAIN: u64 = 4;
/// Fields of one with details.
const DETAILED: u64 = 5;

/// How long the parts of one error may be.
struct Bounds {
    name: usize,
    text: usize,
    frames: usize,
    frame_name: usize,
}

impl Bounds {
    const OUTERMOST: Self =
        Self { name: ERROR_NAME_BYTES, text: ERROR_TEXT_BYTES, frames: FRAMES, frame_name: FRAME_NAME_BYTES };
    const RELATED: Self = Self {
        name: RELATED_NAME_BYTES,
        text: RELATED_TEXT_BYTES,
        frames: RELATED_FRAMES,
        frame_name: RELATED_NAME_BYTES,
    };

    /// More than the bytes of such an error without the values in it.
    const fn bytes(&self) -> usize {
        self.name
            + 2 * self.text
            + self.frames * (2 * self.frame_name + RECORD_OVERHEAD)
            + ERROR_PROPERTIES * (ERROR_PROPERTY_NAME_BYTES + RECORD_OVERHEAD)
            + RECORD_OVERHEAD
    }
}

/// More than the bytes of an error and of all that it leads to, without the values in them.
pub(super) const MAX_ERROR_BYTES: usize =
    Bounds::OUTERMOST.bytes() + RELATED_ERRORS * Bounds::RELATED.bytes();

/// More than the bytes of one written by [`write_short_error`], without the values in it.
pub(super) const MAX_SHORT_ERROR_BYTES: usize = Bounds::RELATED.bytes();

/// Where in a tree of errors one stands.
struct Place<'l> {
    depth: usize,
    /// How many errors the tree may still have.
    left: &'l mut usize,
}

impl Place<'_> {
    fn bounds(&self) -> &'static Bounds {
        if self.depth == 0 { &Bounds::OUTERMOST } else { &Bounds::RELATED }
    }

    /// How many more errors may come from this one.
    fn room(&self, limit: usize) -> usize {
        if self.depth < ERROR_DEPTH { limit.min(*self.left) } else { 0 }
    }

    fn inside(&mut self) -> Place<'_> {
        Place { depth: self.depth + 1, left: self.left }
    }
}

/// Writes an error, each part cut to its bound; what does not fit into the budget of values is left out.
pub(super) fn write_error(writer: &mut RecordWriter<'_>, error: &JsError) -> Result<(), EncodeError> {
    write_tree(writer, error, &mut Place { depth: 0, left: &mut RELATED_ERRORS.clone() })
}

fn write_tree(
    writer: &mut RecordWriter<'_>,
    error: &JsError,
    place: &mut Place<'_>,
) -> Result<(), EncodeError> {
    let JsError { name, message, stack, frames, details } = error;
    let bounds = place.bounds();
    let frames = &frames[..frames.len().min(bounds.frames)];
    writer.record(ERROR, if details.is_some() { DETAILED } else { PLAIN });
    writer.explanation(name, bounds.name);
    writer.explanation(message, bounds.text);
    writer.explanation(stack, bounds.text);
    writer.list("the stack", frames.len(), bounds.frames)?;
    for Frame { function, file, line, column } in frames {
        writer.record((*line).into(), 3);
        writer.unsigned((*column).into());
        writer.explanation(function, bounds.frame_name);
        writer.explanation(file, bounds.frame_name);
    }
    match details {
        Some(details) => write_details(writer, details, place),
        None => Ok(()),
    }
}

fn write_details(
    writer: &mut RecordWriter<'_>,
    details: &ErrorDetails,
    place: &mut Place<'_>,
) -> Result<(), EncodeError> {
    let ErrorDetails { value, properties, cause, errors } = details;
    let value = value.iter().filter(|value| !holds_function(value));
    let properties = properties
        .iter()
        .filter(|(name, value)| name.len_bytes() <= ERROR_PROPERTY_NAME_BYTES && !holds_function(value))
        .take(ERROR_PROPERTIES);
    writer.record(ERROR, 4);
    writer.what_fits(value, |writer, value| writer.value(value, &[]));
    writer.what_fits(properties, |writer, (name, value)| {
        writer.record(ERROR, 2);
        writer.text("a property's name", name, ERROR_PROPERTY_NAME_BYTES)?;
        writer.value(value, &[])
    });
    write_related(writer, "the cause", cause.as_slice(), 1, place)?;
    write_related(writer, "the errors of an aggregate", errors, AGGREGATED, place)
}

fn write_related(
    writer: &mut RecordWriter<'_>,
    field: &'static str,
    errors: &[JsError],
    limit: usize,
    place: &mut Place<'_>,
) -> Result<(), EncodeError> {
    let errors = &errors[..errors.len().min(place.room(limit))];
    // Taken before any of them takes its own, so that both ends know how many follow.
    *place.left -= errors.len();
    writer.list(field, errors.len(), limit)?;
    errors.iter().try_for_each(|error| write_tree(writer, error, &mut place.inside()))
}

/// Writes an error beside the outcome of an evaluation: as one that another leads to, and without those that it leads to.
pub(super) fn write_short_error(writer: &mut RecordWriter<'_>, error: &JsError) -> Result<(), EncodeError> {
    write_tree(writer, error, &mut Place { depth: ERROR_DEPTH, left: &mut 0 })
}

/// Reads what [`write_short_error`] writes.
pub(super) fn read_short_error(reader: &mut RecordReader<'_>) -> Result<JsError, DecodeError> {
    let record = reader.record("error")?;
    read_tree(reader, &record, &mut Place { depth: ERROR_DEPTH, left: &mut 0 })
}

/// Reads an error whose record has begun.
pub(super) fn read_error(reader: &mut RecordReader<'_>, record: &Record) -> Result<JsError, DecodeError> {
    read_tree(reader, record, &mut Place { depth: 0, left: &mut RELATED_ERRORS.clone() })
}

fn read_tree(
    reader: &mut RecordReader<'_>,
    record: &Record,
    place: &mut Place<'_>,
) -> Result<JsError, DecodeError> {
    let bounds = place.bounds();
    let (ERROR, PLAIN | DETAILED) = (record.number, record.fields) else { return Err(record.unknown()) };
    Ok(JsError {
        name: reader.text("an error's name", bounds.name)?,
        message: reader.text("an error's message", bounds.text)?,
        stack: reader.text("an error's stack", bounds.text)?,
        frames: reader.list("the stack", bounds.frames, |reader| read_frame(reader, bounds))?,
        details: match record.fields {
            DETAILED => Some(Box::new(read_details(reader, place)?)),
            _ => None,
        },
    })
}

fn read_details(reader: &mut RecordReader<'_>, place: &mut Place<'_>) -> Result<ErrorDetails, DecodeError> {
    let record = reader.record("details of an error")?;
    let (ERROR, 4) = (record.number, record.fields) else { return Err(record.unknown()) };
    Ok(ErrorDetails {
        value: reader.list("what was thrown", 1, read_value)?.pop(),
        properties: reader.list("an error's properties", ERROR_PROPERTIES, |reader| {
            let record = reader.record("property of an error")?;
            match (record.number, record.fields) {
                (ERROR, 2) => {
                    Ok((reader.text("a property's name", ERROR_PROPERTY_NAME_BYTES)?, read_value(reader)?))
                }
                _ => Err(record.unknown()),
            }
        })?,
        cause: read_related(reader, "the cause", 1, place)?.pop(),
        errors: read_related(reader, "the errors of an aggregate", AGGREGATED, place)?,
    })
}

fn read_related(
    reader: &mut RecordReader<'_>,
    field: &'static str,
    limit: usize,
    place: &mut Place<'_>,
) -> Result<Vec<JsError>, DecodeError> {
    let length = reader.list_of(field, place.room(limit))?;
    *place.left -= length;
    (0..length)
        .map(|_| {
            let record = reader.record("error")?;
            read_tree(reader, &record, &mut place.inside())
        })
        .collect()
}

fn read_value(reader: &mut RecordReader<'_>) -> Result<Value, DecodeError> {
    let offset = reader.position();
    let value = reader.value()?;
    if holds_function(&value) {
        return Err(DecodeError::Unexpected { offset, expected: "a value without functions" });
    }
    Ok(value)
}

/// A frame is the record whose number is its line.
fn read_frame(reader: &mut RecordReader<'_>, bounds: &Bounds) -> Result<Frame, DecodeError> {
    let record = reader.record("frame of a stack")?;
    match (u32::try_from(record.number), record.fields) {
        (Ok(line), 3) => Ok(Frame {
            line,
            column: reader.unsigned_32()?,
            function: reader.text("a frame's function", bounds.frame_name)?,
            file: reader.text("a frame's file", bounds.frame_name)?,
        }),
        _ => Err(record.unknown()),
    }
}

/// A function or a stream would have to be released, and nobody looks for one in an error. Recursion is bounded by the depth of values.
fn holds_function(value: &Value) -> bool {
    match value {
        Value::Function(_) | Value::Stream(_) => true,
        Value::Array(items) | Value::Set(items) => items.iter().any(holds_function),
        Value::Object(properties) => properties.iter().any(|(_, value)| holds_function(value)),
        Value::Map(entries) => {
            entries.iter().any(|(key, value)| holds_function(key) || holds_function(value))
        }
        _ => false,
    }
}
