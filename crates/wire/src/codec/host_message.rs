//! [`HostMessage`] in bytes.

use std::slice;

use super::Message;
use super::bounds::{
    BINDING_NAME_BYTES, BINDINGS, ERROR_NAME_BYTES, ERROR_TEXT_BYTES, NAME_BYTES, RELEASED, SOURCE_BYTES,
};
use super::error::{DecodeError, EncodeError};
use super::record::{RECORD_OVERHEAD, RecordReader, RecordWriter, read_message, take_message, write_message};
use super::wasm_module::{MAX_WASM_MODULE_BYTES, read_wasm_module, write_wasm_module};
use crate::budget::Budget;
use crate::message::{Binding, HostError, HostMessage, Language, Limits, Place, Start, StreamRequest};
use crate::path::Segment;
use crate::value::Value;

const START: u64 = 0;
const BIND: u64 = 1;
const EVAL: u64 = 2;
const ANSWER: u64 = 3;
const CANCEL: u64 = 4;
const INVOKE: u64 = 5;
const RELEASE: u64 = 6;
const EVAL_MODULE: u64 = 7;
const PULL: u64 = 8;
const LOAD_WASM: u64 = 9;
const ATTENTIVE: u64 = 10;

/// The number of each language, which is also its place in this list.
const LANGUAGES: [Language; 3] = [Language::JavaScript, Language::TypeScript, Language::PlainJavaScript];

const GLOBAL: u64 = 0;
const OBJECT: u64 = 1;
const MODULE: u64 = 2;
const IMPORT: u64 = 3;
/// As [`LANGUAGES`], of what a stream is asked.
const STREAM_REQUESTS: [StreamRequest; 2] = [StreamRequest::Next, StreamRequest::Return];

const ANSWER_VALUE: u64 = 0;
const ANSWER_ERROR: u64 = 1;

