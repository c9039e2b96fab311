"""Keeps the pictures that an untrusted script draws.

A tool is the script's way out, so its arguments get the care of any other foreign input: the name cannot
leave the folder, and the picture cannot run or load anything in the browser that shows it.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "g", "title", "desc", "rect", "circle", "line", "polyline", "path", "text", "tspan"}
MAX_BYTES = 1_000_000


class ChartRefusedError(ValueError):
    """The picture was not kept; the message says why."""


class ChartStore:
    """A folder of pictures."""

    def __init__(self, folder: Path) -> None:
        """Pictures go to `folder`, which must exist."""
        self.folder = folder
        self.saved: list[Path] = []

    def save_chart(self, name: object, svg: object) -> str:
        """The tool itself: returns the file's name.

        Raises:
            ChartRefusedError: the name or the picture is not a plain one.
        """
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]{1,40}", name):
            raise ChartRefusedError("a chart's name is 1 to 40 lower-case letters, digits and hyphens")
        if not isinstance(svg, str) or len(svg.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise ChartRefusedError(f"a chart is a string of at most {MAX_BYTES} bytes")
        check_picture(svg)
        path = self.folder / f"{name}.svg"
        path.write_text(svg, encoding="utf-8")
        self.saved.append(path)
        return path.name


def check_picture(svg: str) -> None:
    """Accepts shapes and text; refuses scripts, event handlers, links, styles, and whatever loads something.

    Raises:
        ChartRefusedError: with the first reason found.
    """
    if "<!" in svg or "<?" in svg:
        raise ChartRefusedError("a chart has no declarations, entities, comments or processing instructions")
    try:
        root = ET.fromstring(svg)
    except (ET.ParseError, ValueError) as error:
        raise ChartRefusedError(f"the chart is not well-formed: {error}") from error
    for element in root.iter():
        if element.tag.removeprefix(SVG) not in ELEMENTS or not element.tag.startswith(SVG):
            raise ChartRefusedError(f"the element {element.tag.removeprefix(SVG)!r} is not allowed")
        for attribute, value in element.attrib.items():
            if attribute.startswith("on") or "href" in attribute or attribute == "style" or "url(" in value:
                raise ChartRefusedError(f"the attribute {attribute!r} is not allowed")
