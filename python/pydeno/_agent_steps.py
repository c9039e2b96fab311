"""What a run has come to: a call of a tool, its value, or an error. And calls on their way to their tools."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._errors import PydenoError
    from ._tools import Tool


class ToolCall:
    """The run waits for the answer to a call of a tool: give it to `resume`.

    Attributes:
        id: The call's number: unique in the session, and the same after `load`.
        name: The tool's name.
        arguments: The arguments by name, checked.
    """

    __match_args__ = ("name", "arguments")
    __slots__ = ("arguments", "id", "name")

    def __init__(self, id: int, name: str, arguments: dict[str, Any]) -> None:  # noqa: A002
        """Make a step; pydeno does."""
        self.id = id
        self.name = name
        self.arguments = arguments

    def __repr__(self) -> str:
        """Show every field."""
        return f"ToolCall(id={self.id}, name={self.name!r}, arguments={self.arguments!r})"


class Done:
    """The run has ended.

    Attributes:
        value: Its value.
    """

    __match_args__ = ("value",)
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        """Make a step; pydeno does."""
        self.value = value

    def __repr__(self) -> str:
        """Show the value."""
        return f"Done({self.value!r})"


class Failed:
    """The run has failed.

    Attributes:
        error: What `run` would have raised.
    """

    __match_args__ = ("error",)
    __slots__ = ("error",)

    def __init__(self, error: PydenoError) -> None:
        """Make a step; pydeno does."""
        self.error = error

    def __repr__(self) -> str:
        """Show the error."""
        return f"Failed({self.error!r})"


class PendingCall:
    """A call that the session has to answer."""

    __slots__ = ("arguments", "id", "target")

    def __init__(self, id: int, target: int, arguments: tuple[Any, ...]) -> None:  # noqa: A002
        self.id = id
        self.target = target
        self.arguments = arguments


class ReadyCall:
    """A call of a tool with its arguments, checked."""

    __slots__ = ("arguments", "id", "tool")

    def __init__(self, id: int, tool: Tool, arguments: dict[str, Any]) -> None:  # noqa: A002
        self.id = id
        self.tool = tool
        self.arguments = arguments

    def step(self) -> ToolCall:
        """The call as its caller sees it."""
        return ToolCall(self.id, self.tool.name, self.arguments)
