//! What is written down of a session, and its encoding: one value of the wire's kind, in exactly one form.

use std::collections::BTreeMap;

use pydeno_wire::message::{BUILD, Language};
use pydeno_wire::{Budget, MAX_DATE_MILLISECONDS, MAX_SAFE_INTEGER, Text, Value};

use crate::agent::digest::{Digest, encoded};
use crate::agent::error::JournalFault;

/// A session on paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// The engine's library, as the worker found it.
    pub engine: String,
    /// A digest of the options that a guest can tell apart.
    pub fingerprint: Digest,
    /// Where the guest's clocks stand still.
    pub clock: Option<i64>,
    /// Where `Math.random` began.
    pub random_seed: Option<u64>,
    /// What has been used up, by runs that are not in the journal, too.
    pub spent: Spent,
    /// The runs. Only the last may have no outcome: it waits for an answer.
    pub runs: Vec<RecordedRun>,
}

/// How much of its budgets a session has used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls of tools.
    pub calls: u64,
    /// The same by tool, as far as they have budgets of their own.
    pub by_tool: BTreeMap<String, u64>,
    /// The number of the next call.
    pub next_call: u64,
}

impl Spent {
    /// Takes what others have counted where it is more.
    pub fn raise_to(&mut self, other: &Self) {
        self.calls = self.calls.max(other.calls);
        self.next_call = self.next_call.max(other.next_call);
        for (tool, &calls) in &other.by_tool {
            let counted = self.by_tool.entry(tool.clone()).or_default();
            *counted = calls.max(*counted);
        }
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRun {
    /// The program, as it was given.
    pub source: Text,
    /// What it is called in stacks.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// The number of its first call.
    pub first_call: u64,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// A digest of how it ended, unless it waits for an answer.
    pub outcome: Option<Digest>,
}

/// One step of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The guest called a function of the host.
    Call {
        /// The function's number.
        function: u32,
        /// A digest of the arguments.
        arguments: Digest,
    },
    /// The guest was handed an answer.
    Answer {
        /// To which of the run's calls, from 0.
        call: u64,
        /// What.
        answer: Answer,
    },
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The promise is fulfilled.
    Value(Value),
    /// The promise is rejected.
    Error(ToolError),
}

/// An error that the guest is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// Why.
    pub kind: ToolErrorKind,
    /// The error's `name`.
    pub name: Text,
    /// The error's `message`.
    pub message: Text,
}

/// Why a call was answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolErrorKind {
    /// The tool failed.
    Failed,
    /// There is no such tool.
    NotFound,
    /// The tool's own budget is used up.
    Budget,
    /// The arguments are not what the tool takes.
    Arguments,
}

const KINDS: [ToolErrorKind; 4] =
    [ToolErrorKind::Failed, ToolErrorKind::NotFound, ToolErrorKind::Budget, ToolErrorKind::Arguments];

impl Journal {
    /// The encoding; `None` when it is longer than `most` bytes, or an answer has none.
    pub fn encode(&self, most: usize) -> Option<Vec<u8>> {
        let by_tool = self.spent.by_tool.iter();
        let by_tool = by_tool.map(|(name, &calls)| (Text::from(name.as_str()), number(calls))).collect();
        let runs: Option<Vec<Value>> = self.runs.iter().map(RecordedRun::value).collect();
        let value = Value::Array(vec![
            BUILD.into(),
            self.engine.as_str().into(),
            Value::Bytes(self.fingerprint.to_vec()),
            self.clock.map_or(Value::Null, |clock| Value::Number(clock as f64)),
            self.random_seed.map_or(Value::Null, |seed| Value::Bytes(seed.to_be_bytes().to_vec())),
            number(self.spent.calls),
            Value::Object(by_tool),
            number(self.spent.next_call),
            Value::Array(runs?),
        ]);
        let mut bytes = Vec::new();
        value.encode(&mut bytes, &Budget { bytes: most, ..BUDGET }).ok()?;
        Some(bytes)
    }

