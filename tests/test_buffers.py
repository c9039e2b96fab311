"""Objects that lend their memory cross as bytes, and the numbers of NumPy as numbers."""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pydeno import IsolatedRuntime, Runtime

AnyRuntime = Runtime | IsolatedRuntime

GRID = np.arange(6, dtype="<u2").reshape(2, 3)


def echo(rt: AnyRuntime, value: object) -> Any:
    """`value` through the script and back."""
    rt.bind_function("give", lambda: value)
    return rt.eval("give()")


def refusal(value: object) -> str:
    """What the script is told of a value that does not cross."""
    with IsolatedRuntime(redact_host_errors=False) as rt:
        rt.bind_function("give", lambda: value)
        return str(rt.eval("let m = 'taken'; try { give() } catch (e) { m = e.message }; m"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd"), b"abcd"),
        (memoryview(b"abcd")[1:3], b"bc"),
        (memoryview(b"abcd")[::-2], b"db"),
        (memoryview(b"abcd").cast("B", (2, 2)), b"abcd"),
        (array.array("h", [1, -1]), b"\x01\x00\xff\xff"),
        (array.array("d", []), b""),
        ((ctypes.c_uint8 * 3)(1, 2, 3), b"\x01\x02\x03"),
        (np.array([1.5]), b"\x00\x00\x00\x00\x00\x00\xf8\x3f"),
        (np.array([1], dtype=">i4"), b"\x00\x00\x00\x01"),
        (np.array([True, False]), b"\x01\x00"),
        (GRID, GRID.tobytes()),
        (GRID.T, GRID.T.tobytes()),
        (GRID[:, 1:], GRID[:, 1:].tobytes()),
        (np.asfortranarray(GRID), GRID.tobytes()),
        (np.array([(1, 2.0)], dtype=[("O", "<i2"), ("P", "<f4")]), b"\x01\x00\x00\x00\x00\x40"),
        (np.zeros((0, 3)), b""),
        (np.array([], dtype="i4"), b""),
    ],
    ids=repr,
)
def test_the_elements_of_a_buffer_cross_in_the_order_of_its_indices(
    rt: AnyRuntime, value: object, expected: bytes
) -> None:
    assert echo(rt, value) == expected
    assert echo(rt, {"inside": [value]}) == {"inside": [expected]}
    assert rt.eval("give().inside[0] instanceof Uint8Array") is True


def test_a_mapped_file_crosses(rt: AnyRuntime) -> None:
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:3] = b"abc"
        result = echo(rt, mapped)
    assert result == b"abc" + bytes(4093)


def test_a_script_changes_its_own_copy(rt: AnyRuntime) -> None:
    original = np.arange(3, dtype=np.uint8)
    rt.bind_function("give", lambda: original)
    assert rt.eval("const view = give(); view.fill(9); view") == b"\t\t\t"
    assert original.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(-5), -5),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.int8(7), 7),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.float16(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (np.bytes_(b"ab"), b"ab"),
        (np.array(5), 5),
        (np.array(0.5), 0.5),
    ],
    ids=repr,
)
def test_a_single_number_of_numpy_crosses_as_what_it_is(
    rt: AnyRuntime, value: object, expected: object
) -> None:
    result = echo(rt, value)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: np.array([object()]), "addresses"),
        (lambda: np.array([(1, object())], dtype=[("a", "i4"), ("b", "O")]), "addresses"),
        (ctypes.c_void_p * 2, "addresses"),
        (ctypes.py_object * 1, "addresses"),
        (ctypes.POINTER(ctypes.c_int) * 1, "addresses"),
        (lambda: np.array(["2020-01-01"], dtype="datetime64[D]"), "tolist()"),
        (lambda: np.datetime64("2020-01-01"), "tolist()"),
        (lambda: np.complex128(1j), "tolist()"),
        (lambda: np.longdouble(1), "tolist()"),
    ],
)
def test_what_has_no_bytes_of_its_own_is_refused_with_what_to_do(
    make: Callable[[], object], hint: str
) -> None:
    message = refusal({"a": [make()]})
    assert message.startswith("ConversionError: $.a[0] "), message
    assert hint in message


def test_a_released_view_is_an_error_and_not_a_crash() -> None:
    view = memoryview(b"ab")
    view.release()
    assert "released" in refusal(view)
