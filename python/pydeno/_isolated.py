"""`IsolatedRuntime`: JavaScript that nobody has vetted, in a confined worker process."""

from __future__ import annotations

import atexit

from ._config import RuntimeConfig, choice, count, flag, instant, integer, seconds
from ._pydeno import IsolatedRuntime as IsolatedCore
from ._pydeno import set_zygote_rotation as _set_zygote_rotation
from ._pydeno import shut_down
from ._runtime import _GIB, GATE_TIMEOUT, RuntimeBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Literal

    from ._console import Console
    from ._gates import Gate

#: The worker lies beside this file; it is never looked up in PATH.
_WORKER = __file__.rpartition("/")[0] + "/pydeno-worker"
#: The layers whose names make up `IsolatedRuntime.sandbox`; the others are told in `sandbox_extras`.
_ENFORCING = ("landlock", "seccomp")


class SandboxDegradedWarning(RuntimeWarning):
    """A runtime with `sandbox="auto"` or `"off"` has started without a layer of the sandbox."""


class SandboxLayer:
    """One layer of a worker's sandbox, as it was checked after it was applied.

    Attributes:
        name: `"landlock"`, `"seccomp"`, `"empty_root"`, ...
        applied: Whether it is in force.
        detail: What was checked, or why it is not in force.
        fix: What would put it in force; `""` when it is.
    """

    __slots__ = ("applied", "detail", "fix", "name")

    def __init__(self, name: str, applied: bool, detail: str, fix: str) -> None:  # noqa: FBT001
        """Make a layer; pydeno does."""
        self.name = name
        self.applied = applied
        self.detail = detail
        self.fix = fix

    def __repr__(self) -> str:
        """Show what matters."""
        return f"SandboxLayer({self.name!r}, applied={self.applied}, detail={self.detail!r})"