    /// Reads what [`encode`](Self::encode) has written, from a source that is vouched for or not.
    ///
    /// # Errors
    ///
    /// The bytes are anything else, or of another build.
    pub fn decode(bytes: &[u8]) -> Result<Self, JournalFault> {
        let value = Value::decode(bytes, &Budget { bytes: bytes.len(), ..BUDGET })
            .map_err(|error| JournalFault::Malformed(error.to_string()))?;
        let [build, engine, fingerprint, clock, seed, calls, by_tool, next_call, runs] = items(value)?;
        let build = string(build)?;
        if build != BUILD {
            return Err(JournalFault::Foreign(format!("it is of pydeno {build:.20}, and this is {BUILD}")));
        }
        let Value::Object(by_tool) = by_tool else { return Err(malformed("calls by tool")) };
        if by_tool.windows(2).any(|pair| pair[0].0.to_wtf8() >= pair[1].0.to_wtf8()) {
            return Err(malformed("calls by tool, in order"));
        }
        let by_tool = by_tool.into_iter().map(|(name, calls)| Ok((plain(name)?, unsigned(&calls)?)));
        let Value::Array(runs) = runs else { return Err(malformed("runs")) };
        let runs = runs.into_iter().map(RecordedRun::read).collect::<Result<Vec<_>, _>>()?;
        if runs.iter().rev().skip(1).any(|run| run.outcome.is_none()) {
            return Err(malformed("a run that has not ended before another"));
        }
        Ok(Self {
            engine: string(engine)?,
            fingerprint: array(fingerprint)?,
            clock: match clock {
                Value::Null => None,
                clock => match signed(&clock)? {
                    clock if clock.abs() <= MAX_DATE_MILLISECONDS => Some(clock),
                    _ => return Err(malformed("a clock")),
                },
            },
            random_seed: match seed {
                Value::Null => None,
                seed => Some(u64::from_be_bytes(array(seed)?)),
            },
            spent: Spent {
                calls: unsigned(&calls)?,
                by_tool: by_tool.collect::<Result<_, JournalFault>>()?,
                next_call: unsigned(&next_call)?,
            },
            runs,
        })
    }

    /// About how many bytes the encoding has.
    pub fn size(&self) -> usize {
        1024 + self.runs.iter().map(RecordedRun::size).sum::<usize>()
    }
}

/// Answers are encoded apart, so that nesting is not theirs.
const BUDGET: Budget = Budget { bytes: usize::MAX, nodes: 8_000_000, depth: 16 };

impl RecordedRun {
    fn value(&self) -> Option<Value> {
        let events: Option<Vec<Value>> = self.events.iter().map(Event::value).collect();
        Some(Value::Array(vec![
            Value::String(self.source.clone()),
            self.name.as_str().into(),
            language_name(self.language).into(),
            number(self.first_call),
            Value::Array(events?),
            self.outcome.map_or(Value::Null, |digest| Value::Bytes(digest.to_vec())),
        ]))
    }

    fn read(value: Value) -> Result<Self, JournalFault> {
        let [source, name, language, first_call, events, outcome] = items(value)?;
        let Value::String(source) = source else { return Err(malformed("a program")) };
        let Value::Array(events) = events else { return Err(malformed("events")) };
        Ok(Self {
            source,
            name: string(name)?,
            language: match string(language)?.as_str() {
                "js" => Language::JavaScript,
                "ts" => Language::TypeScript,
                _ => return Err(malformed("a language")),
            },
            first_call: unsigned(&first_call)?,
            events: events.into_iter().map(Event::read).collect::<Result<_, _>>()?,
            outcome: match outcome {
                Value::Null => None,
                outcome => Some(array(outcome)?),
            },
        })
    }

    fn size(&self) -> usize {
        128 + self.source.len_bytes() + self.events.iter().map(Event::size).sum::<usize>()
    }
}

