//! [`WorkerMessage`] in bytes.

use std::slice;

use super::Message;
use super::bounds::{CONSOLE_BYTES, LAYERS, NAME_BYTES, SENTENCE_BYTES, UNHANDLED};
use super::error::{DecodeError, EncodeError};
use super::js_error::{
    self, MAX_ERROR_BYTES, MAX_SHORT_ERROR_BYTES, read_error, read_short_error, write_error,
    write_short_error,
};
use super::record::{RECORD_OVERHEAD, RecordReader, RecordWriter, read_message, take_message, write_message};
use crate::budget::Budget;
use crate::message::{ConsoleLevel, Failure, LayerReport, Ready, SandboxReport, WorkerMessage};
use crate::path::Segment;
use crate::value::Value;

const READY: u64 = 0;
const REFUSED: u64 = 1;
const CALL: u64 = 2;
const CONSOLE: u64 = 3;
const DONE: u64 = 4;
const WAITING: u64 = 5;
const CONSOLE_DROPPED: u64 = 6;

const DONE_VALUE: u64 = 0;
const DONE_JS: u64 = js_error::ERROR;
const DONE_TIMEOUT: u64 = 2;
const DONE_HEAP_LIMIT: u64 = 3;
const DONE_CANCELLED: u64 = 4;
const DONE_CONVERSION: u64 = 5;
const DONE_NEVER_SETTLES: u64 = 6;
const DONE_CANNOT_WAIT: u64 = 7;
const DONE_UNKNOWN_FUNCTION: u64 = 8;
const DONE_STREAM_ENDED: u64 = 9;

/// The number of each level that a worker can send, which is also its place in this list.
const LEVELS: [ConsoleLevel; 5] =
    [ConsoleLevel::Debug, ConsoleLevel::Log, ConsoleLevel::Info, ConsoleLevel::Warn, ConsoleLevel::Error];

impl Message for WorkerMessage {
    fn encode(&self, out: &mut Vec<u8>, budget: &Budget) -> Result<(), EncodeError> {
        write_message(out, budget, |writer| match self {
            Self::Ready(Ready { build, engine, sandbox }) => {
                writer.record(READY, 3);
                writer.string("the build", build, NAME_BYTES)?;
                writer.string("the engine", engine, NAME_BYTES)?;
                write_report(writer, sandbox)
            }
            Self::Refused(sandbox) => {
                writer.record(REFUSED, 1);
                write_report(writer, sandbox)
            }
            Self::Call { id, request, function, arguments } => {
                writer.record(CALL, 4);
                writer.unsigned(*id);
                writer.unsigned(*request);
                writer.unsigned((*function).into());
                writer.list("the arguments", arguments.len(), usize::MAX)?;
                for (index, argument) in arguments.iter().enumerate() {
                    writer.value(argument, &[Segment::Index(index)])?;
                }
                Ok(())
            }
            Self::Waiting { taken } => {
                writer.record(WAITING, 1);
                writer.unsigned(*taken);
                Ok(())
            }
            Self::ConsoleDropped { lines, bytes } => {
                writer.record(CONSOLE_DROPPED, 2);
                writer.unsigned(*lines);
                writer.unsigned(*bytes);
                Ok(())
            }
            Self::Console { level, text } => {
                writer.record(CONSOLE, 2);
                writer.unsigned(*level as u64);
                writer.explanation(text, CONSOLE_BYTES);
                Ok(())
            }
            Self::Done { id, outcome, unhandled } => {
                writer.record(DONE, 3);
                writer.unsigned(*id);
                write_outcome(writer, outcome)?;
                let unhandled = &unhandled[..unhandled.len().min(UNHANDLED)];
                writer.list("the unhandled rejections", unhandled.len(), UNHANDLED)?;
                unhandled.iter().try_for_each(|error| write_short_error(writer, error))
            }
        })
    }

    fn decode(bytes: &[u8], budget: &Budget) -> Result<Self, DecodeError> {
        read_message(bytes, budget, Self::read)
    }

    fn take(buffer: Vec<u8>, start: usize, budget: &Budget) -> Result<Self, DecodeError> {
        take_message(buffer, start, budget, Self::read, Self::values)
    }

    fn max_encoded_bytes(budget: &Budget) -> usize {
        let report = LAYERS * (NAME_BYTES + 2 * SENTENCE_BYTES + RECORD_OVERHEAD);
        let ready = 2 * NAME_BYTES + report;
        // The budget is for the values of a message together, those that errors carry included.
        let done = budget.bytes.saturating_add(MAX_ERROR_BYTES + UNHANDLED * MAX_SHORT_ERROR_BYTES);
        ready.max(CONSOLE_BYTES).max(done).saturating_add(RECORD_OVERHEAD)
    }
}

