"""`check_source()`: what a script asks for that the sandbox does not have, told before it runs."""

from __future__ import annotations

from ._config import count, flag
from ._pydeno import SourcePolicy as SourcePolicyCore
from ._pydeno import check_source as _check_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

    Severity = Literal["error", "warning", "info"]


class Finding:
    """One place in a source, and what is to be said about it.

    Attributes:
        rule: The rule's name, such as `"fetch"`.
        message: One sentence that says what to do instead.
        line: 1-based.
        column: 1-based, in code points.
        severity: `"error"`, `"warning"` or `"info"`.
    """

    __slots__ = ("column", "line", "message", "rule", "severity")

    def __init__(self, rule: str, message: str, line: int, column: int, severity: Severity) -> None:
        """Make a finding; pydeno does."""
        self.rule = rule
        self.message = message
        self.line = line
        self.column = column
        self.severity = severity

    def __str__(self) -> str:
        """A line of `PreflightResult.format()`."""
        return f"{self.line}:{self.column} {self.severity} [{self.rule}] {self.message}"

    def __repr__(self) -> str:
        """Show every field."""
        return (
            f"Finding({self.rule!r}, {self.message!r}, line={self.line}, column={self.column}, "
            f"severity={self.severity!r})"
        )

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Finding) and self._key() == other._key()

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash(self._key())

    def _key(self) -> tuple[str, str, int, int, str]:
        return (self.rule, self.message, self.line, self.column, self.severity)


