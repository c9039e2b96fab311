"""What the scripts of the gallery make can be opened, and what is no such file is refused."""

from __future__ import annotations

import io
import json
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

sys.path.insert(0, str(EXAMPLES))

import gallery  # noqa: E402
from chart_store import ChartRefusedError  # noqa: E402

NAMES = [str(planet["name"]) for planet in gallery.PLANETS]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gallery")
    command = [sys.executable, str(EXAMPLES / "gallery.py"), "--out", str(out)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert {path.name for path in out.iterdir()} == {work.file for work in gallery.GALLERY}
    return out


def test_the_chart_has_a_circle_and_a_label_for_each_planet(made: Path) -> None:
    root = ET.fromstring((made / "planets.svg").read_text(encoding="utf-8"))
    namespace = "{http://www.w3.org/2000/svg}"
    assert len(list(root.iter(f"{namespace}circle"))) == len(NAMES)
    assert set(NAMES) <= {element.text for element in root.iter(f"{namespace}text")}


def test_the_page_shows_the_chart_that_is_made(made: Path) -> None:
    shown = EXAMPLES.parent / "docs" / "gallery" / "planets.svg"
    assert shown.read_bytes() == (made / "planets.svg").read_bytes()


def test_the_model_is_binary_gltf_whose_triangles_are_all_there(made: Path) -> None:
    content = (made / "planets.glb").read_bytes()
    magic, version, length = struct.unpack_from("<4sII", content)
    assert (magic, version, length) == (b"glTF", 2, len(content))
    size, kind = struct.unpack_from("<I4s", content, 12)
    assert kind == b"JSON"
    scene: dict[str, Any] = json.loads(content[20 : 20 + size])
    binary_size, kind = struct.unpack_from("<I4s", content, 20 + size)
    assert kind == b"BIN\0"
    binary = content[28 + size :]
    assert len(binary) == binary_size == scene["buffers"][0]["byteLength"]
    meshes = {node["name"]: node["mesh"] for node in scene["nodes"] if "mesh" in node}
    assert {"Sun", "ring", *NAMES} <= meshes.keys()
    for mesh in meshes.values():
        (primitive,) = scene["meshes"][mesh]["primitives"]
        points = scene["accessors"][primitive["attributes"]["POSITION"]]
        indices = scene["accessors"][primitive["indices"]]
        view = scene["bufferViews"][indices["bufferView"]]
        width = {5123: "H", 5125: "I"}[indices["componentType"]]
        start = view.get("byteOffset", 0) + indices.get("byteOffset", 0)
        corners = struct.unpack_from(f"<{indices['count']}{width}", binary, start)
        assert len(corners) % 3 == 0
        assert max(corners) < points["count"]


def test_the_deck_has_three_slides_with_a_chart_and_a_table(made: Path) -> None:
    with zipfile.ZipFile(made / "planets.pptx") as deck:
        assert deck.testzip() is None
        names = deck.namelist()
        slides = [deck.read(name) for name in sorted(names) if re.fullmatch(r"ppt/slides/slide\d\.xml", name)]
        chart = ET.fromstring(deck.read("ppt/charts/chart1.xml"))
        workbook = next(name for name in names if name.endswith(".xlsx"))
        with zipfile.ZipFile(io.BytesIO(deck.read(workbook))) as sheet:
            assert sheet.testzip() is None
        for name in names:
            if name.endswith((".xml", ".rels")):
                ET.fromstring(deck.read(name))
    drawing = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
    plotted = "{http://schemas.openxmlformats.org/drawingml/2006/chart}v"
    assert len(slides) == 3
    texts = [[element.text for element in ET.fromstring(slide).iter(f"{drawing}t")] for slide in slides]
    assert "Eight planets" in texts[0]
    assert set(NAMES) <= set(texts[2])
    assert set(NAMES) <= {element.text for element in chart.iter(plotted)}


def test_the_document_has_a_page_that_names_each_planet(made: Path) -> None:
    content = (made / "planets.pdf").read_bytes()
    assert content.startswith(b"%PDF-1.")
    assert content.rstrip().endswith(b"%%EOF")
    start = int(re.findall(rb"startxref\s+(\d+)", content)[-1])
    assert re.match(rb"\d+ \d+ obj", content[start:])
    inflated = [
        zlib.decompress(content[found.end() :].split(b"endstream")[0].strip(b"\r\n"))
        for found in re.finditer(rb"/FlateDecode[^>]*>>\s*stream\r?\n", content)
    ]
    assert any(b"/Type /Page\n" in part or b"/Type /Page " in part for part in inflated)
    shown = {
        bytes.fromhex(text.decode()) for part in inflated for text in re.findall(rb"<([0-9A-F]+)> Tj", part)
    }
    assert {name.encode() for name in NAMES} <= shown


@pytest.mark.parametrize("work", gallery.GALLERY, ids=lambda work: work.file)
@pytest.mark.parametrize("made", [None, 7, {"a": 1}, b"", b"#!/bin/sh\n", "<script/>"], ids=repr)
def test_what_is_no_such_file_is_refused(work: gallery.Work, made: object) -> None:
    with pytest.raises((gallery.NotWhatWasAskedFor, ChartRefusedError)):
        work.checked(made)


def test_a_file_that_is_too_large_is_refused() -> None:
    deck = next(work for work in gallery.GALLERY if work.file.endswith(".pptx"))
    assert deck.checked(deck.begins) == deck.begins
    with pytest.raises(gallery.NotWhatWasAskedFor):
        deck.checked(deck.begins + bytes(gallery.MAX_BYTES))


def test_a_chart_that_would_load_something_is_refused() -> None:
    chart = next(work for work in gallery.GALLERY if work.file.endswith(".svg"))
    with pytest.raises(ChartRefusedError):
        chart.checked(
            '<svg xmlns="http://www.w3.org/2000/svg"><image href="https://example.org/pixel.png"/></svg>'
        )
