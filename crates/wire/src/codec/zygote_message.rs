//! [`ZygoteRequest`] and [`ZygoteReply`] in bytes.

use super::Message;
use super::bounds::{NAME_BYTES, SENTENCE_BYTES};
use super::error::{DecodeError, EncodeError};
use super::record::{RECORD_OVERHEAD, RecordReader, RecordWriter, read_message, write_message};
use crate::budget::Budget;
use crate::message::{ExitStatus, SandboxMode, ZygoteReply, ZygoteRequest};

const SPAWN: u64 = 0;
const COLLECT: u64 = 1;
const BECOME_TEMPLATE: u64 = 2;

const LISTENING: u64 = 0;
const ENGINE_UNAVAILABLE: u64 = 1;
const SPAWNED: u64 = 2;
const SPAWN_FAILED: u64 = 3;
const EXITED: u64 = 4;
const TEMPLATE_READY: u64 = 5;

const EXIT_CODE: u64 = 0;
const EXIT_SIGNAL: u64 = 1;
const EXIT_UNKNOWN: u64 = 2;

/// The number of each mode, which is also its place in this list.
const MODES: [SandboxMode; 3] = [SandboxMode::Require, SandboxMode::Auto, SandboxMode::Off];

impl Message for ZygoteRequest {
    fn encode(&self, out: &mut Vec<u8>, budget: &Budget) -> Result<(), EncodeError> {
        write_message(out, budget, |writer| {
            match *self {
                Self::Spawn { sandbox, empty_root, web } => {
                    writer.record(SPAWN, 3);
                    writer.unsigned(sandbox as u64);
                    writer.boolean(empty_root);
                    writer.boolean(web);
                }
                Self::Collect { pid } => {
                    writer.record(COLLECT, 1);
                    writer.signed(pid);
                }
                Self::BecomeTemplate { sandbox, empty_root } => {
                    writer.record(BECOME_TEMPLATE, 2);
                    writer.unsigned(sandbox as u64);
                    writer.boolean(empty_root);
                }
            }
            Ok(())
        })
    }

    fn decode(bytes: &[u8], budget: &Budget) -> Result<Self, DecodeError> {
        read_message(bytes, budget, |reader| {
            let record = reader.record("request to the zygote")?;
            match (record.number, record.fields) {
                (SPAWN, 3) => Ok(Self::Spawn {
                    sandbox: reader.choice("sandbox mode", &MODES)?,
                    empty_root: reader.boolean()?,
                    web: reader.boolean()?,
                }),
                (COLLECT, 1) => Ok(Self::Collect { pid: reader.signed()? }),
                (BECOME_TEMPLATE, 2) => Ok(Self::BecomeTemplate {
                    sandbox: reader.choice("sandbox mode", &MODES)?,
                    empty_root: reader.boolean()?,
                }),
                _ => Err(record.unknown()),
            }
        })
    }

    fn max_encoded_bytes(_: &Budget) -> usize {
        RECORD_OVERHEAD
    }
}

impl Message for ZygoteReply {
    fn encode(&self, out: &mut Vec<u8>, budget: &Budget) -> Result<(), EncodeError> {
        write_message(out, budget, |writer| {
            match self {
                Self::Listening { build, engine } => {
                    writer.record(LISTENING, 2);
                    writer.string("the build", build, NAME_BYTES)?;
                    writer.string("the engine", engine, NAME_BYTES)?;
                }
                Self::EngineUnavailable { reason } => {
                    writer.record(ENGINE_UNAVAILABLE, 1);
                    writer.sentence(reason);
                }
                Self::Spawned { pid } => {
                    writer.record(SPAWNED, 1);
                    writer.signed(*pid);
                }
                Self::SpawnFailed { reason } => {
                    writer.record(SPAWN_FAILED, 1);
                    writer.sentence(reason);
                }
                Self::TemplateReady => writer.record(TEMPLATE_READY, 0),
                Self::Exited { pid, status } => {
                    writer.record(EXITED, 2);
                    writer.signed(*pid);
                    write_status(writer, *status);
                }
            }
            Ok(())
        })
    }

    fn decode(bytes: &[u8], budget: &Budget) -> Result<Self, DecodeError> {
        read_message(bytes, budget, |reader| {
            let record = reader.record("reply of the zygote")?;
            match (record.number, record.fields) {
                (LISTENING, 2) => Ok(Self::Listening {
                    build: reader.string("the build", NAME_BYTES)?,
                    engine: reader.string("the engine", NAME_BYTES)?,
                }),
                (ENGINE_UNAVAILABLE, 1) => {
                    Ok(Self::EngineUnavailable { reason: reader.sentence("a reason")? })
                }
                (SPAWNED, 1) => Ok(Self::Spawned { pid: reader.signed()? }),
                (SPAWN_FAILED, 1) => Ok(Self::SpawnFailed { reason: reader.sentence("a reason")? }),
                (TEMPLATE_READY, 0) => Ok(Self::TemplateReady),
                (EXITED, 2) => Ok(Self::Exited { pid: reader.signed()?, status: read_status(reader)? }),
                _ => Err(record.unknown()),
            }
        })
    }

    fn max_encoded_bytes(_: &Budget) -> usize {
        (2 * NAME_BYTES).max(SENTENCE_BYTES) + RECORD_OVERHEAD
    }
}

fn write_status(writer: &mut RecordWriter<'_>, status: ExitStatus) {
    match status {
        ExitStatus::Code(code) => {
            writer.record(EXIT_CODE, 1);
            writer.signed(code);
        }
        ExitStatus::Signal(signal) => {
            writer.record(EXIT_SIGNAL, 1);
            writer.signed(signal);
        }
        ExitStatus::Unknown => writer.record(EXIT_UNKNOWN, 0),
    }
}

fn read_status(reader: &mut RecordReader<'_>) -> Result<ExitStatus, DecodeError> {
    let record = reader.record("exit status")?;
    match (record.number, record.fields) {
        (EXIT_CODE, 1) => Ok(ExitStatus::Code(reader.signed()?)),
        (EXIT_SIGNAL, 1) => Ok(ExitStatus::Signal(reader.signed()?)),
        (EXIT_UNKNOWN, 0) => Ok(ExitStatus::Unknown),
        _ => Err(record.unknown()),
    }
}
