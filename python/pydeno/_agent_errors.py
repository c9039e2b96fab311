"""What can go wrong in an agent's session, beside what can go wrong in any runtime."""

from __future__ import annotations

from ._errors import Frame, PydenoError, register


class ToolError(PydenoError):
    """A call of a tool was answered with an error that the program did not catch. The session is usable.

    Attributes:
        tool: The tool's name, `""` when there is no such tool.
        frames: The program's stack, innermost first.
    """

    tool: str = ""
    name: str = ""
    message: str = ""
    stack: str = ""
    frames: list[Frame]
    runtime_survives = True


class ToolFailed(ToolError):
    """A tool raised an exception, which is the cause. The session is usable."""

    kind = "tool_failed"


class ToolNotFound(ToolError):
    """The program called a tool by a name that no tool has. The session is usable."""

    kind = "tool_not_found"


class ToolBudgetExceeded(ToolError):
    """The program called a tool more often than its budget allows. The session is usable."""

    kind = "tool_budget"


class MaxPauseExceeded(PydenoError):
    """A run waited longer than `max_pause` for answers. The session is usable."""

    kind = "max_pause"


class JournalError(PydenoError):
    """There is no journal, or it was changed, cut, too long, or written by another build or session.

    No worker was started for it, except where only a worker can tell: with another engine.
    """

    kind = "journal_invalid"


class ReplayDivergence(PydenoError):
    """A replay is not what the journal says; the message names the run and the difference. No tool was called."""

    kind = "replay_divergence"


register(ToolFailed, ToolNotFound, ToolBudgetExceeded, MaxPauseExceeded, JournalError, ReplayDivergence)
