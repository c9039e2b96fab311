"""The catalog: tools that a program finds by searching, however many there are."""

from __future__ import annotations

import re
from typing import Any

from ._tool_text import signature
from ._tools import ArgumentsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._tools import Tool

#: The most that one search returns.
MOST_FOUND = 50


class Catalog:
    """Tools with their words, ready to be searched."""

    __slots__ = ("_tools", "_words")

    def __init__(self, tools: list[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._words = [(tool, _words(tool.name), _words(tool.description)) for tool in tools]

    def search(self, arguments: tuple[Any, ...]) -> list[dict[str, str]]:
        """Answer `search_tools(query, limit)`."""
        query, limit = (*arguments, None, None)[:2]
        if not isinstance(query, str):
            raise ArgumentsError("search_tools: the argument query must be string")
        if not isinstance(limit, int) or isinstance(limit, bool):
            limit = 10
        wanted = _words(query)
        scored = []
        for at, (tool, name, description) in enumerate(self._words):
            score = sum(3 * (word in name) + (word in description) for word in wanted)
            score += sum(any(other.startswith(word) for other in name | description) for word in wanted)
            if score or not wanted:
                scored.append((-score, at, tool))
        found = [tool for _, _, tool in sorted(scored, key=lambda entry: entry[:2])]
        found = found[: max(1, min(limit, MOST_FOUND))]
        return [{"name": tool.name, "description": tool.description.partition("\n")[0]} for tool in found]

    def describe(self, arguments: tuple[Any, ...]) -> dict[str, Any] | None:
        """Answer `describe_tool(name)`; `None` when there is no such tool."""
        name = arguments[0] if arguments else None
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return None
        return {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.schema,
            "usage": f"call_tool({tool.name!r}, args); as TypeScript: {signature(tool)}",
        }


def _words(text: str) -> set[str]:
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return {word.lower() for word in re.findall(r"[^\W_]+", parted)}
