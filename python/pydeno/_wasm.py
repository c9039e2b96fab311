"""WebAssembly modules that the host loads beside a script."""

from __future__ import annotations

from ._config import check_callable, check_identifier, is_async
from ._errors import InvalidInput
from ._pydeno import WasmOutline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ._pydeno import InProcessRuntime
    from ._pydeno import IsolatedRuntime as IsolatedCore

    Imports = Mapping[str, Mapping[str, Callable[..., object]]]


class WasmModule:
    """A WebAssembly module that `load_wasm` has loaded.

    Attributes:
        name: The global that the script finds it under.
        exports: What the script has there, for the host: a `JsFunction` for each function, a dict of the functions
            `read`, `write` and `size` for each memory, a number for each constant. They are the module's also when the
            script has put something else under the name. What they return is as little to be trusted as what an
            evaluation returns.
        functions: The type of each function that it exports, such as `"(i32, i64) -> f64"`.
        left_out: The names of its exports that the script does not get: tables, tags, variables, shared memories, and
            functions that take or return something else than numbers.
        memory_pages: With how many pages of 64 KiB its memories begin.
        max_memory_pages: To how many they can grow by the module's own word; `None` where it says nothing.
    """

    __slots__ = ("exports", "functions", "left_out", "max_memory_pages", "memory_pages", "name")

    def __init__(self, name: str, exports: dict[str, Any], outline: WasmOutline) -> None:
        """Describe a module; pydeno does."""
        self.name = name
        self.exports = exports
        self.functions = dict(outline.functions)
        self.left_out = tuple(outline.left_out)
        self.memory_pages = outline.memory_pages
        self.max_memory_pages = outline.max_memory_pages

    def __repr__(self) -> str:
        """Show what matters."""
        return f"<pydeno.WasmModule {self.name!r} exports={list(self.exports)}>"


class Loading:
    """A module and what it is given, checked."""

    __slots__ = ("_code", "_functions", "_name", "_outline")

    def __init__(self, name: str, code: object, imports: Imports | None, limit: tuple[int, str]) -> None:
        check_identifier(name)
        if isinstance(code, str):
            raise TypeError("the module must be bytes in WebAssembly's binary format, not str")
        self._name = name
        self._code = bytes(memoryview(code))  # type: ignore[arg-type] # what is no buffer is refused there
        given = {} if imports is None else _given(imports)
        self._outline = WasmOutline(self._code)
        self._outline.check(list(given), *limit)
        self._functions = []
        for pair in self._outline.imports:
            function = given[pair]
            if is_async(function):
                raise InvalidInput(
                    f"the import {'.'.join(pair)} is an async function, for which WebAssembly does not wait; give one "
                    "that is not"
                )
            self._functions.append(function)

    def load(self, core: InProcessRuntime | IsolatedCore) -> dict[str, Any]:
        """Load it, and wait for that."""
        return core.load_wasm(  # type: ignore[no-any-return]
            self._name, self._code, self._outline, self._functions
        )

    def begin(self, core: InProcessRuntime | IsolatedCore) -> int:
        """Begin to load it; the request's number."""
        return core.begin_load_wasm(self._name, self._code, self._outline, self._functions)

    def loaded(self, exports: dict[str, Any]) -> WasmModule:
        """The module, once its exports are known."""
        return WasmModule(self._name, exports, self._outline)


def _given(imports: Imports) -> dict[tuple[str, str], Callable[..., object]]:
    given: dict[tuple[str, str], Callable[..., object]] = {}
    for module, functions in imports.items():
        if not isinstance(module, str):
            raise TypeError(f"the keys of imports must be str, not {type(module).__name__}")
        if not hasattr(functions, "items"):
            raise TypeError(
                f"imports[{module!r}] must be a mapping of functions, not {type(functions).__name__}"
            )
        for name, function in functions.items():
            if not isinstance(name, str):
                raise TypeError(f"the keys of imports[{module!r}] must be str, not {type(name).__name__}")
            check_callable(function, f"the import {module}.{name}")
            given[module, name] = function
    return given
