"""Tools in words for a prompt, and as TypeScript declarations."""

from __future__ import annotations

import json
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._tools import Tool

_TYPES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
#: How deeply a schema is followed; beyond, its type is `unknown`.
_DEEPEST = 12

CATALOG_STUBS = (
    "search_tools(query: string, limit?: number): Promise<{ name: string; description: string }[]>",
    "describe_tool(name: string): Promise<{ name: string; description: string; inputSchema: unknown; usage: string }>",
    "call_tool(name: string, args?: { [key: string]: unknown }): Promise<unknown>",
)
CATALOG_WORDS = (
    "Find tools: an array of {name, description}, best match first.",
    "One tool's description, JSON Schema and usage.",
    "Call a tool that search_tools has found, with its arguments by name.",
)


def signature(tool: Tool) -> str:
    """A call of a tool as TypeScript declares it: `rate(currency: string): Promise<number>`."""
    return f"{tool.name}({_parameters(tool)}): Promise<{typescript(tool.returns)}>"


def describe(tools: Iterable[Tool], namespace: str | None, *, has_catalog: bool) -> str:
    """A list of tools for a prompt."""
    prefix = f"{namespace}." if namespace else ""
    lines = []
    for tool in tools:
        lines.append(f"- {prefix}{signature(tool)}")
        lines.extend(f"    {line}".rstrip() for line in tool.description.splitlines())
        lines.extend(f"    {name}: {words}" for name, words in tool.details.items())
    if has_catalog:
        for stub, words in zip(CATALOG_STUBS, CATALOG_WORDS, strict=True):
            lines.extend((f"- {prefix}{stub}", f"    {words}"))
    return "\n".join(lines)


def stubs(tools: Iterable[Tool], namespace: str | None, *, has_catalog: bool) -> str:
    """TypeScript declarations of tools."""
    entries = [(signature(tool), _comment(tool)) for tool in tools]
    if has_catalog:
        entries.extend((stub, [words]) for stub, words in zip(CATALOG_STUBS, CATALOG_WORDS, strict=True))
    lines: list[str] = []
    indent = "  " if namespace else ""
    if namespace:
        lines.append(f"declare const {namespace}: {{")
    for text, comment in entries:
        if comment:
            lines.append(f"{indent}/**")
            lines.extend(f"{indent} * {line}".rstrip().replace("*/", "* /") for line in comment)
            lines.append(f"{indent} */")
        lines.append(f"{indent}{text};" if namespace else f"declare function {text};")
    if namespace:
        lines.append("};")
    return "\n".join(lines) + "\n" if lines else ""


def _comment(tool: Tool) -> list[str]:
    lines = tool.description.splitlines()
    return lines + [f"@param {name} {words}" for name, words in tool.details.items() if not tool.takes_object]


def _parameters(tool: Tool) -> str:
    if tool.takes_object:
        optional = "" if tool.required else "?"
        return f"args{optional}: {typescript(tool.schema)}"
    properties = tool.schema["properties"]
    names = list(properties)
    # TypeScript wants what may be left out last; what stands before something that may not be is at least `undefined`.
    last = max((at for at, name in enumerate(names) if name in tool.required), default=-1)
    parts = []
    for at, (name, schema) in enumerate(properties.items()):
        kind = typescript(schema)
        if name in tool.required:
            parts.append(f"{name}: {kind}")
        else:
            parts.append(f"{name}?: {kind}" if at > last else f"{name}: {kind} | undefined")
    if tool.schema["additionalProperties"]:
        parts.append("options?: { [key: string]: unknown }")
    return ", ".join(parts)


def typescript(schema: Any) -> str:
    """The TypeScript type of a JSON Schema; `unknown` where there is none."""
    return _type(schema, schema if isinstance(schema, dict) else {}, 0)


def _type(schema: Any, root: dict[str, Any], depth: int) -> str:  # noqa: PLR0911 - one for each keyword
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "unknown"
    if isinstance(schema.get("$ref"), str):
        return _type(_referred(schema["$ref"], root), root, depth + 1)
    if schema.get("$comment") in ("Date", "Uint8Array"):
        return str(schema["$comment"])
    if "const" in schema:
        return _literal(schema["const"])
    if isinstance(schema.get("enum"), list):
        return " | ".join(dict.fromkeys(_literal(value) for value in schema["enum"])) or "never"
    for word, operator in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
        if isinstance(schema.get(word), list) and schema[word]:
            parts = dict.fromkeys(_type(part, root, depth + 1) for part in schema[word])
            return operator.join(f"({part})" if " " in part and len(parts) > 1 else part for part in parts)
    kind = schema.get("type")
    if isinstance(kind, list):
        parts = dict.fromkeys(_type({**schema, "type": each}, root, depth + 1) for each in kind)
        return " | ".join(parts) or "unknown"
    if kind == "array":
        return _array(schema, root, depth)
    if kind == "object" or "properties" in schema:
        return _object(schema, root, depth)
    return _TYPES.get(kind, "unknown") if isinstance(kind, str) else "unknown"


def _array(schema: dict[str, Any], root: dict[str, Any], depth: int) -> str:
    if isinstance(schema.get("prefixItems"), list):
        return f"[{', '.join(_type(item, root, depth + 1) for item in schema['prefixItems'])}]"
    item = _type(schema.get("items"), root, depth + 1)
    return f"({item})[]" if " | " in item or " & " in item else f"{item}[]"


def _object(schema: dict[str, Any], root: dict[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    required = schema.get("required", ())
    fields = []
    for name, part in (properties if isinstance(properties, dict) else {}).items():
        key = name if name.isidentifier() and name.isascii() else json.dumps(name)
        optional = "" if name in required else "?"
        fields.append(f"{key}{optional}: {_type(part, root, depth + 1)}")
    rest = schema.get("additionalProperties", True)
    if rest is not False and not fields:
        fields.append(f"[key: string]: {_type(rest, root, depth + 1)}")
    return "{ " + "; ".join(fields) + " }" if fields else "{}"


def _literal(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (str, int, float, bool, type(None))) else "unknown"


def _referred(reference: str, root: dict[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if reference.startswith("#") else None
