"""JavaScriptCore without pydeno: evaluates lines of scripts, each in a fresh context, and says how they ended.

A line is a JSON array of sources. The answer is `[[name, message], outcome]`, or `[null, outcome]` when nothing was
thrown.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

NAMES = ("libjavascriptcoregtk-6.0.so.1", "libjavascriptcoregtk-4.1.so.0", "libjavascriptcoregtk-4.0.so.18")
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "JSContextGroupCreate": (ctypes.c_void_p, []),
    "JSContextGroupRelease": (None, [ctypes.c_void_p]),
    "JSGlobalContextCreateInGroup": (ctypes.c_void_p, [ctypes.c_void_p] * 2),
    "JSGlobalContextRelease": (None, [ctypes.c_void_p]),
    "JSContextGetGlobalObject": (ctypes.c_void_p, [ctypes.c_void_p]),
    "JSEvaluateScript": (ctypes.c_void_p, [ctypes.c_void_p] * 4 + [ctypes.c_int, ctypes.c_void_p]),
    "JSObjectGetProperty": (ctypes.c_void_p, [ctypes.c_void_p] * 4),
    "JSValueIsObject": (ctypes.c_bool, [ctypes.c_void_p] * 2),
    "JSValueToStringCopy": (ctypes.c_void_p, [ctypes.c_void_p] * 3),
    "JSStringCreateWithCharacters": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_size_t]),
    "JSStringGetLength": (ctypes.c_size_t, [ctypes.c_void_p]),
    "JSStringGetCharactersPtr": (ctypes.c_void_p, [ctypes.c_void_p]),
    "JSStringRelease": (None, [ctypes.c_void_p]),
}


class Context:
    """A context in a group of its own."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._group = library.JSContextGroupCreate()
        self._context = library.JSGlobalContextCreateInGroup(self._group, None)

    def close(self) -> None:
        """Release what the context holds."""
        self._library.JSGlobalContextRelease(self._context)
        self._library.JSContextGroupRelease(self._group)

    def evaluate(self, source: str) -> tuple[int | None, tuple[str, str] | None]:
        """The value, or name and message of what was thrown."""
        script, exception = self._string(source), ctypes.c_void_p()
        value = self._library.JSEvaluateScript(self._context, script, None, None, 1, ctypes.byref(exception))
        self._library.JSStringRelease(script)
        return (None, self._describe(exception)) if exception.value else (value, None)

    def text(self, value: int | ctypes.c_void_p | None) -> str:
        """The value as a string; empty if it has none."""
        if value is None:
            return ""
        string = self._library.JSValueToStringCopy(self._context, value, None)
        if not string:
            return ""
        size = self._library.JSStringGetLength(string) * 2
        units = ctypes.string_at(self._library.JSStringGetCharactersPtr(string), size)
        self._library.JSStringRelease(string)
        return units.decode("utf-16-le", "surrogatepass")

    def _describe(self, exception: ctypes.c_void_p) -> tuple[str, str]:
        if not self._library.JSValueIsObject(self._context, exception):
            return "", self.text(exception)
        name = self._property(exception, "name") or self._property(
            self._get(exception, "constructor"), "name"
        )
        return name, self._property(exception, "message")

    def _property(self, value: int | ctypes.c_void_p | None, name: str) -> str:
        found = self._get(value, name)
        is_undefined = found is None or self.text(found) == "undefined"
        return "" if is_undefined else self.text(found)

    def _get(self, value: int | ctypes.c_void_p | None, name: str) -> int | None:
        if value is None or not self._library.JSValueIsObject(self._context, value):
            return None
        key = self._string(name)
        found: int | None = self._library.JSObjectGetProperty(self._context, value, key, None)
        self._library.JSStringRelease(key)
        return found

    def _string(self, text: str) -> int:
        units = text.encode("utf-16-le", "surrogatepass")
        string: int = self._library.JSStringCreateWithCharacters(units, len(units) // 2)
        return string


def load() -> Any:
    """The library that pydeno would load."""
    names = [os.environ["PYDENO_JSC"]] if os.environ.get("PYDENO_JSC") else NAMES
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function, (result, arguments) in SIGNATURES.items():
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
        return library
    raise SystemExit("JavaScriptCore is not installed")


def main() -> None:
    """Answer each line of the standard input."""
    library = load()
    for line in sys.stdin:
        context = Context(library)
        thrown = None
        for source in json.loads(line):
            _, thrown = context.evaluate(source)
            if thrown is not None:
                break
        outcome, _ = context.evaluate("typeof $outcome === 'string' ? $outcome : ''")
        print(json.dumps([thrown, context.text(outcome)]), flush=True)  # noqa: T201 - its protocol
        context.close()


if __name__ == "__main__":
    main()