class IsolatedBase(RuntimeBase):
    """What `IsolatedRuntime` and `AsyncIsolatedRuntime` have in common: the options, and the worker once it runs.

    The options are documented with `IsolatedRuntime`.
    """

    __slots__ = ("_layers", "_options")

    _core: IsolatedCore

    def __init__(
        self,
        config: RuntimeConfig | None = None,
        *,
        timeout: float | None = None,
        sandbox: Literal["require", "auto", "off"] = "require",
        empty_root: bool = True,
        jit: Literal["off", "baseline", "full"] = "off",
        max_memory: int = _GIB,
        request_timeout: float = 60.0,
        max_host_calls: int = 100_000,
        max_host_wait: float = 60.0,
        max_inflight_host_calls: int = 1000,
        tool_timeout: float | None = None,
        redact_host_errors: bool = True,
        expose_host_errors: tuple[type[Exception], ...] = (),
        strict_eval: bool = False,
        webassembly: bool | Literal["host"] = False,
        clock: datetime | float | None = None,
        random_seed: int | None = None,
        capture_console: bool = False,
        gate: Gate | None = None,
        gate_timeout: float = GATE_TIMEOUT,
        worker_start: Literal["fork", "exec"] = "fork",
    ) -> None:
        """Check the options."""
        super().__init__(
            config,
            gate=gate,
            gate_timeout=gate_timeout,
            capture_console=capture_console,
            tool_timeout=tool_timeout,
        )
        options: dict[str, Any] = self._core_options(
            count(max_memory, "max_memory"), redact_host_errors, expose_host_errors
        )
        if timeout is not None:
            options["timeout"] = seconds(timeout, "timeout")
        options["sandbox"] = choice(sandbox, "sandbox", ("require", "auto", "off"))
        options["empty_root"] = flag(empty_root, "empty_root")
        options["jit"] = choice(jit, "jit", ("off", "baseline", "full"))
        options["max_memory"] = max_memory
        options["request_timeout"] = seconds(request_timeout, "request_timeout")
        options["max_host_calls"] = count(max_host_calls, "max_host_calls")
        options["max_host_wait"] = seconds(max_host_wait, "max_host_wait")
        options["max_inflight_host_calls"] = count(max_inflight_host_calls, "max_inflight_host_calls")
        options["strict_eval"] = flag(strict_eval, "strict_eval")
        options["webassembly"] = _webassembly(webassembly)
        options["clock"] = None if clock is None else instant(clock, "clock")
        options["random_seed"] = (
            None if random_seed is None else integer(random_seed, "random_seed", least=0, most=(1 << 64) - 1)
        )
        options["worker_start"] = choice(worker_start, "worker_start", ("fork", "exec"))
        self._options = options

    def _make_core(self) -> IsolatedCore:
        """Start a worker and wait until it has proved its sandbox."""
        core = IsolatedCore(_WORKER, self._options)
        _shut_down_at_exit()
        return core

    def _adopt(self, core: IsolatedCore, stacklevel: int) -> None:
        """Take a new worker into use."""
        self._examine(core, stacklevel + 1)
        self._begin(core)

    def _examine(self, core: IsolatedCore, stacklevel: int) -> None:
        """Say what a worker's sandbox lacks."""
        self._layers: list[SandboxLayer] | None = None
        if not core.is_complete():
            import warnings

            layers = [SandboxLayer(*layer) for layer in core.layers()]
            missing = [layer for layer in layers if not layer.applied and layer.name != "empty_root"]
            reasons = "; ".join(f"{layer.name}: {layer.detail}" for layer in missing)
            warnings.warn(
                f"the sandbox is not complete: {reasons}", SandboxDegradedWarning, stacklevel=stacklevel + 1
            )

    def _come_from(
        self, prototype: IsolatedBase, core: IsolatedCore, console: Console, stacklevel: int
    ) -> None:
        """Take a pool's worker into use; the bootstrap script has run."""
        self.config = prototype.config
        self._gate = prototype._gate
        self._gate_timeout = prototype._gate_timeout
        self._tool_timeout = prototype._tool_timeout
        self._options = prototype._options
        self._asynchronous = prototype._asynchronous
        self._console = console
        self._driver = None
        self._private_loop = None
        self._modules = None
        self._examine(core, stacklevel + 1)
        self._own(core)

    def _memory_limit(self) -> tuple[int, str]:
        return self._options["max_memory"], "max_memory"

    def _longest_wait(self) -> float | None:
        options = self._options
        # The core looks at the last two when the item is there.
        waits: list[float | None] = [self._tool_timeout, options["max_host_wait"], options["request_timeout"]]
        return min(wait for wait in waits if wait is not None)

    @property
    def sandbox_layers(self) -> list[SandboxLayer]:
        """Every layer with what was checked."""
        if self._layers is None:
            self._layers = [SandboxLayer(*layer) for layer in self._core.layers()]
        return self._layers

    @property
    def sandbox(self) -> str:
        """The enforcing layers in force, such as `"landlock+seccomp"`."""
        applied = (layer.name for layer in self.sandbox_layers if layer.applied)
        return "+".join(name for name in applied if name in _ENFORCING) or "none"

    @property
    def sandbox_extras(self) -> list[str]:
        """The other layers in force, such as `["empty_root", ...]`."""
        applied = (layer.name for layer in self.sandbox_layers if layer.applied)
        return [name for name in applied if name not in _ENFORCING]

    @property
    def sandbox_degraded(self) -> bool:
        """Whether a required layer is missing."""
        return not self._core.is_complete()

    @property
    def worker_pid(self) -> int:
        """The worker's process id."""
        return self._core.worker_pid

    @property
    def engine(self) -> str:
        """The engine's library, as the worker found it."""
        return self._core.engine

    def terminate(self) -> None:
        """Kill the worker at once, from any thread. An evaluation that runs raises `RuntimeTerminated`."""
        self._core.terminate()
        self._leave_loop()


