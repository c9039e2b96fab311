"""Streams: a script's async iterators as `JsStream`, and Python's async iterables as async iterators of a script.

`HostStreams` is the registry of what a script may ask. The functions behind it are the methods of `JsStream`, which the
extension module calls with the stream's runtime.
"""

from __future__ import annotations

import os

from ._errors import ConversionError, InvalidInput, RuntimeTerminated, StreamLimitExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from typing import Any, Final

    from ._event_loop import LoopDriver, PrivateLoop
    from ._pydeno import JsStream
    from ._runtime import RuntimeBase

#: How many streams of the host a script may have that have not ended.
MAX_OPEN: Final = 1000
#: What a stream of the host is asked for: the next item. Anything else ends it.
_NEXT: Final = 0
_END = object()
#: Streams that are being ended while nobody waits for it.
_ending: set[asyncio.Task[Any]] = set()


class _Source:
    """One stream of the host: an iterator, and whose turn it is to ask it."""

    __slots__ = ("is_async", "iterator", "lock")

    def __init__(self, iterable: Any, *, is_async: bool) -> None:
        self.is_async = is_async
        self.iterator = aiter(iterable) if is_async else iterable
        #: A script may ask again before it has been answered. Made when there is a loop.
        self.lock: asyncio.Lock | None = None

    def turn(self) -> asyncio.Lock:
        import asyncio

        if self.lock is None:
            self.lock = asyncio.Lock()
        return self.lock

    async def next(self) -> Any:
        """The next item, or `_END`."""
        if not self.is_async:
            return next(self.iterator, _END)
        try:
            return await anext(self.iterator)
        except StopAsyncIteration:
            return _END

    async def close(self) -> None:
        """Have the iterator end, if it can be told to."""
        if self.is_async:
            close = getattr(self.iterator, "aclose", None)
            if close is not None:
                await close()
        else:
            self.iterator.close()


class HostStreams:
    """The streams of the host that the script of one runtime may ask, by the handles that it knows them by."""

    __slots__ = ("_last", "_process", "_runtime", "_sources")

    def __init__(self, runtime: Callable[[], RuntimeBase | None]) -> None:
        """Make an empty registry for the runtime behind a weak reference."""
        self._runtime = runtime
        self._process = os.getpid()
        self._last = 0
        self._sources: dict[int, _Source] = {}

    def open(self, value: object, is_async: bool) -> int:  # noqa: FBT001
        """A handle for an async iterable, or for a generator."""
        if len(self._sources) >= MAX_OPEN:
            raise InvalidInput(
                f"the script has {MAX_OPEN} streams of the host that have not ended; a stream ends when the script has "
                "read it to its end or has left its loop over it"
            )
        source = _Source(value, is_async=is_async)
        self._last += 1
        self._sources[self._last] = source
        return self._last

    def forget(self, handle: int) -> None:
        """Undo `open`: the script has not been told of it, and nothing has been asked."""
        self._sources.pop(handle, None)

    async def pull(self, handle: int, what: int) -> tuple[Any, ...]:
        """The next item in a tuple, or an empty one: the stream has ended, or does so because it is asked to."""
        source = self._sources.get(handle)
        if source is None:
            return ()
        async with source.turn():
            if handle not in self._sources:
                return ()
            if what != _NEXT:
                del self._sources[handle]
                await source.close()
                return ()
            try:
                item = await source.next()
            except GeneratorExit:
                # The loop is gone, and with it everybody who could wait.
                self._sources.pop(handle, None)
                raise
            except BaseException:
                self._sources.pop(handle, None)
                # What it raises is what the script is told; that it cannot be closed, too, is not.
                _end_later(source.close())
                raise
            if item is _END:
                self._sources.pop(handle, None)
                return ()
            return (item,)

    def pull_blocking(self, handle: int, what: int) -> Any:
        """As `pull`, for an evaluation without an event loop."""
        source = self._sources.get(handle)
        if source is None:
            return ()
        if source.is_async:
            runtime = self._runtime()
            if runtime is None:
                return ()
            return runtime._run_on_private_loop(self.pull(handle, what))
        if what != _NEXT:
            del self._sources[handle]
            source.iterator.close()
            return ()
        try:
            item = next(source.iterator, _END)
        except BaseException:
            self._sources.pop(handle, None)
            raise
        if item is _END:
            self._sources.pop(handle, None)
            return ()
        return (item,)

    def take_open(self) -> list[_Source]:
        """Every stream that has not ended; from now on there is none. A fork leaves them to its parent."""
        if self._process != os.getpid():
            return []
        sources, self._sources = self._sources, {}
        return list(sources.values())


def end_all(streams: HostStreams, driver: LoopDriver | None, private_loop: PrivateLoop | None) -> None:
    """End what the script of a closed runtime has not read to its end.

    Generators end at once. Async ones end on the event loop that they were used on: on the runtime's own before this
    returns, on any other when that goes on.
    """
    sources = _end_generators(streams.take_open())
    if not sources:
        return
    loop = None if driver is None else driver.loop
    if loop is not None and loop.is_running():
        loop.call_soon_threadsafe(_end_later_in_order, sources)
    elif private_loop is not None:
        private_loop.run_last(_close(sources))
    # Without a loop nothing has been asked: an async generator that has not begun has nothing to end.


