//! The template of a pool: a confined process that has run the bootstrap script once and forks workers that begin there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::PoolShared;
use super::keeper::{Heard, Stage};
use crate::error::Error;
use crate::worker::{Confining, Forthcoming};
use crate::zygote::{Ticket, Zygote};
use crate::{runtime::Runtime, supervisor};

/// A pool's template, the one that is to follow it, and who waits for it.
pub(super) struct Templates {
    current: Option<Template>,
    coming: Option<Coming>,
    /// Workers that are to be forked once there is a template; of each, whether it stands in for one that died.
    owed: VecDeque<bool>,
}

/// A process that forks.
struct Template {
    zygote: Arc<Zygote>,
    heard: Arc<Heard>,
}

/// A process on its way to being a template.
struct Coming {
    stage: Stage,
    ticket: Ticket,
}

/// What became of the workers that were asked for.
pub(super) struct Forked {
    pub(super) worker: Result<Confining, Error>,
    pub(super) second_try: bool,
    /// What the bootstrap script that it begins with had to say.
    pub(super) heard: Arc<Heard>,
}

impl Templates {
    pub(super) fn new() -> Self {
        Self { current: None, coming: None, owed: VecDeque::new() }
    }

    /// Puts workers on the list of those that are to be forked.
    pub(super) fn owe(&mut self, number: usize, second_try: bool) {
        self.owed.extend(std::iter::repeat_n(second_try, number));
    }

    /// Forks what is owed, or starts the template that is needed for it. One that is due to be replaced serves until its
    /// successor does, or cannot.
    pub(super) fn serve(&mut self, shared: &Arc<PoolShared>) -> Vec<Forked> {
        if self.owed.is_empty() {
            return Vec::new();
        }
        self.current.take_if(|template| !template.zygote.is_usable());
        let rotation = shared.supervisor.rotation();
        let is_due = self.current.as_ref().is_none_or(|template| rotation.is_due(&template.zygote));
        if is_due && self.coming.is_none() {
            match Coming::begin(shared) {
                Ok(coming) => self.coming = Some(coming),
                Err(error) => return self.fail(&error),
            }
        }
        let Some(Template { zygote, heard }) = &self.current else { return Vec::new() };
        let options = &shared.options;
        let asked: Vec<(Result<Forthcoming, Error>, bool)> = self
            .owed
            .drain(..)
            .map(|second_try| (supervisor::request(zygote, options), second_try))
            .collect();
        asked
            .into_iter()
            .map(|(asked, second_try)| Forked {
                worker: asked.and_then(|worker| worker.fork(options)),
                second_try,
                heard: Arc::clone(heard),
            })
            .collect()
    }

    /// Whether something is owed that [`serve`](Self::serve) could see to at once.
    pub(super) fn wants_a_turn(&self) -> bool {
        !self.owed.is_empty() && (self.current.is_some() || self.coming.is_none())
    }

    /// The template on its way, to be waited for.
    pub(super) fn coming(&self) -> Option<&Stage> {
        self.coming.as_ref().map(|coming| &coming.stage)
    }

    /// Looks after the template on its way. If it fails, so does what is owed.
    pub(super) fn advance(&mut self, shared: &Arc<PoolShared>) -> Vec<Forked> {
        let Some(Coming { stage, ticket }) = self.coming.take() else { return Vec::new() };
        match stage.advance(shared, shared.bootstrap.as_ref()) {
            Err(stage) => {
                self.coming = Some(Coming { stage, ticket });
                Vec::new()
            }
            Ok(ended) => match ended.and_then(|(runtime, heard)| Template::of(runtime, heard, ticket)) {
                Ok(template) => {
                    self.current = Some(template);
                    Vec::new()
                }
                Err(error) => self.fail(&error),
            },
        }
    }

    /// There is no template to be had. One that could not be replaced in time serves no longer.
    fn fail(&mut self, error: &Error) -> Vec<Forked> {
        self.current = None;
        let heard = Arc::new(Heard::default());
        self.owed
            .drain(..)
            .map(|_| Forked {
                worker: Err(error.clone()),
                // Nothing would be different.
                second_try: true,
                heard: Arc::clone(&heard),
            })
            .collect()
    }
}

impl Coming {
    fn begin(shared: &Arc<PoolShared>) -> Result<Self, Error> {
        let options = &shared.options;
        let zygote = shared.supervisor.start_zygote(options.features())?;
        let (confining, ticket) = Confining::template(zygote, options).map_err(|error| {
            Error::WorkerUnavailable { reason: format!("a template cannot be asked for: {error}") }
        })?;
        Ok(Self { stage: Stage::Confining(Box::new(confining)), ticket })
    }
}

impl Template {
    /// The process whose bootstrap script has ended well.
    fn of(runtime: Runtime, heard: Heard, ticket: Ticket) -> Result<Self, Error> {
        let (zygote, watch) = runtime.part();
        zygote.receive_template(ticket, watch).map_err(|error| Error::WorkerUnavailable {
            reason: format!("the template ended its bootstrap script and does not fork: {error}"),
        })?;
        Ok(Self { zygote, heard: Arc::new(heard) })
    }
}
