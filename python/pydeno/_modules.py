"""Modules: what a host gives a script to import.

The worker asks the host for each import with one call of a host function, whose answers this module makes: a specifier
is resolved to a name, and the name to a source. What the worker says about itself, the specifier and the referrer, is a
claim of untrusted code; nothing is given that the host did not register or its resolver and loader did not return.
"""

from __future__ import annotations

from ._config import check_callable, check_name, is_async
from ._errors import InvalidInput
from ._gates import GateContext, pass_gate, pass_gate_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any, Literal, TypeAlias, TypeVar

    from ._config import RuntimeConfig
    from ._gates import Gate
    from ._pydeno import InProcessRuntime
    from ._pydeno import IsolatedRuntime as IsolatedCore

    T = TypeVar("T")
    ModuleLanguage = Literal["js", "ts", "json"]
    Resolver: TypeAlias = Callable[[str, str], "str | Awaitable[str | None] | None"]
    Loader: TypeAlias = Callable[[str], "Loaded | Awaitable[Loaded]"]
    Loaded: TypeAlias = "str | ModuleSource | Mapping[str, object] | None"
    #: A refusal's text, name, kind, source, values and functions; as `Place::Import` of the wire has it.
    Answer: TypeAlias = list[Any]

#: The longest name of a module, in bytes of UTF-8.
MAX_NAME = 1024
#: The kind of a module that is a mapping.
_VALUES = "values"


