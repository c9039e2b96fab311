//! One run: its calls in the order they were made, the answers that wait to be handed over, and what is recorded.

use std::collections::{HashMap, VecDeque};

use pydeno_wire::message::JsError;

use crate::agent::digest::Digest;
use crate::agent::error::Uncaught;
use crate::agent::journal::{Answer, Event, RecordedRun, ToolError, ToolErrorKind};
use crate::agent::machine::Call;

/// How many errors of tools a run remembers, to tell which of them was not caught.
const REMEMBERED: usize = 64;

/// A run that has not ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) record: RecordedRun,
    /// How many of the record's events have happened again, while this is a replay.
    replayed: Option<usize>,
    /// The worker's number of each call, by its number within the run.
    calls: Vec<Made>,
    by_wire: HashMap<u64, usize>,
    /// What is to be handed over when the guest waits, in this order.
    answers: VecDeque<(usize, Answer)>,
    /// What nobody outside was told of, in order.
    untold: VecDeque<Call>,
    told_errors: VecDeque<(usize, ToolError)>,
}

#[derive(Debug)]
struct Made {
    wire: u64,
    tool: Option<usize>,
    is_answered: bool,
}

impl Run {
    pub(crate) fn new(record: RecordedRun, is_replay: bool) -> Self {
        Self {
            record,
            replayed: is_replay.then_some(0),
            calls: Vec::new(),
            by_wire: HashMap::new(),
            answers: VecDeque::new(),
            untold: VecDeque::new(),
            told_errors: VecDeque::new(),
        }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.replayed.is_some()
    }

    /// Notes a call; its number within the run.
    pub(crate) fn call(
        &mut self,
        wire: u64,
        tool: Option<usize>,
        function: u32,
        arguments: Digest,
    ) -> Result<usize, String> {
        let event = Event::Call { function, arguments };
        match &mut self.replayed {
            None => self.record.events.push(event),
            Some(at) => match self.record.events.get(*at) {
                Some(recorded) if *recorded == event => *at += 1,
                Some(Event::Call { function: other, .. }) if *other == function => {
                    return Err("a call has other arguments".to_owned());
                }
                _ => return Err("it makes a call that was not made then".to_owned()),
            },
        }
        let index = self.calls.len();
        self.by_wire.insert(wire, index);
        self.calls.push(Made { wire, tool, is_answered: false });
        Ok(index)
    }

    /// Has a call told to whoever answers it.
    pub(crate) fn tell(&mut self, call: Call) {
        self.untold.push_back(call);
    }

    /// The next call that nobody outside was told of.
    pub(crate) fn next_untold(&mut self) -> Option<Call> {
        if self.is_replay() { None } else { self.untold.pop_front() }
    }

    /// Takes an answer, to be handed over when the guest waits. False when the call has one, or is unknown.
    pub(crate) fn answer(&mut self, index: usize, answer: Answer) -> bool {
        match self.calls.get_mut(index) {
            Some(made) if !made.is_answered => {
                made.is_answered = true;
                self.answers.push_back((index, answer));
                true
            }
            _ => false,
        }
    }

    /// Whether every answer that was taken has been handed over.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The guest waits: the worker's number of a call and the answer to hand over now, if there is one.
    pub(crate) fn next_answer(&mut self) -> Result<Option<(u64, Answer)>, String> {
        let Some(at) = self.replayed else {
            let Some((index, answer)) = self.answers.pop_front() else { return Ok(None) };
            self.record.events.push(Event::Answer { call: index as u64, answer: answer.clone() });
            return Ok(Some(self.hand_over(index, answer)));
        };
        match self.record.events.get(at) {
            Some(Event::Answer { call, answer }) => {
                let (index, answer) = (*call as usize, answer.clone());
                match self.calls.get_mut(index) {
                    Some(made) if !made.is_answered => made.is_answered = true,
                    _ => return Err("an answer has no call".to_owned()),
                }
                self.replayed = Some(at + 1);
                let number = self.record.first_call + index as u64;
                self.untold.retain(|call| call.id != number);
                Ok(Some(self.hand_over(index, answer)))
            }
            Some(Event::Call { .. }) => Err("it waits where it made a call then".to_owned()),
            None if self.record.outcome.is_none() => {
                self.replayed = None;
                Ok(None)
            }
            None => Err("it waits where it had ended then".to_owned()),
        }
    }

    fn hand_over(&mut self, index: usize, answer: Answer) -> (u64, Answer) {
        if let Answer::Error(error) = &answer {
            if self.told_errors.len() == REMEMBERED {
                self.told_errors.pop_front();
            }
            self.told_errors.push_back((index, error.clone()));
        }
        (self.calls[index].wire, answer)
    }

    /// Compares the end of a replay with what was recorded; for a run that was not a replay, records it.
    pub(crate) fn end(&mut self, outcome: Option<Digest>) -> Result<(), String> {
        let Some(at) = self.replayed else {
            self.record.outcome = outcome;
            return Ok(());
        };
        if at < self.record.events.len() {
            return Err("it ends where it went on then".to_owned());
        }
        match self.record.outcome {
            None => Err("it ends where it waited then".to_owned()),
            recorded if recorded == outcome => Ok(()),
            _ => Err("it ends otherwise than it did".to_owned()),
        }
    }

    /// The error of a tool that this error of the guest is, if it is one.
    pub(crate) fn uncaught(&self, error: &JsError) -> Option<Uncaught> {
        let told = self.told_errors.iter().rev();
        let (index, told) = told
            .filter(|(_, told)| told.kind != ToolErrorKind::Arguments)
            .find(|(_, told)| told.name == error.name && told.message == error.message)?;
        Some(Uncaught {
            kind: told.kind,
            call: self.record.first_call + *index as u64,
            tool: self.calls[*index].tool,
            error: error.clone(),
        })
    }
}
