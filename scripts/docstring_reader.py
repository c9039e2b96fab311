"""What the reference shows beside what stands in the sources of the package.

- Examples of docstrings are fenced, so that they are shown as code and not as quotations.
- A class has the text of its own docstring alone; what `__init__` says is for its readers in the source. One that
  pydeno makes is shown without how it is made.
- A default that is a constant is shown as its value.
- What the extension module says of its classes is taken from it: its stubs have no docstrings.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import griffe

import pydeno

_EXAMPLE = re.compile(r"^(>>> .*(?:\n(?!\s*$).*)*)", re.MULTILINE)
_CONSTANT = re.compile(r"_?[A-Z][A-Z_]+")
EXTENSION = "_pydeno"
#: The classes of the extension module that users meet.
CLASSES = ("JsFunction", "JsStream", "UndefinedType")


class DocstringReader(griffe.Extension):
    """An extension of the reference's reader."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Complete the package once all of it is read."""
        for name in CLASSES:
            _describe(pkg[EXTENSION][name], getattr(pydeno, name))
        undefined = pkg[EXTENSION]["undefined"]
        undefined.docstring = griffe.Docstring(
            "JavaScript's `undefined`: one falsy object, apart from `None`, which is `null`.",
            parent=undefined,
        )
        for module in pkg.modules.values():
            for cls in module.classes.values():
                _leave_out_the_constructor(cls)
            for thing in _functions(module):
                for parameter in thing.parameters:
                    if _CONSTANT.fullmatch(str(parameter.default)):
                        parameter.default = _value(module, str(parameter.default))
                if thing.docstring is not None:
                    thing.docstring.value = _fenced(thing.docstring.value)
            for thing in (module, *module.classes.values()):
                if thing.docstring is not None:
                    thing.docstring.value = _fenced(thing.docstring.value)


def _leave_out_the_constructor(cls: griffe.Class) -> None:
    constructor = cls.members.get("__init__")
    if not isinstance(constructor, griffe.Function) or constructor.docstring is None:
        return
    if "; pydeno does." in constructor.docstring.value:
        cls.del_member("__init__")
    else:
        constructor.docstring = None


def _fenced(text: str) -> str:
    return _EXAMPLE.sub(r"```pycon\n\1\n```", text)


def _functions(module: griffe.Module) -> list[griffe.Function]:
    return [
        function
        for holder in (module, *module.classes.values())
        for function in holder.functions.values()
        if not function.is_alias
    ]


def _value(module: griffe.Module, constant: str) -> str:
    found = module[constant]
    return str((found.final_target if found.is_alias else found).value)


def _describe(read: griffe.Class, real: type) -> None:
    read.docstring = griffe.Docstring(inspect.getdoc(real) or "", parent=read)
    for name, member in read.members.items():
        if not name.startswith("_"):
            member.docstring = griffe.Docstring(inspect.getdoc(getattr(real, name)) or "", parent=member)