async def end_async(sources: list[_Source]) -> None:
    """The same for whoever can wait for it."""
    await _close(_end_generators(sources))


def _end_generators(sources: list[_Source]) -> list[_Source]:
    """End those that need no event loop; the others are returned."""
    import contextlib

    for source in sources:
        if not source.is_async:
            # One that runs on another thread cannot be closed, and ends with its last reference.
            with contextlib.suppress(Exception):
                source.iterator.close()
    return [source for source in sources if source.is_async]


async def _close(sources: list[_Source]) -> None:
    """End streams whose script is gone. What they raise is nobody's."""
    import asyncio

    await asyncio.gather(*(source.close() for source in sources), return_exceptions=True)


def _end_later_in_order(sources: list[_Source]) -> None:
    _end_later(_close(sources))


def _end_later(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run the end of a stream on the running loop, for whoever does not wait for it."""
    import asyncio

    task = asyncio.get_running_loop().create_task(coroutine)
    _ending.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _ending.discard(task)
    if not task.cancelled():
        # The stream is gone; nobody is left to be told why it did not end well.
        task.exception()


def _begin(stream: JsStream) -> None:
    if not stream._begin():
        raise InvalidInput("the stream is being asked already; ask for one item after the other")


def _count(stream: JsStream) -> None:
    if not stream._count():
        raise StreamLimitExceeded("the stream has more items than its limit allows; it has been ended")


def next_blocking(runtime: RuntimeBase, stream: JsStream) -> Any:
    """`JsStream.__next__`."""
    if stream.closed:
        raise StopIteration
    runtime._refuse_to_block()
    _begin(stream)
    try:
        item = runtime._pull(stream, ends=False)
        _count(stream)
    except StopAsyncIteration:
        stream._release()
        raise StopIteration from None
    except (ConversionError, StreamLimitExceeded):
        stream._end()
        # The script has done its part, and is told that nobody wants more of it.
        _end(runtime, stream)
        raise
    except InvalidInput:
        raise
    except BaseException:
        stream._release()
        raise
    finally:
        stream._finish()
    return item


async def next_async(runtime: RuntimeBase, stream: JsStream) -> Any:
    """`JsStream.__anext__`."""
    import asyncio

    if stream.closed:
        raise StopAsyncIteration
    _begin(stream)
    try:
        item = await runtime._pull_async(stream, ends=False)
        _count(stream)
    except (ConversionError, StreamLimitExceeded):
        stream._end()
        await _end_async(runtime, stream)
        raise
    except asyncio.CancelledError:
        # Whoever was cancelled is not kept waiting for the script.
        if stream._end():
            _end_later(_end_async(runtime, stream))
        raise
    except InvalidInput:
        raise
    except BaseException:
        stream._release()
        raise
    finally:
        stream._finish()
    return item


def _end(runtime: RuntimeBase, stream: JsStream) -> None:
    """End a stream after something that matters more than how that goes."""
    import contextlib

    from ._errors import PydenoError

    try:
        with contextlib.suppress(StopAsyncIteration, PydenoError):
            runtime._pull(stream, ends=True)
    finally:
        stream._release()


async def _end_async(runtime: RuntimeBase, stream: JsStream) -> None:
    import contextlib

    from ._errors import PydenoError

    try:
        with contextlib.suppress(StopAsyncIteration, PydenoError):
            await runtime._pull_async(stream, ends=True)
    finally:
        stream._release()


def items(runtime: RuntimeBase, stream: JsStream) -> Iterator[Any]:
    """`JsStream.__iter__`: leaving the loop ends the stream."""
    runtime._refuse_to_block()
    return _items(runtime, stream)


def _items(runtime: RuntimeBase, stream: JsStream) -> Iterator[Any]:
    from _thread import get_ident

    thread = get_ident()
    try:
        while True:
            try:
                item = next_blocking(runtime, stream)
            except StopIteration:
                return
            yield item
    finally:
        if get_ident() == thread:
            close(runtime, stream)
        else:
            # The collector's doing: another thread's business is not to be held up.
            stream._release()


async def items_async(runtime: RuntimeBase, stream: JsStream) -> AsyncIterator[Any]:
    """`JsStream.__aiter__`: leaving the loop ends the stream."""
    try:
        while True:
            try:
                item = await next_async(runtime, stream)
            except StopAsyncIteration:
                return
            yield item
    finally:
        await close_async(runtime, stream)


def close(runtime: RuntimeBase, stream: JsStream) -> None:
    """`JsStream.close`."""
    if stream.closed:
        return
    runtime._refuse_to_block()
    if not stream._end():
        return
    try:
        if not (runtime.is_closed() or runtime._core.is_calling()):
            runtime._pull(stream, ends=True)
    except (StopAsyncIteration, RuntimeTerminated):
        pass
    finally:
        stream._release()


async def close_async(runtime: RuntimeBase, stream: JsStream) -> None:
    """`JsStream.aclose`."""
    if not stream._end():
        return
    try:
        if not runtime.is_closed():
            await runtime._pull_async(stream, ends=True)
    except (StopAsyncIteration, RuntimeTerminated):
        pass
    finally:
        stream._release()


async def itself_async(_runtime: RuntimeBase, stream: JsStream) -> JsStream:
    """`JsStream.__aenter__`."""
    return stream
