//! Where workers come from: the zygotes of this process, and the worker of each kind that each keeps ready ahead.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use pydeno_wire::message::SandboxMode;

use crate::cgroup;
use crate::error::Error;
use crate::fork_generation;
use crate::monitor::Monitor;
use crate::options::{Features, JitTier, Options, WorkerStart};
use crate::pool::PoolShared;
use crate::worker::{Forthcoming, Worker};
use crate::zygote::{WorkerBinary, Zygote};

/// How long the end of the process may be put off so that no worker's group is left behind. Killed workers end in less.
const WORKERS_END_WITHIN: Duration = Duration::from_millis(100);

/// When a zygote is replaced. Its forks share its address-space layout, so neither number is without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZygoteRotation {
    /// After this many workers.
    pub max_workers: u32,
    /// After this time.
    pub max_age: Duration,
}

impl Default for ZygoteRotation {
    fn default() -> Self {
        Self { max_workers: 1000, max_age: Duration::from_secs(3600) }
    }
}

impl ZygoteRotation {
    pub(crate) fn is_due(self, zygote: &Zygote) -> bool {
        zygote.forked() >= self.max_workers || zygote.age() >= self.max_age
    }
}

/// The zygotes and the monitor of one process.
#[derive(Debug)]
pub struct Supervisor {
    binary: WorkerBinary,
    monitor: Monitor,
    tiers: Mutex<HashMap<Features, Tier>>,
    /// All that run, those that have been replaced included.
    zygotes: Mutex<Vec<Weak<Zygote>>>,
    rotation: Mutex<ZygoteRotation>,
    pools: Mutex<Vec<Weak<PoolShared>>>,
}

/// One tier's zygote and its workers ahead: one without the web interfaces, and one with them. A program that starts
/// runtimes of one kind has one worker ahead.
#[derive(Debug)]
struct Tier {
    zygote: Arc<Zygote>,
    ahead: [Option<(Shape, Forthcoming)>; 2],
}

impl Tier {
    fn ahead(&mut self, options: &Options) -> &mut Option<(Shape, Forthcoming)> {
        &mut self.ahead[usize::from(options.web)]
    }
}

/// What was decided about a worker when it was forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    sandbox: SandboxMode,
    empty_root: bool,
}

/// The supervisor of this process, made at the first call. A forked copy of the process gets one of its own.
///
/// # Errors
///
/// `binary` fails, or the monitor thread cannot be started.
pub fn supervisor(
    binary: impl FnOnce() -> Result<WorkerBinary, Error>,
) -> Result<&'static Arc<Supervisor>, Error> {
    let node = Node::of_this_process();
    if let Some(supervisor) = node.supervisor.get() {
        return Ok(supervisor);
    }
    let monitor = Monitor::start().map_err(|error| Error::WorkerUnavailable {
        reason: format!("the monitor thread cannot be started: {error}; is a limit on threads in the way?"),
    })?;
    let made = Arc::new(Supervisor {
        binary: binary()?,
        monitor,
        tiers: Mutex::default(),
        zygotes: Mutex::default(),
        rotation: Mutex::default(),
        pools: Mutex::default(),
    });
    Ok(node.supervisor.get_or_init(|| made))
}

/// A list with an entry for each fork between the first process and this one. A lock that a forked process inherits
/// may be held by a thread that does not exist in it; this way it never touches one.
struct Node {
    supervisor: OnceLock<Arc<Supervisor>>,
    next: OnceLock<Box<Node>>,
}

impl Node {
    fn of_this_process() -> &'static Self {
        static FIRST: Node = Node { supervisor: OnceLock::new(), next: OnceLock::new() };
        let mut node = &FIRST;
        for _ in 0..fork_generation::current() {
            if let Some(inherited) = node.supervisor.get() {
                inherited.release_inherited();
            }
            node = node
                .next
                .get_or_init(|| Box::new(Self { supervisor: OnceLock::new(), next: OnceLock::new() }));
        }
        node
    }
}

impl Supervisor {
    /// Sets when zygotes are replaced; for those that run already, too.
    pub fn set_rotation(&self, rotation: ZygoteRotation) {
        *self.rotation.lock().unwrap_or_else(PoisonError::into_inner) = rotation;
    }

    /// Closes every pool and runtime and ends every zygote; for a process that is about to exit, after which nobody could wait
    /// for their workers.
    pub fn shut_down(&self) {
        let pools = std::mem::take(&mut *self.pools.lock().unwrap_or_else(PoisonError::into_inner));
        pools.iter().filter_map(Weak::upgrade).for_each(|pool| pool.close());
        self.monitor.close_all();
        self.tiers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let zygotes = std::mem::take(&mut *self.zygotes.lock().unwrap_or_else(PoisonError::into_inner));
        // Runtimes that are still referred to hold those that are left.
        zygotes.iter().filter_map(Weak::upgrade).for_each(|zygote| zygote.end());
        cgroup::sweep_within(WORKERS_END_WITHIN);
    }

