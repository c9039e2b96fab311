"""Tools: Python functions and functions with a JSON Schema, in one form."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from ._annotations import mismatch, schema_of
from ._config import check_callable, check_host_function, is_async
from ._errors import InvalidInput
from ._pydeno import undefined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    ToolLike: TypeAlias = "Callable[..., Any] | SchemaTool | Mapping[str, Any]"
    Tools: TypeAlias = "Mapping[str, ToolLike] | Iterable[ToolLike]"

#: Words that no function of a program can be called by.
RESERVED = frozenset(
    (
        "arguments",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "debugger",
        "default",
        "delete",
        "do",
        "else",
        "enum",
        "eval",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "function",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "let",
        "new",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "var",
        "void",
        "while",
        "with",
        "yield",
    )
)
#: How much of a validator's words the program is told.
_MOST_WORDS = 400


class SchemaTool:
    """A tool whose arguments are described by a JSON Schema, as in the Model Context Protocol.

    The program calls it with one object, which is checked before `call` gets it as a `dict`. The check is that of the
    package `jsonschema` (`pip install pydeno[agents]`).

    Args:
        name: What programs call it.
        description: What it does, for whoever writes the program.
        input_schema: A JSON Schema of type `object`.
        call: Called with the arguments as one `dict`, sync or async; `None` where only `resume` answers.
        output_schema: A JSON Schema of what it returns, for `typescript_stubs()` and its kin; it is not checked.

    >>> def forecast(arguments):
    ...     return f"sun in {arguments['city']}"
    >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> SchemaTool("forecast", "Tomorrow's weather.", schema, forecast)
    SchemaTool('forecast')
    """

    __slots__ = ("call", "description", "input_schema", "name", "output_schema")

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: Mapping[str, Any],
        call: Callable[[dict[str, Any]], Any] | None = None,
        *,
        output_schema: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the parts."""
        if not isinstance(name, str) or not isinstance(description, str):
            raise TypeError("a tool's name and description must be str")
        if not isinstance(input_schema, Mapping):
            raise TypeError(f"a tool's input_schema must be a mapping, not {type(input_schema).__name__}")
        if output_schema is not None and not isinstance(output_schema, Mapping):
            raise TypeError(f"a tool's output_schema must be a mapping, not {type(output_schema).__name__}")
        if call is not None:
            check_callable(call, f"the call of {name!r}")
        self.name = name
        self.description = description
        self.input_schema = dict(input_schema)
        self.output_schema = None if output_schema is None else dict(output_schema)
        self.call = call

    def __repr__(self) -> str:
        """Show the name."""
        return f"SchemaTool({self.name!r})"


class ArgumentsError(Exception):
    """The arguments of a call are not what the tool takes; the program is told."""