class ModuleSource:
    """A module's text and what it is written in, for loaders whose names do not tell. Immutable.

    Attributes:
        text: The source.
        language: `"js"`, `"ts"` or `"json"`.
    """

    __slots__ = ("language", "text")

    language: ModuleLanguage
    text: str

    def __init__(self, text: str, *, language: ModuleLanguage) -> None:
        """Check and keep both."""
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}; decode it first")
        object.__setattr__(self, "text", str.__str__(text))
        object.__setattr__(self, "language", check_module_language(language))

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: it may have been given to a runtime."""
        raise AttributeError(f"ModuleSource is immutable; make a new one with another {name}")

    def __repr__(self) -> str:
        """Show the language and how long the text is."""
        return f"ModuleSource(<{len(self.text)} characters>, language={self.language!r})"


def check_module_language(language: object) -> ModuleLanguage:
    """Refuse what modules cannot be written in."""
    if language == "js":
        return "js"
    if language == "ts":
        return "ts"
    if language == "json":
        return "json"
    raise InvalidInput(f"language must be 'js', 'ts' or 'json', not {language!r}")


def language_of(name: str) -> ModuleLanguage:
    """What a module of this name is written in when nobody says."""
    if name.endswith((".ts", ".mts")):
        return "ts"
    return "json" if name.endswith(".json") else "js"


def check_module_name(name: object) -> str:
    """The name as a plain `str`; refuse what no module can be called."""
    check_name(name)
    name = str.__str__(name)
    if not name or len(name.encode()) > MAX_NAME:
        raise InvalidInput(f"the name of a module must have 1 to {MAX_NAME} bytes, not {name[:100]!r}")
    return name


class _Given:
    """A module that the host gives: a source, or values and the names of functions."""

    __slots__ = ("functions", "kind", "source", "values")

    def __init__(
        self,
        kind: str,
        source: str | None = None,
        values: dict[str, object] | None = None,
        functions: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        self.kind = kind
        self.source = source
        self.values = values
        self.functions = functions or {}

    def answer(self, name: str) -> Answer:
        names = list(self.functions) if self.kind == _VALUES else None
        return [None, name, self.kind, self.source, self.values, names]


class Modules:
    """The modules of one runtime."""

    __slots__ = (
        "_allowed",
        "_bytes",
        "_count",
        "_finding",
        "_gate",
        "_gate_timeout",
        "_given",
        "_loader",
        "_max_bytes",
        "_max_modules",
        "_on_loop",
        "_resolver",
        "_runtime",
        "_sent",
        "_static",
    )

    def __init__(
        self, runtime: str, config: RuntimeConfig, gate: Gate | None, gate_timeout: float, *, on_loop: bool
    ) -> None:
        self._runtime = runtime
        self._gate = gate
        self._gate_timeout = gate_timeout
        self._max_modules = config.max_modules
        self._max_bytes = config.max_module_bytes
        #: Whether everything that imports runs on an event loop.
        self._on_loop = on_loop
        self._static: dict[str, _Given] = {}
        self._resolver: Resolver | None = None
        self._loader: Loader | None = None
        #: What the loader gave and what was evaluated.
        self._given: dict[str, _Given] = {}
        #: What the gate has allowed.
        self._allowed: set[str] = set()
        #: What the worker has been given.
        self._sent: set[str] = set()
        #: What is being loaded on an event loop.
        self._finding: dict[str, Future[None]] = {}
        #: What was given so far, without what was evaluated.
        self._count = 0
        self._bytes = 0

    @property
    def is_async(self) -> bool:
        """Whether imports have to wait for something on an event loop."""
        return self._on_loop or is_async(self._resolver) or is_async(self._loader)

    @property
    def has_async_functions(self) -> bool:
        """Whether a module exports an async function."""
        return any(
            is_async(function) for given in self._static.values() for function in given.functions.values()
        )

    def add(self, name: str, module: str | Mapping[str, object], language: str | None) -> _Given:
        """Register a module."""
        name = check_module_name(name)
        if name in self._sent:
            raise InvalidInput(f"the module {name!r} has been imported already and cannot be replaced")
        if isinstance(module, str):
            kind = language_of(name) if language is None else check_module_language(language)
            given = _Given(kind, str.__str__(module))
        elif hasattr(module, "items"):
            if language is not None:
                raise InvalidInput("language is for the text of a module, not for a mapping")
            given = _values(module)
        else:
            raise TypeError(f"a module must be str or a mapping, not {type(module).__name__}")
        self._static[name] = given
        self._allowed.discard(name)
        return given

    def set_resolver(self, resolver: Resolver | None) -> None:
        """Set or take away the resolver."""
        if resolver is not None:
            check_callable(resolver, "resolver")
        self._resolver = resolver

    def set_loader(self, loader: Loader | None) -> None:
        """Set or take away the loader."""
        if loader is not None:
            check_callable(loader, "loader")
        self._loader = loader

    def evaluated(self, name: str, source: str, language: str) -> None:
        """Note a module that is evaluated from now on, which others may import by its name."""
        self._given[name] = _Given(language, source)
        self._allowed.add(name)
        self._sent.add(name)

    def bind(self, core: InProcessRuntime | IsolatedCore) -> None:
        """Make everything known to a core that knows nothing yet."""
        self.bind_import(core)
        for name, given in self._static.items():
            bind_exports(core, name, given)

    def bind_import(self, core: InProcessRuntime | IsolatedCore) -> None:
        """Have a core ask this object for what is imported."""
        asynchronous = self.is_async
        core.bind_import(self.answer_later if asynchronous else self.answer_now, asynchronous)

    def answer_now(self, specifier: object, referrer: object, _type: object, again: object) -> Answer:
        """Answer an import where nothing may wait."""
        answering = self._answer(specifier, referrer, again is True, asynchronous=False)
        try:
            answering.send(None)
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer
        answering.close()
        raise TypeError(
            "the resolver or the loader has returned an awaitable; make it an `async def` function"
        )

    async def answer_later(self, specifier: object, referrer: object, _type: object, again: object) -> Answer:
        """Answer an import on an event loop."""
        return await self._answer(specifier, referrer, again is True, asynchronous=True)

    async def _answer(
        self,
        specifier: object,
        referrer: object,
        again: bool,  # noqa: FBT001
        *,
        asynchronous: bool,
    ) -> Answer:
        if not isinstance(specifier, str) or not isinstance(referrer, str):
            return _refusal("specifier and referrer must be strings")
        if len(specifier) > MAX_NAME:
            return _refusal(f"the specifier is longer than {MAX_NAME} characters")
        name = await self._resolve(specifier, referrer, asynchronous)
        if name is None:
            return _refusal(f"the host has no such module; {_PLEASE}")
        if name in self._sent and not again:
            return [None, name, None, None, None, None]
        try:
            if asynchronous:
                given = await self._find_in_turn(name)
            else:
                given = await self._find(name, asynchronous=False)
        except _Refused as refused:
            return _refusal(str(refused))
        self._sent.add(name)
        return given.answer(name)

    async def _resolve(self, specifier: str, referrer: str, asynchronous: bool) -> str | None:  # noqa: FBT001
        if self._resolver is not None:
            name = await _settled(self._resolver(specifier, referrer), asynchronous)
            if name is not None:
                if not isinstance(name, str):
                    raise TypeError(f"the resolver must return str or None, not {type(name).__name__}")
                return check_module_name(name)
        if specifier in self._static:
            return specifier
        name = _relative(specifier, referrer) if specifier.startswith(("./", "../")) else specifier
        if name is None or name in self._static or name in self._given:
            return name
        # A resolver that knows nothing of a specifier leaves it to what the host has registered.
        return name if self._loader is not None and self._resolver is None else None

    async def _find_in_turn(self, name: str) -> _Given:
        """Find a module that several imports may ask for at a time; where one fails, the next tries again."""
        import asyncio

        while (other := self._finding.get(name)) is not None:
            await asyncio.wait([other])
        found = self._finding[name] = asyncio.get_running_loop().create_future()
        try:
            return await self._find(name, asynchronous=True)
        finally:
            del self._finding[name]
            found.set_result(None)

    async def _find(self, name: str, *, asynchronous: bool) -> _Given:
        given = self._given.get(name) or self._static.get(name)
        if given is None and self._loader is not None:
            given = _as_given(await _settled(self._loader(name), asynchronous), name)
        if given is None:
            raise _Refused(f"the host has no source for {name[:200]!r}; {_PLEASE}")
        if name not in self._allowed:
            await self._allow(name, given, asynchronous)
        return given

    async def _allow(self, name: str, given: _Given, asynchronous: bool) -> None:  # noqa: FBT001
        """Count a module, and ask the gate about its source."""
        if given.source is not None and self._gate is not None:
            context = GateContext(name, self._runtime)
            if asynchronous:
                await pass_gate_async(self._gate, self._gate_timeout, given.source, context)
            else:
                pass_gate(self._gate, self._gate_timeout, given.source, context)
        length = len(given.source.encode("utf-8", "surrogatepass")) if given.source is not None else 0
        if self._count >= self._max_modules:
            raise _Refused(f"there are {self._max_modules} modules already (max_modules)")
        if self._bytes + length > self._max_bytes:
            raise _Refused(f"all modules together may have {self._max_bytes} bytes (max_module_bytes)")
        self._bytes += length
        self._count += 1
        self._allowed.add(name)
        if name not in self._static:
            self._given[name] = given


_PLEASE = (
    "it can add it with add_static_module, or give modules with set_module_resolver and set_module_loader"
)


class _Refused(Exception):
    """A module is not given, for a reason that the script may know."""


def _refusal(reason: str) -> Answer:
    return [reason, None, None, None, None, None]


async def _settled(value: T | Awaitable[T], asynchronous: bool) -> T:  # noqa: FBT001
    if not hasattr(value, "__await__"):
        return value
    if not asynchronous:
        close = getattr(value, "close", None)
        if close is not None:
            close()
        raise TypeError("a resolver or loader that returns an awaitable must be an `async def` function")
    return await value


def _as_given(loaded: object, name: str) -> _Given | None:
    if loaded is None:
        return None
    if isinstance(loaded, ModuleSource):
        return _Given(loaded.language, loaded.text)
    if isinstance(loaded, str):
        return _Given(language_of(name), str.__str__(loaded))
    if hasattr(loaded, "items"):
        given = _values(loaded)
        if given.functions:
            raise TypeError("a module with functions must be registered with add_static_module")
        return given
    raise TypeError(
        f"the loader must return str, ModuleSource, a mapping or None, not {type(loaded).__name__}"
    )


def _values(mapping: Any) -> _Given:
    from ._pydeno import JsFunction

    values: dict[str, object] = {}
    functions: dict[str, Callable[..., object]] = {}
    for name, value in mapping.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of a module's exports must be str, not {type(name).__name__}")
        if callable(value) and not isinstance(value, JsFunction):
            functions[name] = value
        else:
            values[name] = value
    return _Given(_VALUES, None, values, functions)


def bind_exports(core: InProcessRuntime | IsolatedCore, name: str, given: _Given) -> None:
    """Make the functions that a module exports known to a core."""
    if given.functions:
        functions = list(given.functions.values())
        core.bind_exports(
            name, list(given.functions), functions, [is_async(function) for function in functions]
        )


def _relative(specifier: str, referrer: str) -> str | None:
    """The name that a relative specifier means; `None` for one that leads out of the root."""
    if "://" in referrer:
        from urllib.parse import urljoin

        return urljoin(referrer, specifier)
    folder = referrer.rpartition("/")[0]
    parts = folder.split("/") if folder else []
    for part in specifier.split("/"):
        if part == "..":
            if not parts or parts == [""]:
                return None
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
