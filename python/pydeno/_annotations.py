"""What annotations of a Python function say of its arguments: as JSON Schema, and as a check of values."""

from __future__ import annotations

import collections.abc
import datetime
import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

from ._pydeno import undefined

#: JSON Schema has no words for these; `$comment` names the JavaScript class.
_CLASSES: dict[object, str] = {datetime.datetime: "Date", bytes: "Uint8Array"}
_PLAIN: dict[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def schema_of(annotation: Any) -> dict[str, Any]:  # noqa: PLR0911 - one for each kind of annotation
    """The JSON Schema of an annotation, `{}` for one that says nothing of a value."""
    annotation = _plain(annotation)
    if annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if annotation in _CLASSES:
        return {"$comment": _CLASSES[annotation]}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if typing.is_typeddict(annotation):
        hints = typing.get_type_hints(annotation)
        return {
            "type": "object",
            "properties": {name: schema_of(hint) for name, hint in hints.items()},
            "required": sorted(annotation.__required_keys__),
            "additionalProperties": False,
        }
    kind = origin or annotation
    if kind in _LISTS:
        items = [argument for argument in arguments if argument is not Ellipsis]
        if kind is tuple and items and Ellipsis not in arguments:
            return {
                "type": "array",
                "prefixItems": [schema_of(item) for item in items],
                "minItems": len(items),
                "maxItems": len(items),
            }
        return {"type": "array", "items": schema_of(items[0])} if items else {"type": "array"}
    if kind in _DICTS:
        values = schema_of(arguments[1]) if len(arguments) > 1 else {}
        return {"type": "object", "additionalProperties": values or True}
    return {}


def mismatch(annotation: Any, value: object, path: str) -> str | None:  # noqa: PLR0911 - as above
    """What is wrong with a value, in words that begin with where; `None` when nothing is."""
    annotation = _plain(annotation)
    if annotation in _PLAIN or annotation in _CLASSES:
        if _is(annotation, value):
            return None
        return f"{path} must be {_PLAIN.get(annotation) or _CLASSES[annotation]}, not {_name(value)}"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        if any(type(value) is type(choice) and value == choice for choice in arguments):
            return None
        return f"{path} must be one of {', '.join(map(repr, arguments))}"
    if origin in (Union, types.UnionType):
        found = [mismatch(argument, value, path) for argument in arguments]
        return None if None in found else " or ".join(text for text in found if text)
    if typing.is_typeddict(annotation):
        return _fields(annotation, value, path)
    kind = origin or annotation
    if kind in _LISTS:
        return _items(kind, arguments, value, path)
    if kind in _DICTS:
        if not isinstance(value, dict):
            return f"{path} must be object, not {_name(value)}"
        if len(arguments) < 2:  # noqa: PLR2004 - keys and values
            return None
        return _first(mismatch(arguments[1], item, f"{path}.{key}") for key, item in value.items())
    return None


def _plain(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is typing.Annotated:
            annotation = get_args(annotation)[0]
        elif annotation is None:
            return type(None)
        else:
            try:
                hash(annotation)
            except TypeError:
                return Any
            return annotation


def _is(kind: Any, value: object) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _fields(annotation: Any, value: object, path: str) -> str | None:
    if not isinstance(value, dict):
        return f"{path} must be object, not {_name(value)}"
    hints = typing.get_type_hints(annotation)
    for name in value:
        if name not in hints:
            return f"{path}.{name} is unknown; there are {', '.join(hints)}"
    for name in sorted(annotation.__required_keys__):
        if name not in value:
            return f"{path}.{name} is missing"
    return _first(mismatch(hints[name], item, f"{path}.{name}") for name, item in value.items())


def _items(kind: Any, arguments: tuple[Any, ...], value: object, path: str) -> str | None:
    if not isinstance(value, list):
        return f"{path} must be array, not {_name(value)}"
    kinds = [argument for argument in arguments if argument is not Ellipsis]
    if kind is tuple and kinds and Ellipsis not in arguments:
        if len(value) != len(kinds):
            return f"{path} must have {len(kinds)} items, not {len(value)}"
        pairs = zip(kinds, value, strict=True)
        return _first(mismatch(each, item, f"{path}[{at}]") for at, (each, item) in enumerate(pairs))
    if not kinds:
        return None
    return _first(mismatch(kinds[0], item, f"{path}[{at}]") for at, item in enumerate(value))


def _first(found: collections.abc.Iterable[str | None]) -> str | None:
    return next((text for text in found if text), None)


def _name(value: object) -> str:
    if value is undefined:
        return "undefined"
    for kind, name in (*_PLAIN.items(), (list, "array"), (dict, "object"), *_CLASSES.items()):
        if kind is not float and _is(kind, value) and not (kind is int and isinstance(value, bool)):
            return name
    return "number" if isinstance(value, float) else type(value).__name__