impl WorkerMessage {
    fn read(reader: &mut RecordReader<'_>) -> Result<Self, DecodeError> {
        let record = reader.record("worker message")?;
        match (record.number, record.fields) {
            (READY, 3) => Ok(Self::Ready(Ready {
                build: reader.string("the build", NAME_BYTES)?,
                engine: reader.string("the engine", NAME_BYTES)?,
                sandbox: read_report(reader)?,
            })),
            (REFUSED, 1) => Ok(Self::Refused(read_report(reader)?)),
            (CALL, 4) => Ok(Self::Call {
                id: reader.unsigned()?,
                request: reader.unsigned()?,
                function: reader.unsigned_32()?,
                arguments: reader.values("the arguments")?,
            }),
            (WAITING, 1) => Ok(Self::Waiting { taken: reader.unsigned()? }),
            (CONSOLE, 2) => Ok(Self::Console {
                level: reader.choice("console level", &LEVELS)?,
                text: reader.text("a console line", CONSOLE_BYTES)?,
            }),
            (CONSOLE_DROPPED, 2) => {
                Ok(Self::ConsoleDropped { lines: reader.unsigned()?, bytes: reader.unsigned()? })
            }
            (DONE, 3) => Ok(Self::Done {
                id: reader.unsigned()?,
                outcome: read_outcome(reader)?,
                unhandled: reader.list("the unhandled rejections", UNHANDLED, read_short_error)?,
            }),
            _ => Err(record.unknown()),
        }
    }

    /// The values in it, in the order of reading.
    fn values(&mut self) -> &mut [Value] {
        match self {
            Self::Call { arguments, .. } => arguments,
            Self::Done { outcome: Ok(value), .. } => slice::from_mut(value),
            _ => &mut [],
        }
    }
}

fn write_report(writer: &mut RecordWriter<'_>, report: &SandboxReport) -> Result<(), EncodeError> {
    writer.list("the sandbox's layers", report.layers.len(), LAYERS)?;
    for LayerReport { name, applied, detail, fix } in &report.layers {
        writer.record((*applied).into(), 3);
        writer.string("a layer's name", name, NAME_BYTES)?;
        writer.sentence(detail);
        writer.sentence(fix);
    }
    Ok(())
}

fn read_report(reader: &mut RecordReader<'_>) -> Result<SandboxReport, DecodeError> {
    Ok(SandboxReport { layers: reader.list("the sandbox's layers", LAYERS, read_layer)? })
}

/// A layer is the record 1 when it is in force, and 0 when it is not.
fn read_layer(reader: &mut RecordReader<'_>) -> Result<LayerReport, DecodeError> {
    let record = reader.record("layer of a sandbox")?;
    match (record.number, record.fields) {
        (applied @ 0..=1, 3) => Ok(LayerReport {
            name: reader.string("a layer's name", NAME_BYTES)?,
            applied: applied == 1,
            detail: reader.sentence("a layer's detail")?,
            fix: reader.sentence("a layer's fix")?,
        }),
        _ => Err(record.unknown()),
    }
}

fn write_outcome(writer: &mut RecordWriter<'_>, outcome: &Result<Value, Failure>) -> Result<(), EncodeError> {
    match outcome {
        Ok(value) => {
            writer.record(DONE_VALUE, 1);
            return writer.value(value, &[]);
        }
        Err(Failure::Js(error)) => return write_error(writer, error),
        Err(Failure::Timeout) => writer.record(DONE_TIMEOUT, 0),
        Err(Failure::HeapLimit) => writer.record(DONE_HEAP_LIMIT, 0),
        Err(Failure::Cancelled) => writer.record(DONE_CANCELLED, 0),
        Err(Failure::Conversion { path, reason }) => {
            writer.record(DONE_CONVERSION, 2);
            writer.sentence(path);
            writer.sentence(reason);
        }
        Err(Failure::NeverSettles) => writer.record(DONE_NEVER_SETTLES, 0),
        Err(Failure::CannotWait) => writer.record(DONE_CANNOT_WAIT, 0),
        Err(Failure::UnknownFunction) => writer.record(DONE_UNKNOWN_FUNCTION, 0),
        Err(Failure::StreamEnded) => writer.record(DONE_STREAM_ENDED, 0),
    }
    Ok(())
}

fn read_outcome(reader: &mut RecordReader<'_>) -> Result<Result<Value, Failure>, DecodeError> {
    let record = reader.record("outcome")?;
    Ok(Err(match (record.number, record.fields) {
        (DONE_VALUE, 1) => return Ok(Ok(reader.value_of_message()?)),
        (DONE_JS, _) => Failure::Js(read_error(reader, &record)?),
        (DONE_TIMEOUT, 0) => Failure::Timeout,
        (DONE_HEAP_LIMIT, 0) => Failure::HeapLimit,
        (DONE_CANCELLED, 0) => Failure::Cancelled,
        (DONE_CONVERSION, 2) => {
            Failure::Conversion { path: reader.sentence("a path")?, reason: reader.sentence("a reason")? }
        }
        (DONE_NEVER_SETTLES, 0) => Failure::NeverSettles,
        (DONE_CANNOT_WAIT, 0) => Failure::CannotWait,
        (DONE_UNKNOWN_FUNCTION, 0) => Failure::UnknownFunction,
        (DONE_STREAM_ENDED, 0) => Failure::StreamEnded,
        _ => return Err(record.unknown()),
    }))
}