class PreflightResult:
    """What `check_source` says; truthy when there is no error.

    Attributes:
        ok: Whether there is no error.
        findings: Sorted by place; the first 200.
        omitted: How many more there are.
    """

    __slots__ = ("findings", "ok", "omitted")

    def __init__(self, ok: bool, findings: Iterable[Finding] = (), omitted: int = 0) -> None:  # noqa: FBT001
        """Make a result; pydeno does."""
        self.ok = ok
        self.findings = tuple(findings)
        self.omitted = omitted

    def __bool__(self) -> bool:
        """Whether there is no error."""
        return self.ok

    def format(self) -> str:
        """A line for each finding, and one that says how many more there are.

        >>> print(check_source("  fetch(a)").format())
        1:3 error [fetch] There is no network; have the host bind a function that fetches, or pass the data in.
        """
        lines = [str(finding) for finding in self.findings]
        if self.omitted:
            lines.append(f"... and {self.omitted} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Show the gist."""
        return f"PreflightResult(ok={self.ok}, findings={len(self.findings) + self.omitted})"


class SourcePolicy:
    """What a host does not allow in a source. Everything it names is an error. Immutable.

    By default strings, templates, comments and regular expressions are read, too: what is forbidden may not even be
    mentioned. A name that a script builds at run time is found by nothing that only reads.

    Args:
        forbidden_identifiers: Names that may stand nowhere: not as a variable, a property, a key or a declared name.
        forbidden_globals: Names that may not be used as variables or reached through `globalThis` and its aliases.
        forbid_dynamic_import: Forbids `import(`.
        forbid_eval: Forbids the global `eval`.
        forbid_function: Forbids the global `Function`.
        forbid_webassembly: Forbids the global `WebAssembly`.
        max_source_bytes: The longest source, in bytes of UTF-8. A longer one is an error and is not read.
        include_preflight_rules: Applies the rules of `check_source`, too.
        forbid_computed_global_access: Forbids `globalThis[...]` with anything but a literal.
        ignore_strings_and_comments: Reads code alone.

    Raises:
        InvalidInput: `max_source_bytes` is out of range.
        TypeError: An argument has the wrong type.

    >>> check_source("new Date()", policy=SourcePolicy(forbidden_globals=["Date"])).ok
    False
    """

    __slots__ = (
        "_core",
        "forbid_computed_global_access",
        "forbid_dynamic_import",
        "forbid_eval",
        "forbid_function",
        "forbid_webassembly",
        "forbidden_globals",
        "forbidden_identifiers",
        "ignore_strings_and_comments",
        "include_preflight_rules",
        "max_source_bytes",
    )

    _core: SourcePolicyCore
    forbidden_identifiers: tuple[str, ...]
    forbidden_globals: tuple[str, ...]
    forbid_dynamic_import: bool
    forbid_eval: bool
    forbid_function: bool
    forbid_webassembly: bool
    max_source_bytes: int
    include_preflight_rules: bool
    forbid_computed_global_access: bool
    ignore_strings_and_comments: bool

    def __init__(
        self,
        *,
        forbidden_identifiers: Iterable[str] = (),
        forbidden_globals: Iterable[str] = (),
        forbid_dynamic_import: bool = False,
        forbid_eval: bool = False,
        forbid_function: bool = False,
        forbid_webassembly: bool = False,
        max_source_bytes: int = 1 << 20,
        include_preflight_rules: bool = False,
        forbid_computed_global_access: bool = False,
        ignore_strings_and_comments: bool = False,
    ) -> None:
        """Check and keep the rules."""
        flags = {
            "forbid_dynamic_import": forbid_dynamic_import,
            "forbid_eval": forbid_eval,
            "forbid_function": forbid_function,
            "forbid_webassembly": forbid_webassembly,
            "include_preflight_rules": include_preflight_rules,
            "forbid_computed_global_access": forbid_computed_global_access,
            "ignore_strings_and_comments": ignore_strings_and_comments,
        }
        fields: dict[str, Any] = {
            "forbidden_identifiers": _names(forbidden_identifiers, "forbidden_identifiers"),
            "forbidden_globals": _names(forbidden_globals, "forbidden_globals"),
            "max_source_bytes": count(max_source_bytes, "max_source_bytes"),
            **{name: flag(value, name) for name, value in flags.items()},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_core", SourcePolicyCore(**fields))

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a gate may already use the policy."""
        raise AttributeError(f"SourcePolicy is immutable; make a new one with another {name}")

    def __repr__(self) -> str:
        """Show every option."""
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__ if name != "_core")
        return f"SourcePolicy({fields})"


def _names(names: Iterable[str], option: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"{option} must be several names, not one str; write [{names!r}]")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"{option} must hold str, not {type(name).__name__}")
    return listed


def check_source(
    code: str,
    *,
    allow_import: bool = False,
    allow_dynamic_import: bool = False,
    report_eval: bool = True,
    policy: SourcePolicy | None = None,
) -> PreflightResult:
    """Tell an author what a script asks for that the sandbox does not have.

    It reads JavaScript or TypeScript without parsing it, knows no scopes and never fails on a text. **It is no security
    boundary**: nothing in the runtimes asks it, and a script that wants to hide a name can. Without a finding the
    name still does not exist in the isolate.

    Args:
        code: The script.
        allow_import: Whether `import ...` and `export ...` are fine.
        allow_dynamic_import: Whether `import(...)` is fine.
        report_eval: Whether `eval(` and `new Function(` are mentioned.
        policy: The host's own rules, applied instead.

    Returns:
        Whether there is an error, and what was found.

    Raises:
        TypeError: `code` is not `str`, or an option has the wrong type.

    >>> [finding.rule for finding in check_source("const fs = require('fs')").findings]
    ['require']
    """
    if not isinstance(code, str):
        raise TypeError(f"code must be str, not {type(code).__name__}; decode it first")
    if policy is not None and not isinstance(policy, SourcePolicy):
        raise TypeError(f"policy must be SourcePolicy, not {type(policy).__name__}")
    rules = None if policy is None else policy._core  # noqa: SLF001 - the core's side of the same object
    ok, found, omitted = _check_source(code, allow_import, allow_dynamic_import, report_eval, rules)
    return PreflightResult(ok, [Finding(*finding) for finding in found], omitted)
