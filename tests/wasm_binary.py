"""WebAssembly modules, written out."""

from __future__ import annotations


def _leb(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _leb(rest) if rest else bytes([low])


def _signed(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    is_last = (rest == 0 and low < 0x40) or (rest == -1 and low >= 0x40)
    return bytes([low]) if is_last else bytes([low | 0x80]) + _signed(rest)


def _counted(items: list[bytes]) -> bytes:
    return _leb(len(items)) + b"".join(items)


def _sized(body: bytes) -> bytes:
    return _leb(len(body)) + body


def module(*sections: bytes) -> bytes:
    """A WebAssembly binary of version 1."""
    return b"\0asm\1\0\0\0" + b"".join(sections)


def section(number: int, body: bytes) -> bytes:
    return bytes([number]) + _sized(body)


def exported(name: str) -> bytes:
    """The export section of a module that exports its first function."""
    return section(7, b"\x01" + _sized(name.encode()) + b"\x00\x00")


def code(body: bytes) -> bytes:
    """The code section of one function without locals."""
    function = b"\x00" + body + b"\x0b"
    return section(10, b"\x01" + _sized(function))


FIRST = section(3, b"\x01\x00")
NO_TYPE = section(1, b"\x01\x60\x00\x00")
#: (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
ADD = module(
    section(1, b"\x01\x60\x02\x7f\x7f\x01\x7f"), FIRST, exported("add"), code(b"\x20\x00\x20\x01\x6a")
)
#: (memory 1) (func (export "get") (param i32) (result i32) local.get 0 i32.load)
GET = module(
    section(1, b"\x01\x60\x01\x7f\x01\x7f"),
    FIRST,
    section(5, b"\x01\x00\x01"),
    exported("get"),
    code(b"\x20\x00\x28\x02\x00"),
)
#: (func (export "spin") (loop br 0))
SPIN = module(NO_TYPE, FIRST, exported("spin"), code(b"\x03\x40\x0c\x00\x0b"))
#: (func (export "again") call 0)
AGAIN = module(NO_TYPE, FIRST, exported("again"), code(b"\x10\x00"))

I32, I64, F32, F64 = b"\x7f", b"\x7e", b"\x7d", b"\x7c"
FUNCREF = b"\x70"


class Function:
    """A function of a module: its export's name, or ""; parameters and results; its code without the end."""

    def __init__(self, name: str, parameters: bytes, results: bytes, body: bytes) -> None:
        self.name = name
        self.signature = b"\x60" + _sized(parameters) + _sized(results)
        self.body = _sized(b"\x00" + body + b"\x0b")


def const(number: int) -> bytes:
    """Code that gives a 32-bit integer."""
    return b"\x41" + _signed(number)


def build(
    functions: list[Function],
    *,
    imports: list[tuple[str, str, bytes, bytes]] | None = None,
    memory: tuple[int, int | None] | None = None,
    exports: list[tuple[str, int, int]] | None = None,
    others: dict[int, bytes] | None = None,
    tag: bool = False,
) -> bytes:
    """A module.

    Args:
        functions: Its functions.
        imports: The functions that it imports: both names, parameters, results.
        memory: Pages of its memory, which is exported as "memory": at the beginning, and at the most.
        exports: Further exports: name, kind, and number.
        others: Further sections by their number, of which none is made here: 4 tables, 6 globals, 8 the start.
        tag: Whether it has a tag to throw, of the type of its function "throw".
    """
    imports = imports or []
    signatures = [b"\x60" + _sized(parameters) + _sized(results) for _, _, parameters, results in imports]
    signatures += [function.signature for function in functions]
    exported = [(f.name, 0, len(imports) + i) for i, f in enumerate(functions) if f.name]
    sections = {1: _counted(signatures), 3: _counted([_leb(len(imports) + i) for i in range(len(functions))])}
    if imports:
        names = enumerate(
            (_sized(first.encode()) + _sized(second.encode())) for first, second, _, _ in imports
        )
        sections[2] = _counted([name + b"\x00" + _leb(i) for i, name in names])
    if memory is not None:
        least, most = memory
        sections[5] = b"\x01\x00" + _leb(least) if most is None else b"\x01\x01" + _leb(least) + _leb(most)
        exported.append(("memory", 2, 0))
    exported += exports or []
    sections[7] = _counted([_sized(name.encode()) + bytes([kind]) + _leb(i) for name, kind, i in exported])
    sections[10] = _counted([function.body for function in functions])
    sections |= others or {}
    if tag:
        thrower = next(i for i, function in enumerate(functions) if function.name == "throw")
        sections[13] = b"\x01\x00" + _leb(len(imports) + thrower)
    # The section of tags stands between those of memories and of globals.
    in_order = sorted(sections.items(), key=lambda item: 5.5 if item[0] == 13 else item[0])
    return module(*(section(number, body) for number, body in in_order))