impl Message for HostMessage {
    fn encode(&self, out: &mut Vec<u8>, budget: &Budget) -> Result<(), EncodeError> {
        write_message(out, budget, |writer| match self {
            Self::Start(start) => {
                write_start(writer, start);
                Ok(())
            }
            Self::Bind(bindings) => write_bind(writer, bindings),
            Self::Eval { id, source, name, language, redeclare, timeout_ms } => {
                writer.record(EVAL, 6);
                writer.unsigned(*id);
                writer.text("the source", source, SOURCE_BYTES)?;
                writer.string("the script's name", name, NAME_BYTES)?;
                writer.unsigned(*language as u64);
                writer.boolean(*redeclare);
                writer.unsigned(*timeout_ms);
                Ok(())
            }
            Self::EvalModule { id, source, name, language, timeout_ms } => {
                writer.record(EVAL_MODULE, 5);
                writer.unsigned(*id);
                writer.text("the source", source, SOURCE_BYTES)?;
                writer.string("the module's name", name, NAME_BYTES)?;
                writer.unsigned(*language as u64);
                writer.unsigned(*timeout_ms);
                Ok(())
            }
            Self::LoadWasm { id, module, first_function, timeout_ms } => {
                writer.record(LOAD_WASM, 7);
                writer.unsigned(*id);
                write_wasm_module(writer, module)?;
                writer.unsigned((*first_function).into());
                writer.unsigned(*timeout_ms);
                Ok(())
            }
            Self::Invoke { id, function, arguments, timeout_ms, within } => {
                writer.record(INVOKE, 5);
                writer.unsigned(*id);
                writer.unsigned(*function);
                writer.list("the arguments", arguments.len(), usize::MAX)?;
                for (index, argument) in arguments.iter().enumerate() {
                    writer.value(argument, &[Segment::Index(index)])?;
                }
                writer.unsigned(*timeout_ms);
                writer.unsigned_or_null(*within);
                Ok(())
            }
            Self::Pull { id, stream, what, timeout_ms } => {
                writer.record(PULL, 4);
                writer.unsigned(*id);
                writer.unsigned(*stream);
                writer.unsigned(*what as u64);
                writer.unsigned(*timeout_ms);
                Ok(())
            }
            Self::Release(functions) => {
                writer.record(RELEASE, 1);
                writer.list("the functions", functions.len(), RELEASED)?;
                for &function in functions {
                    writer.unsigned(function);
                }
                Ok(())
            }
            Self::Answer { id, outcome } => {
                writer.record(ANSWER, 2);
                writer.unsigned(*id);
                write_outcome(writer, outcome)
            }
            Self::Cancel { id } => {
                writer.record(CANCEL, 1);
                writer.unsigned(*id);
                Ok(())
            }
            Self::Attentive(attentive) => {
                writer.record(ATTENTIVE, 1);
                writer.boolean(*attentive);
                Ok(())
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
        let bind = BINDINGS * (2 * BINDING_NAME_BYTES + RECORD_OVERHEAD);
        let eval = SOURCE_BYTES + NAME_BYTES;
        let error = ERROR_NAME_BYTES + ERROR_TEXT_BYTES;
        bind.max(eval).max(MAX_WASM_MODULE_BYTES).max(error).max(budget.bytes).saturating_add(RECORD_OVERHEAD)
    }
}

impl HostMessage {
    fn read(reader: &mut RecordReader<'_>) -> Result<Self, DecodeError> {
        let record = reader.record("host message")?;
        match (record.number, record.fields) {
            (START, 9) => read_start(reader),
            (BIND, 1) => Ok(Self::Bind(reader.list("the bindings", BINDINGS, read_binding)?)),
            (EVAL, 6) => Ok(Self::Eval {
                id: reader.unsigned()?,
                source: reader.text("the source", SOURCE_BYTES)?,
                name: reader.string("the script's name", NAME_BYTES)?,
                language: reader.choice("language", &LANGUAGES)?,
                redeclare: reader.boolean()?,
                timeout_ms: reader.unsigned()?,
            }),
            (EVAL_MODULE, 5) => Ok(Self::EvalModule {
                id: reader.unsigned()?,
                source: reader.text("the source", SOURCE_BYTES)?,
                name: reader.string("the module's name", NAME_BYTES)?,
                language: reader.choice("language", &LANGUAGES)?,
                timeout_ms: reader.unsigned()?,
            }),
            (LOAD_WASM, 7) => Ok(Self::LoadWasm {
                id: reader.unsigned()?,
                module: read_wasm_module(reader)?,
                first_function: reader.unsigned_32()?,
                timeout_ms: reader.unsigned()?,
            }),
            (INVOKE, 5) => Ok(Self::Invoke {
                id: reader.unsigned()?,
                function: reader.unsigned()?,
                arguments: reader.values("the arguments")?,
                timeout_ms: reader.unsigned()?,
                within: reader.unsigned_or_null()?,
            }),
            (PULL, 4) => Ok(Self::Pull {
                id: reader.unsigned()?,
                stream: reader.unsigned()?,
                what: reader.choice("what a stream is asked", &STREAM_REQUESTS)?,
                timeout_ms: reader.unsigned()?,
            }),
            (RELEASE, 1) => {
                Ok(Self::Release(reader.list("the functions", RELEASED, RecordReader::unsigned)?))
            }
            (ANSWER, 2) => Ok(Self::Answer { id: reader.unsigned()?, outcome: read_outcome(reader)? }),
            (CANCEL, 1) => Ok(Self::Cancel { id: reader.unsigned()? }),
            (ATTENTIVE, 1) => Ok(Self::Attentive(reader.boolean()?)),
            _ => Err(record.unknown()),
        }
    }

    /// The values in it, in the order of reading.
    fn values(&mut self) -> &mut [Value] {
        match self {
            Self::Invoke { arguments, .. } => arguments,
            Self::Answer { outcome: Ok(value), .. } => slice::from_mut(value),
            _ => &mut [],
        }
    }
}

fn write_start(writer: &mut RecordWriter<'_>, start: &Start) {
    let Start { limits, clock, random_seed, strict_eval, web } = start;
    writer.record(START, 9);
    writer.unsigned(limits.max_heap_bytes);
    writer.unsigned(limits.max_value_bytes);
    writer.unsigned(limits.max_value_nodes);
    writer.unsigned(limits.max_value_depth.into());
    writer.boolean(limits.console);
    writer.signed_or_null(*clock);
    writer.unsigned_or_null(*random_seed);
    writer.boolean(*strict_eval);
    writer.boolean(*web);
}

fn read_start(reader: &mut RecordReader<'_>) -> Result<HostMessage, DecodeError> {
    Ok(HostMessage::Start(Start {
        limits: Limits {
            max_heap_bytes: reader.unsigned()?,
            max_value_bytes: reader.unsigned()?,
            max_value_nodes: reader.unsigned()?,
            max_value_depth: reader.unsigned_32()?,
            console: reader.boolean()?,
        },
        clock: reader.signed_or_null()?,
        random_seed: reader.unsigned_or_null()?,
        strict_eval: reader.boolean()?,
        web: reader.boolean()?,
    }))
}

fn write_bind(writer: &mut RecordWriter<'_>, bindings: &[Binding]) -> Result<(), EncodeError> {
    writer.record(BIND, 1);
    writer.list("the bindings", bindings.len(), BINDINGS)?;
    for Binding { function, place, name, asynchronous } in bindings {
        writer.record((*function).into(), 3);
        match place {
            Place::Global => writer.record(GLOBAL, 0),
            Place::Object(object) => {
                writer.record(OBJECT, 1);
                writer.text("an object's name", object, BINDING_NAME_BYTES)?;
            }
            Place::Module(module) => {
                writer.record(MODULE, 1);
                writer.text("a module's name", module, BINDING_NAME_BYTES)?;
            }
            Place::Import => writer.record(IMPORT, 0),
        }
        writer.text("a function's name", name, BINDING_NAME_BYTES)?;
        writer.boolean(*asynchronous);
    }
    Ok(())
}

/// A binding is the record whose number is its function's.
fn read_binding(reader: &mut RecordReader<'_>) -> Result<Binding, DecodeError> {
    let record = reader.record("binding")?;
    match (u32::try_from(record.number), record.fields) {
        (Ok(function), 3) => Ok(Binding {
            function,
            place: read_place(reader)?,
            name: reader.text("a function's name", BINDING_NAME_BYTES)?,
            asynchronous: reader.boolean()?,
        }),
        _ => Err(record.unknown()),
    }
}

fn read_place(reader: &mut RecordReader<'_>) -> Result<Place, DecodeError> {
    let record = reader.record("place")?;
    match (record.number, record.fields) {
        (GLOBAL, 0) => Ok(Place::Global),
        (OBJECT, 1) => Ok(Place::Object(reader.text("an object's name", BINDING_NAME_BYTES)?)),
        (MODULE, 1) => Ok(Place::Module(reader.text("a module's name", BINDING_NAME_BYTES)?)),
        (IMPORT, 0) => Ok(Place::Import),
        _ => Err(record.unknown()),
    }
}

fn write_outcome(
    writer: &mut RecordWriter<'_>,
    outcome: &Result<Value, HostError>,
) -> Result<(), EncodeError> {
    match outcome {
        Ok(value) => {
            writer.record(ANSWER_VALUE, 1);
            writer.value(value, &[])
        }
        Err(HostError { name, message }) => {
            writer.record(ANSWER_ERROR, 2);
            writer.explanation(name, ERROR_NAME_BYTES);
            writer.explanation(message, ERROR_TEXT_BYTES);
            Ok(())
        }
    }
}

fn read_outcome(reader: &mut RecordReader<'_>) -> Result<Result<Value, HostError>, DecodeError> {
    let record = reader.record("answer")?;
    match (record.number, record.fields) {
        (ANSWER_VALUE, 1) => Ok(Ok(reader.value_of_message()?)),
        (ANSWER_ERROR, 2) => Ok(Err(HostError {
            name: reader.text("an error's name", ERROR_NAME_BYTES)?,
            message: reader.text("an error's message", ERROR_TEXT_BYTES)?,
        })),
        _ => Err(record.unknown()),
    }
}
