"""Fences the examples of docstrings, so that the reference shows them as code and not as quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(>>> .*(?:\n(?!\s*$).*)*)", re.MULTILINE)


class DoctestFences(griffe.Extension):
    """An extension of the reference's reader."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence what begins with a prompt, up to the next empty line."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\1\n```", obj.docstring.value)