    /// When zygotes, and templates, are replaced.
    pub(crate) fn rotation(&self) -> ZygoteRotation {
        *self.rotation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn start_zygote(&self, features: Features) -> Result<Arc<Zygote>, Error> {
        let zygote = Arc::new(Zygote::start(&self.binary, features, &self.monitor)?);
        let mut zygotes = self.zygotes.lock().unwrap_or_else(PoisonError::into_inner);
        zygotes.retain(|weak| weak.strong_count() > 0);
        zygotes.push(Arc::downgrade(&zygote));
        Ok(zygote)
    }

    pub(crate) fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// A confined worker with these options.
    pub(crate) fn start_worker(&self, options: &Options) -> Result<Worker, Error> {
        match options.worker_start {
            WorkerStart::Exec => self.ask_for_worker(options)?.wait(options),
            WorkerStart::Fork => self.forked_worker(options),
        }
    }

    /// A worker that may still be confining itself.
    pub(crate) fn ask_for_worker(&self, options: &Options) -> Result<Forthcoming, Error> {
        match options.worker_start {
            WorkerStart::Exec => request(&self.start_zygote(options.features())?, options),
            WorkerStart::Fork => self.next_forthcoming(options),
        }
    }

    /// Has a pool closed with everything else.
    pub(crate) fn add_pool(&self, pool: &Arc<PoolShared>) {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|weak| weak.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    fn forked_worker(&self, options: &Options) -> Result<Worker, Error> {
        let worker = match self.next_forthcoming(options)?.wait(options) {
            // The worker ahead, or the zygote itself, may have been killed since.
            Err(Error::WorkerCrashed { .. } | Error::WorkerUnavailable { .. }) => {
                self.next_forthcoming(options)?.wait(options)?
            }
            other => other?,
        };
        self.prepare_next(options);
        Ok(worker)
    }

    /// The worker ahead where it has the right shape, else a new one.
    fn next_forthcoming(&self, options: &Options) -> Result<Forthcoming, Error> {
        let rotation = self.rotation();
        let mut tiers = self.tiers.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = tiers
            .get(&options.features())
            .is_some_and(|tier| !rotation.is_due(&tier.zygote) && tier.zygote.is_usable());
        if !usable {
            // Runtimes that hold workers of the old one keep it alive until they are closed.
            let zygote = self.start_zygote(options.features())?;
            tiers.insert(options.features(), Tier { zygote, ahead: [None, None] });
        }
        let tier = tiers.get_mut(&options.features()).expect("it was there or is now");
        match tier.ahead(options).take() {
            Some((shape, forthcoming)) if shape == Shape::of(options) => Ok(forthcoming),
            _ => request(&tier.zygote, options),
        }
    }

    /// Has the next worker of the same shape forked, so that it confines itself while the caller goes on.
    fn prepare_next(&self, options: &Options) {
        let mut tiers = self.tiers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tier) = tiers.get_mut(&options.features())
            && tier.ahead(options).is_none()
        {
            *tier.ahead(options) = request(&tier.zygote, options).ok().map(|next| (Shape::of(options), next));
        }
    }

    /// Closes a forked process's copies of its parent's sockets, unless a thread held the lock when it forked: then
    /// they stay open, unused.
    fn release_inherited(&self) {
        if let Ok(mut tiers) = self.tiers.try_lock() {
            tiers.clear();
        }
    }
}

impl Shape {
    fn of(options: &Options) -> Self {
        Self { sandbox: options.sandbox, empty_root: options.empty_root }
    }
}

/// Asks this zygote, or template, for a worker.
pub(crate) fn request(zygote: &Arc<Zygote>, options: &Options) -> Result<Forthcoming, Error> {
    Forthcoming::request(zygote, options).map_err(|error| Error::WorkerUnavailable {
        reason: match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => format!(
                "a worker cannot be asked for: {error}; each runtime takes two descriptors: raise this process's limit \
                 (ulimit -n, or resource.setrlimit)"
            ),
            _ => format!("a worker cannot be asked for: {error}"),
        },
    })
}

/// Loads the engine in a zygote that is ended at once, and returns its library.
pub fn find_engine(binary: &WorkerBinary, tier: JitTier) -> Result<String, Error> {
    let supervisor = supervisor(|| Ok(binary.clone()))?;
    let features = Features { jit: tier, ..Features::default() };
    Zygote::start(binary, features, &supervisor.monitor).map(|zygote| zygote.engine.clone())
}
