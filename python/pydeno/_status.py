"""`sandbox_status()`: what the sandbox can be on this machine, without starting a runtime."""

from __future__ import annotations

from . import _isolated
from ._pydeno import sandbox_status as _sandbox_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class _Frozen:
    """An immutable record of its slots, equal to another one with the same values."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} is what was found")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} is what was found")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), self._values()


class Layer(_Frozen):
    """One layer of the sandbox, as it was checked in a throwaway process.

    Attributes:
        applied: Whether it is in force.
        detail: What was checked, or why the layer is not in force.
        fix: What would put it in force; `""` when it is, or when it does not apply to this platform.
    """

    __slots__ = ("applied", "detail", "fix")

    applied: bool
    detail: str
    fix: str

    def __init__(self, applied: bool, detail: str, fix: str = "") -> None:  # noqa: FBT001
        """Make a layer; pydeno does."""
        object.__setattr__(self, "applied", applied)
        object.__setattr__(self, "detail", detail)
        object.__setattr__(self, "fix", fix)

    def __repr__(self) -> str:
        """Show what matters."""
        return f"Layer(applied={self.applied}, detail={self.detail!r}, fix={self.fix!r})"


class SandboxStatus(_Frozen):
    """What `sandbox_status()` found. Immutable.

    Attributes:
        seatbelt: macOS Seatbelt; not applicable on Linux.
        process: Session, descriptors, resource limits, no dumps; needed in every sandbox mode.
        empty_root: Namespaces with an empty read-only root; a bonus, its absence is a warning.
        privileges: Root dropped, no capabilities.
        no_new_privs: `execve` gives no privileges.
        landlock: No files, TCP, outside signals; its ABI version and whether the canary was refused afterwards.
        seccomp: The system-call filter, and that a never-legitimate call in a throwaway child was killed.
        self_test: What a guest would try, tried from inside.
        resource_probes: Memory, CPU time and threads of a confined process, read from this one.
        termination: SIGKILL of that process. Where it is missing no runtime starts, in any sandbox mode.
        applied: The enforcing layers in force, such as `"landlock+seccomp"`, or `"none"`.
        complete: Whether `sandbox="require"` starts here.
        hardened: Whether a worker also gets an empty root.
        required: The names of the layers that `complete` needs on this platform.
        warnings: A sentence for each layer that could be in force and is not.
        platform: `"linux"`.
        kernel: The kernel's release.
    """

    __slots__ = (
        "_explanation",
        "_line",
        "applied",
        "complete",
        "empty_root",
        "hardened",
        "kernel",
        "landlock",
        "no_new_privs",
        "platform",
        "privileges",
        "process",
        "required",
        "resource_probes",
        "seatbelt",
        "seccomp",
        "self_test",
        "termination",
        "warnings",
    )

    seatbelt: Layer
    process: Layer
    empty_root: Layer
    privileges: Layer
    no_new_privs: Layer
    landlock: Layer
    seccomp: Layer
    self_test: Layer
    resource_probes: Layer
    termination: Layer
    applied: str
    complete: bool
    hardened: bool
    required: tuple[str, ...]
    warnings: tuple[str, ...]
    platform: str
    kernel: str
    _explanation: str
    _line: str

    def __init__(self, *values: Any) -> None:
        """Make a status of its slots' values; pydeno does."""
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def layers(self) -> dict[str, Layer]:
        """Every layer by its name, in the order in which a worker applies them."""
        return {name: getattr(self, name) for name in _LAYERS}

    @property
    def fixes(self) -> dict[str, str]:
        """What would put each missing layer in force, by the layer's name."""
        return {name: layer.fix for name, layer in self.layers.items() if layer.fix}

    def to_dict(self) -> dict[str, Any]:
        """The status as plain JSON values: a layer is `{"applied": ..., "detail": ..., "fix": ...}`."""
        layers = {
            name: {"applied": layer.applied, "detail": layer.detail, "fix": layer.fix}
            for name, layer in self.layers.items()
        }
        return {
            **layers,
            "applied": self.applied,
            "complete": self.complete,
            "hardened": self.hardened,
            "required": list(self.required),
            "warnings": list(self.warnings),
            "platform": self.platform,
            "kernel": self.kernel,
        }

    def explain(self) -> str:
        """Every layer on a line of its own, what would fix those that are missing, and what follows."""
        return self._explanation

    def __str__(self) -> str:
        """Tell it in one line, for a log."""
        return self._line

    def __repr__(self) -> str:
        """Show the conclusions."""
        return f"<pydeno.SandboxStatus applied={self.applied!r} complete={self.complete} hardened={self.hardened}>"


_LAYERS = (
    "seatbelt",
    "process",
    "empty_root",
    "privileges",
    "no_new_privs",
    "landlock",
    "seccomp",
    "self_test",
    "resource_probes",
    "termination",
)


def sandbox_status() -> SandboxStatus:
    """Find out what the sandbox can be on this machine.

    A throwaway process runs what a worker runs before its first script: it confines itself, tests that from inside,
    is measured and killed from here. No engine is loaded, no script runs, and this process stays as it was. It takes
    milliseconds and never more than a second, works in any thread, and never raises: what could not be found out is a
    layer that is not applied, with the reason and what would fix it.

    >>> status = sandbox_status()
    >>> status.complete == all(status.layers[name].applied for name in status.required)
    True
    """
    found = _sandbox_status(_isolated._WORKER)  # noqa: SLF001
    values: dict[str, Any] = {
        **{name: Layer(applied, detail, fix) for name, applied, detail, fix in found["layers"]},
        "_explanation": found["explanation"],
        "_line": found["line"],
        "required": tuple(found["required"]),
        "warnings": tuple(found["warnings"]),
    }
    values.update({name: found[name] for name in ("applied", "complete", "hardened", "platform", "kernel")})
    return SandboxStatus(*(values[name] for name in SandboxStatus.__slots__))