impl Event {
    fn value(&self) -> Option<Value> {
        Some(Value::Array(match self {
            Self::Call { function, arguments } => {
                vec![Value::Number(f64::from(*function)), Value::Bytes(arguments.to_vec())]
            }
            Self::Answer { call, answer: Answer::Value(value) } => {
                vec![number(*call), Value::Null, Value::Bytes(encoded(value)?)]
            }
            Self::Answer { call, answer: Answer::Error(ToolError { kind, name, message }) } => {
                let kind = KINDS.iter().position(|other| other == kind)?;
                vec![
                    number(*call),
                    number(kind as u64),
                    Value::String(name.clone()),
                    Value::String(message.clone()),
                ]
            }
        }))
    }

    fn read(value: Value) -> Result<Self, JournalFault> {
        let Value::Array(parts) = value else { return Err(malformed("an event")) };
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(function), Some(arguments), None, None, None) => {
                let function = u32::try_from(unsigned(&function)?);
                let function = function.map_err(|_| malformed("a function's number"))?;
                Ok(Self::Call { function, arguments: array(arguments)? })
            }
            (Some(call), Some(Value::Null), Some(Value::Bytes(answer)), None, None) => {
                let budget = Budget { bytes: answer.len(), nodes: BUDGET.nodes, depth: Budget::MAX_DEPTH };
                let answer = Value::decode(&answer, &budget)
                    .map_err(|error| JournalFault::Malformed(error.to_string()))?;
                Ok(Self::Answer { call: unsigned(&call)?, answer: Answer::Value(answer) })
            }
            (Some(call), Some(kind), Some(Value::String(name)), Some(Value::String(message)), None) => {
                let kind = usize::try_from(unsigned(&kind)?).ok().and_then(|kind| KINDS.get(kind));
                let kind = *kind.ok_or_else(|| malformed("a kind of error"))?;
                let answer = Answer::Error(ToolError { kind, name, message });
                Ok(Self::Answer { call: unsigned(&call)?, answer })
            }
            _ => Err(malformed("an event")),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Call { .. } => 48,
            Self::Answer { answer: Answer::Error(error), .. } => 32 + error.message.len_bytes(),
            Self::Answer { answer: Answer::Value(value), .. } => {
                32 + encoded(value).map_or(0, |bytes| bytes.len())
            }
        }
    }
}

fn language_name(language: Language) -> &'static str {
    match language {
        Language::JavaScript | Language::PlainJavaScript => "js",
        Language::TypeScript => "ts",
    }
}

fn malformed(what: &str) -> JournalFault {
    JournalFault::Malformed(format!("what should be {what} is something else"))
}

fn number(number: u64) -> Value {
    Value::Number(number as f64)
}

fn unsigned(value: &Value) -> Result<u64, JournalFault> {
    u64::try_from(signed(value)?).map_err(|_| malformed("a count"))
}

fn signed(value: &Value) -> Result<i64, JournalFault> {
    match *value {
        // As bits: -0 is no integer.
        Value::Number(number)
            if (number as i64 as f64).to_bits() == number.to_bits()
                && number.abs() <= MAX_SAFE_INTEGER as f64 =>
        {
            Ok(number as i64)
        }
        _ => Err(malformed("an integer")),
    }
}

fn plain(text: Text) -> Result<String, JournalFault> {
    text.into_string().map_err(|_| malformed("a name"))
}

fn string(value: Value) -> Result<String, JournalFault> {
    match value {
        Value::String(text) => plain(text),
        _ => Err(malformed("a string")),
    }
}

fn array<const N: usize>(value: Value) -> Result<[u8; N], JournalFault> {
    match value {
        Value::Bytes(bytes) => bytes.try_into().map_err(|_| malformed("a digest")),
        _ => Err(malformed("a digest")),
    }
}

fn items<const N: usize>(value: Value) -> Result<[Value; N], JournalFault> {
    match value {
        Value::Array(items) => items.try_into().map_err(|_| malformed("a record")),
        _ => Err(malformed("a record")),
    }
}
