"""What a run has come to: a call of a tool, its value, or an error."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._errors import PydenoError


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
