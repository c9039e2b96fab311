//! What a runtime may do and use.

use std::time::Duration;

use pydeno_wire::message::SandboxMode;

/// How much of the engine's compiler a worker has. A tier belongs to a zygote, since the engine reads its options
/// once, when it is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JitTier {
    /// The interpreter alone: no executable memory is ever mapped.
    #[default]
    Off,
    /// The interpreter and the baseline compiler.
    Baseline,
    /// Every tier of the engine.
    Full,
}

impl JitTier {
    /// The tier's name in options and on the worker's command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Baseline => "baseline",
            Self::Full => "full",
        }
    }

    /// The tier with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Off, Self::Baseline, Self::Full].into_iter().find(|tier| tier.name() == name)
    }

    /// The most threads a worker of this tier has any use for: its own and the engine's timer thread, and with a
    /// compiler the engine's collector and compiler threads, whose number follows the machine's cores.
    pub(crate) fn max_threads(self) -> u64 {
        match self {
            Self::Off => 4,
            Self::Baseline | Self::Full => 32,
        }
    }

    /// How many threads of a worker may be at work at once, on average: the guest's own and the collector's, and with a
    /// compiler its threads.
    fn busy_threads(self) -> u32 {
        match self {
            Self::Off => 2,
            Self::Baseline | Self::Full => 4,
        }
    }
}

/// Who compiles WebAssembly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WebAssembly {
    /// Nobody: the engine is started without it.
    #[default]
    None,
    /// The host, see [`Runtime::load_wasm`](crate::Runtime::load_wasm). The guest has no `WebAssembly`.
    Host,
    /// The guest too, which has `WebAssembly`.
    Guest,
}

impl WebAssembly {
    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
            Self::Guest => "guest",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Host, Self::Guest].into_iter().find(|webassembly| webassembly.name() == name)
    }

    /// The word on the worker's command line.
    pub(crate) fn argument(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Host => Some("host-webassembly"),
            Self::Guest => Some("webassembly"),
        }
    }
}

/// What a zygote's engine has: fixed when the engine is loaded, and so each combination in use has a zygote of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Features {
    pub(crate) jit: JitTier,
    pub(crate) webassembly: WebAssembly,
}

/// Where a worker's process image comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerStart {
    /// A fork of the tier's zygote: milliseconds, but the address-space layout is shared with its siblings.
    #[default]
    Fork,
    /// A zygote of its own: tens of milliseconds, and an address space that no other runtime has.
    Exec,
}

/// The options of one [`Runtime`](crate::Runtime). Every limit is on by default.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option that users set by its name, and none excludes another"
)]
pub struct Options {
    /// What happens when a layer of the sandbox cannot be applied.
    pub sandbox: SandboxMode,
    /// Whether the worker enters an empty root in namespaces of its own.
    pub empty_root: bool,
    /// The compiler tiers.
    pub jit: JitTier,
    /// Where the worker comes from.
    pub worker_start: WorkerStart,
    /// How long the guest may run in one evaluation, time in host functions not counted. Past it the script is
    /// stopped and the runtime stays usable; a script that cannot be stopped costs the worker.
    pub timeout: Duration,
    /// How long one evaluation may take in all, host functions included. Past it it is stopped; a worker that does not
    /// stop, or that waits for a synchronous host function, is killed.
    pub request_timeout: Duration,
    /// The worker's private memory in bytes, sampled from outside. Past it the worker is killed.
    pub max_memory: u64,
    /// The engine's heap in bytes, checked by the worker. Past it the script is stopped and the runtime stays usable.
    pub max_heap_size: u64,
    /// How many host functions one evaluation may call.
    pub max_host_calls: u64,
    /// How many asynchronous host functions one evaluation may have in flight at a time.
    pub max_inflight_host_calls: u64,
    /// How long one evaluation may wait for host functions in all. Past it it is stopped and the runtime stays usable.
    pub max_host_wait: Duration,
    /// One value's encoded size in bytes, either way.
    pub max_value_bytes: u64,
    /// One value's number of nodes, either way.
    pub max_value_nodes: u64,
    /// One value's nesting, either way.
    pub max_value_depth: u32,
    /// Whether the guest has `console`.
    pub console: bool,
    /// Where every clock of the guest stands still, in milliseconds since 1970-01-01T00:00:00Z, within ±8.64e15; `None`
    /// for the real ones.
    pub clock: Option<i64>,
    /// Where `Math.random` begins; `None` for a seed of the system's.
    pub random_seed: Option<u64>,
    /// Whether making code from text throws.
    pub strict_eval: bool,
    /// Who compiles WebAssembly.
    pub webassembly: WebAssembly,
    /// Whether the guest has timers, `URL` and the other web interfaces.
    pub web: bool,
}

impl Options {
    pub(crate) fn features(&self) -> Features {
        Features { jit: self.jit, webassembly: self.webassembly }
    }

    /// The CPU time of all threads of a worker in one request. The guest runs no longer than `timeout`, so what is used
    /// beyond that is used by threads it should not have, or while it should be waiting for a host function.
    pub(crate) fn max_cpu(&self) -> Duration {
        self.timeout.saturating_mul(self.jit.busy_threads()).saturating_add(Duration::from_secs(1))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sandbox: SandboxMode::Require,
            empty_root: true,
            jit: JitTier::Off,
            worker_start: WorkerStart::Fork,
            timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            max_memory: 1 << 30,
            max_heap_size: 1 << 30,
            max_host_calls: 100_000,
            max_inflight_host_calls: 1000,
            max_host_wait: Duration::from_secs(60),
            max_value_bytes: 64 << 20,
            max_value_nodes: 4_000_000,
            max_value_depth: 100,
            console: false,
            clock: None,
            random_seed: None,
            strict_eval: false,
            webassembly: WebAssembly::None,
            web: false,
        }
    }
}