class IsolatedRuntime(IsolatedBase):
    """JavaScript that you do not trust, in a disposable worker process behind a complete OS sandbox.

    The worker has confined itself and proved it before any script runs. Functions that you bind are the script's
    only way out. Several threads may use one runtime; their evaluations run one after the other.

    Args:
        config: Options that `Runtime` has, too; `RuntimeConfig()` when `None`. `timeout` can also be given directly.
        timeout: As in `RuntimeConfig`, and wins over it.
        sandbox: `"require"` starts only if every required layer is in force; `"auto"` applies what it can, warns with
            `SandboxDegradedWarning` and sets `sandbox_degraded`; `"off"` is for debugging.
        empty_root: Whether the worker also enters an empty root in namespaces of its own, where the host allows it.
        jit: `"off"` maps no executable memory; `"baseline"` and `"full"` are faster on long computations.
        max_memory: The worker's private memory in bytes, measured from outside. Past it the worker is killed.
        request_timeout: How long one evaluation may take in all, host functions included, in seconds. Past it the
            evaluation is stopped; a worker that does not stop is killed.
        max_host_calls: How many host functions one evaluation may call.
        max_host_wait: How long one evaluation may wait for host functions in all, in seconds.
        max_inflight_host_calls: How many async host functions one evaluation may have under way at a time.
        tool_timeout: How long one host function may take, in seconds. An async one is cancelled; one that is not async
            cannot be, and its late answer is replaced by the error.
        redact_host_errors: Whether the script is kept from seeing the type and text of Python exceptions.
        expose_host_errors: Exception classes whose type and text the script sees all the same.
        strict_eval: Whether making code from text (`eval`, `Function` and its kin) throws.
        webassembly: Whether the script has `WebAssembly`. With `"host"` it has none, and `load_wasm` gives it the
            functions of modules that you trust; with `True` there are both.
        clock: Where every clock of the script stands still, as an aware `datetime` or in seconds since 1970; `None`
            leaves it the real ones.
        random_seed: Where `Math.random` begins, from 0 to 2^64-1; `None` for a seed of the system's.
        capture_console: Whether the script has a `console` whose lines `take_console` returns.
        gate: Asked before each evaluation whether the source may run, see `Verdict`; `bootstrap` is not gated.
        gate_timeout: How long the gate may take, in seconds.
        worker_start: `"fork"` forks the worker from this process's zygote, in milliseconds; `"exec"` gives it an
            address space that it shares with no other worker, in tens of milliseconds.

    Attributes:
        sandbox: The enforcing layers in force, such as `"landlock+seccomp"`.
        sandbox_extras: The other layers in force, such as `["empty_root", ...]`.
        sandbox_degraded: Whether a required layer is missing.
        sandbox_layers: Every layer with what was checked.
        worker_pid: The worker's process id.

    Raises:
        SandboxUnavailable: A required layer is not in force; the message names it and what would fix it.
        EngineUnavailable: JavaScriptCore is not installed; the message says what to install.
        WorkerCrashed: The worker could not be started.
        InvalidInput: An option is out of range.

    >>> with IsolatedRuntime(timeout=1) as rt:
    ...     rt.eval("({answer: 6 * 7})")
    {'answer': 42}
    """

    __slots__ = ()

    def __init__(
        self,
        config: RuntimeConfig | None = None,
        *,
        timeout: float | None = None,
        sandbox: Literal["require", "auto", "off"] = "require",
        empty_root: bool = True,
        jit: Literal["off", "baseline", "full"] = "off",
        max_memory: int = _GIB,
        request_timeout: float = 60.0,
        max_host_calls: int = 100_000,
        max_host_wait: float = 60.0,
        max_inflight_host_calls: int = 1000,
        tool_timeout: float | None = None,
        redact_host_errors: bool = True,
        expose_host_errors: tuple[type[Exception], ...] = (),
        strict_eval: bool = False,
        webassembly: bool | Literal["host"] = False,
        clock: datetime | float | None = None,
        random_seed: int | None = None,
        capture_console: bool = False,
        gate: Gate | None = None,
        gate_timeout: float = GATE_TIMEOUT,
        worker_start: Literal["fork", "exec"] = "fork",
    ) -> None:
        """Start a worker and wait until it has proved its sandbox."""
        super().__init__(
            config,
            timeout=timeout,
            sandbox=sandbox,
            empty_root=empty_root,
            jit=jit,
            max_memory=max_memory,
            request_timeout=request_timeout,
            max_host_calls=max_host_calls,
            max_host_wait=max_host_wait,
            max_inflight_host_calls=max_inflight_host_calls,
            tool_timeout=tool_timeout,
            redact_host_errors=redact_host_errors,
            expose_host_errors=expose_host_errors,
            strict_eval=strict_eval,
            webassembly=webassembly,
            clock=clock,
            random_seed=random_seed,
            capture_console=capture_console,
            gate=gate,
            gate_timeout=gate_timeout,
            worker_start=worker_start,
        )
        self._adopt(self._make_core(), stacklevel=2)

    def __repr__(self) -> str:
        """Say what it is and how it is confined."""
        state = " closed" if self.is_closed() else ""
        return f"<pydeno.IsolatedRuntime sandbox={self.sandbox!r} worker_pid={self.worker_pid}{state}>"


def _webassembly(value: object) -> str:
    """Who compiles WebAssembly, in the core's words."""
    if isinstance(value, str):
        return choice(value, "webassembly", ("host",))
    if not isinstance(value, bool):
        raise TypeError(f"webassembly must be bool or 'host', not {type(value).__name__}")
    return "guest" if value else "none"


def _shut_down_at_exit() -> None:
    """Once in a process: end the workers and wait for them while somebody can."""
    global _registered  # noqa: PLW0603
    if not _registered:
        _registered = True
        atexit.register(shut_down, _WORKER)


_registered = False


def set_zygote_rotation(*, max_workers: int = 1000, max_age: float = 3600.0) -> None:
    """Set when the process that workers are forked from is replaced.

    Workers of one zygote share its address-space layout, so neither is without end.

    Args:
        max_workers: After this many workers.
        max_age: After this many seconds.

    Raises:
        InvalidInput: A number is out of range.
    """
    _set_zygote_rotation(
        _WORKER, count(max_workers, "max_workers", most=(1 << 32) - 1), seconds(max_age, "max_age")
    )
