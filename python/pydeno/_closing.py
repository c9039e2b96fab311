"""What is closed at the end of a `with` block."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeVar

    Self = TypeVar("Self", bound="Closing")


class Closing:
    """A context manager that closes itself."""

    __slots__ = ()

    def close(self) -> None:
        """End what this stands for; a second time does nothing."""
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        """Use it as a context manager that closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
