"""Gates: what a host asks about a source before a runtime evaluates it.

A gate is a function `gate(source, context)` that returns a `Verdict`, or an async function. It is asked before each
evaluation and sees the very text that will run. Whatever is no clear permission is a refusal: a gate that raises, does
not answer in time or answers something else stops the evaluation with `GateUnavailable`.
"""

from __future__ import annotations

from ._errors import GateDenied, GateUnavailable, InvalidInput
from ._preflight import SourcePolicy, check_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, TypeAlias

    Gate: TypeAlias = "Callable[[str, GateContext], Verdict | Awaitable[Verdict]]"


class Verdict:
    """What a gate says. Immutable.

    Attributes:
        allow: Whether the source may run.
        reason: Why, or why not; it becomes part of the error's text.
        labels: Names for programs to branch on, such as the rules that were broken.
    """

    __slots__ = ("allow", "labels", "reason")

    allow: bool
    reason: str
    labels: tuple[str, ...]

    def __init__(self, allow: bool, reason: str = "", labels: Iterable[str] = ()) -> None:  # noqa: FBT001
        """Check and keep what the gate says."""
        if not isinstance(allow, bool):
            raise TypeError(f"allow must be bool, not {type(allow).__name__}")
        if not isinstance(reason, str):
            raise TypeError(f"reason must be str, not {type(reason).__name__}")
        if isinstance(labels, str):
            raise TypeError("labels must be several str, not one")
        object.__setattr__(self, "allow", allow)
        object.__setattr__(self, "reason", reason)
        object.__setattr__(self, "labels", tuple(labels))

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a verdict stands."""
        raise AttributeError(f"Verdict is immutable; make a new one with another {name}")

    def __repr__(self) -> str:
        """Show every field."""
        return f"Verdict(allow={self.allow}, reason={self.reason!r}, labels={self.labels!r})"

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Verdict) and self._key() == other._key()

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash(self._key())

    def _key(self) -> tuple[bool, str, tuple[str, ...]]:
        return (self.allow, self.reason, self.labels)


class GateContext:
    """What a gate is told beside the source.

    Attributes:
        name: What the script is called in stacks.
        runtime: The name of the runtime's class, such as `"IsolatedRuntime"`.
    """

    __slots__ = ("name", "runtime")

    def __init__(self, name: str, runtime: str) -> None:
        """Make a context; a runtime does."""
        self.name = name
        self.runtime = runtime

    def __repr__(self) -> str:
        """Show every field."""
        return f"GateContext(name={self.name!r}, runtime={self.runtime!r})"


class _StaticGate:
    """A gate that reads the source and nothing else, in a time that its length bounds."""

    __slots__ = ("policy",)

    def __init__(self, policy: SourcePolicy) -> None:
        self.policy = policy

    def __call__(self, source: str, _context: GateContext) -> Verdict:
        result = check_source(source, policy=self.policy)
        rules = dict.fromkeys(finding.rule for finding in result.findings if finding.severity == "error")
        return Verdict(result.ok, "" if result.ok else result.format(), rules)


def static_gate(policy: SourcePolicy) -> Gate:
    """Make a gate that allows what a policy has no error for. Its labels are the rules that were broken.

    >>> gate = static_gate(SourcePolicy(forbid_eval=True))
    >>> gate("eval('1')", GateContext("script.js", "Runtime")).labels
    ('eval',)
    """
    if not isinstance(policy, SourcePolicy):
        raise TypeError(f"policy must be SourcePolicy, not {type(policy).__name__}")
    return _StaticGate(policy)


class _Combined:
    """Several gates, asked in turn. It answers at once while they do, and is async from the first that is."""

    __slots__ = ("all", "gates")

    def __init__(self, gates: tuple[Gate, ...], *, all_must_allow: bool) -> None:
        if not gates:
            raise InvalidInput("there must be at least one gate")
        for gate in gates:
            if not callable(gate):
                raise TypeError(f"a gate must be callable, not {type(gate).__name__}")
        self.gates = gates
        self.all = all_must_allow

    def __call__(self, source: str, context: GateContext) -> Verdict | Awaitable[Verdict]:
        poll = _Poll(all_must_allow=self.all)
        for index, gate in enumerate(self.gates):
            try:
                answer = gate(source, context)
                if hasattr(answer, "__await__"):
                    return self._await(poll, answer, index, source, context)
                poll.add(_as_verdict(answer))
            except Exception as error:  # noqa: BLE001
                poll.fail(error)
            if poll.decided:
                break
        return poll.verdict()

    async def _await(
        self, poll: _Poll, answer: Any, index: int, source: str, context: GateContext
    ) -> Verdict:
        while True:
            try:
                if answer is None:
                    answer = self.gates[index](source, context)
                poll.add(_as_verdict(await answer if hasattr(answer, "__await__") else answer))
            except Exception as error:  # noqa: BLE001
                poll.fail(error)
            answer = None
            index += 1
            if poll.decided or index == len(self.gates):
                return poll.verdict()


class _Poll:
    """The verdicts so far of gates that are asked in turn."""

    __slots__ = ("all", "allowed", "denied", "failure")

    def __init__(self, *, all_must_allow: bool) -> None:
        self.all = all_must_allow
        self.allowed: list[Verdict] = []
        self.denied: list[Verdict] = []
        self.failure: Exception | None = None

    def add(self, verdict: Verdict) -> None:
        (self.allowed if verdict.allow else self.denied).append(verdict)

    def fail(self, error: Exception) -> None:
        self.failure = self.failure or error

    @property
    def decided(self) -> bool:
        """Whether the gates that were not asked cannot change the outcome."""
        return bool(self.denied or self.failure) if self.all else bool(self.allowed)

    def verdict(self) -> Verdict:
        allow = bool(self.allowed) and (not self.all or not self.denied)
        if self.failure is not None and (self.all or not allow):
            raise self.failure
        decisive = self.allowed if allow else self.denied
        reason = "; ".join(verdict.reason for verdict in decisive if verdict.reason)
        return Verdict(
            allow, reason, dict.fromkeys(label for verdict in decisive for label in verdict.labels)
        )


def all_of(*gates: Gate) -> Gate:
    """Make a gate that allows what all of several allow; the first that does not decides."""
    return _Combined(gates, all_must_allow=True)


def any_of(*gates: Gate) -> Gate:
    """Make a gate that allows what one of several allows.

    A gate that fails allows nothing; when no other allows the source, its failure is the outcome.
    """
    return _Combined(gates, all_must_allow=False)


def _as_verdict(answer: object) -> Verdict:
    if not isinstance(answer, Verdict):
        raise TypeError(f"a gate must return a Verdict, not {type(answer).__name__}")
    return answer


def pass_gate(gate: Gate, timeout: float, source: str, context: GateContext) -> None:
    """Return if the gate allows the source.

    Raises:
        GateDenied: It does not.
        GateUnavailable: It gave no verdict.
    """
    try:
        verdict = _ask(gate, timeout, source, context)
    except Exception as error:
        raise _no_verdict(error) from error
    _refuse_unless_allowed(verdict)


async def pass_gate_async(gate: Gate, timeout: float, source: str, context: GateContext) -> None:
    """Return if the gate allows the source; an async gate is awaited on the running event loop.

    Raises:
        GateDenied: It does not.
        GateUnavailable: It gave no verdict.
    """
    import asyncio

    try:
        if _is_static(gate):
            verdict = _as_verdict(gate(source, context))
        else:
            asked = asyncio.get_running_loop().create_task(_ask_on_the_loop(gate, source, context))
            try:
                done, _ = await asyncio.wait({asked}, timeout=timeout)
            finally:
                asked.cancel()
            verdict = _answer_of(asked, timeout, is_late=not done)
    except Exception as error:
        raise _no_verdict(error) from error
    _refuse_unless_allowed(verdict)


def _answer_of(asked: Task[Verdict], timeout: float, *, is_late: bool) -> Verdict:
    if is_late:
        raise TimeoutError(f"it took more than {timeout:g} seconds (gate_timeout)")
    if asked.cancelled():
        raise RuntimeError("it was cancelled")
    return asked.result()


async def _ask_on_the_loop(gate: Gate, source: str, context: GateContext) -> Verdict:
    """Ask on a thread, since a gate that is not async may take long; what it returns is awaited here."""
    import asyncio
    import contextlib
    import contextvars
    import threading

    loop = asyncio.get_running_loop()
    answered: Future[tuple[Any, BaseException | None]] = loop.create_future()
    variables = contextvars.copy_context()

    def tell(answer: Any, error: BaseException | None) -> None:
        if not answered.done():
            answered.set_result((answer, error))

    def ask() -> None:
        answer, error = None, None
        try:
            answer = variables.run(gate, source, context)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is no permission
            error = raised
        # The loop may be closed when a gate answers that was left behind.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, answer, error)

    # Not of the loop's pool, which waits for its threads at the end: a gate that never answers is left behind.
    threading.Thread(target=ask, name="pydeno-gate", daemon=True).start()
    answer, error = await answered
    if error is None and hasattr(answer, "__await__"):
        try:
            answer = await answer
        except asyncio.CancelledError:
            raise
        except BaseException as raised:  # noqa: BLE001 - as above
            error = raised
    if error is not None:
        raise (
            error if _may_be_raised(error) else RuntimeError(f"it ended with {type(error).__name__}")
        ) from error
    return _as_verdict(answer)


def _may_be_raised(error: BaseException) -> bool:
    """Whether a future can hold it, and a loop goes on after it."""
    return isinstance(error, Exception) and not isinstance(error, StopIteration)


def _no_verdict(error: Exception) -> GateUnavailable | GateDenied:
    return _survivable(GateUnavailable(f"the gate gave no verdict: {_in_words(error)}"))


def _refuse_unless_allowed(verdict: Verdict) -> None:
    if not verdict.allow:
        denied = GateDenied("the gate does not allow the source" + (verdict.reason and f": {verdict.reason}"))
        denied.verdict = verdict
        raise _survivable(denied)


def _survivable(error: GateDenied | GateUnavailable) -> GateDenied | GateUnavailable:
    error.runtime_survives = True
    return error


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _is_static(gate: Gate) -> bool:
    return isinstance(gate, _StaticGate) or (
        isinstance(gate, _Combined) and all(_is_static(inner) for inner in gate.gates)
    )


def _ask(gate: Gate, timeout: float, source: str, context: GateContext) -> Verdict:
    """The gate's verdict. A gate that is not known to end is asked on a thread, which can be left behind."""
    if _is_static(gate):
        return _as_verdict(gate(source, context))

    import contextvars
    import threading

    outcome: list[Verdict | BaseException] = []
    variables = contextvars.copy_context()

    def ask() -> None:
        try:
            outcome.append(variables.run(_answer, gate, timeout, source, context))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is no permission
            outcome.append(error)

    thread = threading.Thread(target=ask, name="pydeno-gate", daemon=True)
    thread.start()
    thread.join(timeout)
    if not outcome:
        raise TimeoutError(f"it took more than {timeout:g} seconds (gate_timeout)")
    if isinstance(outcome[0], Verdict):
        return outcome[0]
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    raise RuntimeError(f"it ended with {type(outcome[0]).__name__}") from outcome[0]


def _answer(gate: Gate, timeout: float, source: str, context: GateContext) -> Verdict:
    """The gate's answer; one that must be awaited is, on an event loop of this thread's own."""
    answer = gate(source, context)
    if isinstance(answer, Verdict):
        return answer
    if not hasattr(answer, "__await__"):
        return _as_verdict(answer)

    import asyncio

    async def wait() -> Verdict:
        return _as_verdict(await asyncio.wait_for(answer, timeout))

    return asyncio.run(wait())