class Tool:
    """A tool in the form that sessions use. `__name__` is what errors call it."""

    __slots__ = ("__name__", "call", "description", "details", "is_async", "name", "schema")

    schema: dict[str, Any]

    def __init__(self, name: str, description: str, call: Callable[..., Any] | None) -> None:
        self.name = name
        self.__name__ = name
        self.description = description
        #: What each parameter is, as far as somebody has said.
        self.details: dict[str, str] = {}
        self.call = call
        self.is_async = call is not None and is_async(call)

    @property
    def takes_object(self) -> bool:
        """Whether the program passes one object."""
        raise NotImplementedError

    @property
    def returns(self) -> dict[str, Any]:
        """The JSON Schema of what it returns, `{}` when nobody has said."""
        return {}

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, in order."""
        return list(self.schema.get("properties", ()))

    @property
    def required(self) -> frozenset[str]:
        """The parameters without which it cannot be called."""
        return frozenset(self.schema.get("required", ()))

    def bind(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """The arguments by name, checked."""
        while arguments and arguments[-1] is undefined:
            arguments = arguments[:-1]
        named = self._named(arguments)
        missing = [name for name in self.parameters if name in self.required and name not in named]
        if missing:
            raise ArgumentsError(f"{self.name}: the argument {missing[0]} is missing")
        wrong = self.check(named)
        if wrong is not None:
            raise ArgumentsError(f"{self.name}: {wrong}"[:_MOST_WORDS])
        return named

    def _named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if len(arguments) == 1 and isinstance(arguments[0], dict) and self.is_named(arguments[0]):
            return {name: value for name, value in arguments[0].items() if value is not undefined}
        names = self.parameters
        if len(arguments) > len(names):
            raise ArgumentsError(f"{self.name}: takes {len(names)} arguments, not {len(arguments)}")
        pairs = zip(names, arguments, strict=False)
        return {name: value for name, value in pairs if value is not undefined}

    def is_named(self, argument: dict[Any, Any]) -> bool:
        """Whether the only argument holds the arguments by name."""
        raise NotImplementedError

    def check(self, named: dict[str, Any]) -> str | None:
        """What is wrong with the arguments."""
        raise NotImplementedError

    def invoke(self, named: dict[str, Any]) -> Any:
        """Call the function behind it."""
        raise NotImplementedError


class FunctionTool(Tool):
    """A Python function; its signature, annotations and docstring say what it takes."""

    __slots__ = ("_hints", "_open", "_signature")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        summary, details = _docstring(inspect.getdoc(function) or "")
        super().__init__(name, summary, function)
        self.details = details
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"the tool {name!r} has no signature; wrap it in a function that has"
            ) from error
        try:
            self._hints = typing.get_type_hints(function, include_extras=True)
        except Exception:  # noqa: BLE001 - annotations may be anything; without them nothing is checked
            self._hints = {}
        properties: dict[str, Any] = {}
        required = []
        self._open = False
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                raise InvalidInput(f"the tool {name!r} takes *{parameter.name}; its parameters need names")
            if parameter.kind is parameter.VAR_KEYWORD:
                self._open = True
                continue
            properties[parameter.name] = schema_of(self._hints.get(parameter.name, Any))
            if parameter.name in details:
                properties[parameter.name]["description"] = details[parameter.name]
            if parameter.default is parameter.empty:
                required.append(parameter.name)
        self.schema = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": self._open,
        }

    @property
    def takes_object(self) -> bool:
        """Whether the program passes one object."""
        return False

    @property
    def returns(self) -> dict[str, Any]:
        """The JSON Schema of what it returns."""
        return schema_of(self._hints.get("return", Any))

    def is_named(self, argument: dict[Any, Any]) -> bool:
        """An object whose keys are all parameters holds the arguments by name."""
        return bool(argument) and (self._open or argument.keys() <= set(self.parameters))

    def check(self, named: dict[str, Any]) -> str | None:
        """Compare with the annotations."""
        found = (
            mismatch(self._hints.get(name, Any), value, f"the argument {name}")
            for name, value in named.items()
        )
        return next((text for text in found if text), None)

    def invoke(self, named: dict[str, Any]) -> Any:
        """Call the function."""
        if self.call is None:
            raise TypeError(f"the tool {self.name} has no function")
        bound = self._signature.bind_partial()
        known = self._signature.parameters
        rest = {name: value for name, value in named.items() if name not in known}
        bound.arguments.update({name: named[name] for name in known if name in named})
        return self.call(*bound.args, **bound.kwargs, **rest)


class DescribedTool(Tool):
    """A tool with a JSON Schema."""

    __slots__ = ("_returns", "_validator")

    def __init__(self, tool: SchemaTool) -> None:
        super().__init__(tool.name, tool.description, tool.call)
        self.schema = tool.input_schema
        self._returns = tool.output_schema
        if self.schema.get("type", "object") != "object":
            raise InvalidInput(f"the input_schema of {tool.name!r} must be of type object")
        self._validator = _validator(tool)
        for name, schema in self.schema.get("properties", {}).items():
            if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
                self.details[name] = schema["description"]

    @property
    def takes_object(self) -> bool:
        """Whether the program passes one object."""
        return True

    @property
    def returns(self) -> dict[str, Any]:
        """The JSON Schema of what it returns, as far as somebody has said."""
        return self._returns or {}

    def is_named(self, argument: dict[Any, Any]) -> bool:  # noqa: ARG002 - whatever it holds
        """An object is the arguments, always."""
        return True

    def check(self, named: dict[str, Any]) -> str | None:
        """Validate against the schema."""
        from jsonschema.exceptions import best_match

        error = best_match(self._validator.iter_errors(named))
        if error is None:
            return None
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        where = f"the argument {path.removeprefix('.')}: " if path else ""
        return f"{where}{error.message}"

    def invoke(self, named: dict[str, Any]) -> Any:
        """Call the function with the arguments as one dict."""
        if self.call is None:
            raise TypeError(f"the tool {self.name} has no function; answer its calls with resume")
        return self.call(named)


def _validator(tool: SchemaTool) -> Any:
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for
        from referencing import Registry
    except ImportError as error:
        raise InvalidInput(
            f"the tool {tool.name!r} has a JSON Schema, and the package jsonschema, which checks arguments, is not "
            "installed: pip install 'pydeno[agents]'"
        ) from error
    cls = validator_for(tool.input_schema, default=Draft202012Validator)
    try:
        cls.check_schema(tool.input_schema)
    except SchemaError as error:
        raise InvalidInput(f"the input_schema of {tool.name!r} is no JSON Schema: {error.message}") from error
    # A registry of its own: a reference to another document is an error and never a download.
    return cls(tool.input_schema, registry=Registry())


def collect(tools: Tools, what: str, *, declared: bool) -> list[Tool]:
    """The tools of an argument, in the form that sessions use."""
    entries: Iterable[tuple[str | None, ToolLike]]
    if isinstance(tools, Mapping):
        entries = list(tools.items())
    elif isinstance(tools, Iterable) and not isinstance(tools, (str, bytes)):
        entries = [(None, tool) for tool in tools]
    else:
        raise TypeError(f"{what} must be a mapping or a list of tools, not {type(tools).__name__}")
    collected: dict[str, Tool] = {}
    for name, tool in entries:
        made = _tool(name, tool, what)
        if made.name in collected:
            raise InvalidInput(f"{what} has two tools named {made.name!r}")
        if declared:
            check_host_function(made.name, made.bind)
            if made.name in RESERVED:
                raise InvalidInput(f"{made.name!r} is a word of JavaScript and cannot name a tool")
        collected[made.name] = made
    return list(collected.values())


def _tool(name: str | None, tool: ToolLike, what: str) -> Tool:
    if name is not None and not isinstance(name, str):
        raise TypeError(f"the names of {what} must be str, not {type(name).__name__}")
    if isinstance(tool, Mapping):
        unknown = tool.keys() - {
            "name",
            "description",
            "inputSchema",
            "input_schema",
            "outputSchema",
            "call",
            "title",
            "annotations",
        }
        if unknown:
            raise InvalidInput(f"a tool of {what} has an unknown field {min(unknown)!r}")
        schema = tool.get("inputSchema", tool.get("input_schema", {"type": "object"}))
        tool = SchemaTool(
            tool.get("name", name),
            tool.get("description", ""),
            schema,
            tool.get("call"),
            output_schema=tool.get("outputSchema"),
        )
    if isinstance(tool, SchemaTool):
        if name is not None and name != tool.name:
            raise InvalidInput(f"{what} has the tool {tool.name!r} under the name {name!r}")
        return DescribedTool(tool)
    check_callable(tool, f"a tool of {what}")
    own = getattr(tool, "__name__", None)
    if name is None and (not isinstance(own, str) or own == "<lambda>"):
        raise InvalidInput(f"a tool of {what} has no name; pass a mapping")
    return FunctionTool(name if name is not None else str(own), tool)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The words before the sections, and what `Args:` says of each parameter."""
    head, _, rest = text.partition("\nArgs:\n")
    details: dict[str, str] = {}
    name = None
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break
        if found := re.match(r"^ {1,4}\*{0,2}(\w+)(?: \([^)]*\))?: (.*)$", line):
            name = found[1]
            details[name] = found[2].strip()
        elif name is not None and line.strip():
            details[name] += " " + line.strip()
    sections = re.split(r"\n(?:Returns|Raises|Yields|Example|Examples|Note|Notes):\n", head)
    return sections[0].strip(), details
