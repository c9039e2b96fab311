"""The documentation builds as a site without a warning, has every public name, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import pydeno

PROJECT = Path(__file__).parent.parent

pytestmark = pytest.mark.timeout(300)


def build(site: Path, configuration: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(
        [*command, "--config-file", str(configuration)],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    finished = build(folder, PROJECT / "mkdocs.yml")
    assert finished.returncode == 0, finished.stderr
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    entries = zlib.decompress(inventory).decode().splitlines()
    places = {entry.split(" ")[0]: entry.split(" ")[3] for entry in entries}
    missing = [
        name for name in pydeno.__all__ if not places.get(f"pydeno.{name}", "").startswith("reference/")
    ]
    assert missing == []


def test_every_public_method_is_in_the_reference(site: Path) -> None:
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    classes = [thing for name in pydeno.__all__ if isinstance(thing := getattr(pydeno, name), type)]
    assert pydeno.JsFunction in classes
    for cls in classes:
        if issubclass(cls, BaseException):
            continue
        methods = {name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))}
        missing = [name for name in methods if f"\npydeno.{cls.__name__}.{name} " not in inventory]
        assert missing == [], cls


def test_a_constant_is_shown_as_its_value_and_no_class_with_what_its_constructor_says(site: Path) -> None:
    shown = (site / "reference" / "runtimes.html").read_text(encoding="utf-8")
    assert "GATE_TIMEOUT" not in shown
    assert "Start a worker and wait" not in shown
    assert "_GIB" not in shown
    pages = [page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html")]
    assert not any("; pydeno does." in page for page in pages)
    assert "Call the function on the running event loop" in (site / "reference" / "values.html").read_text(
        "utf-8"
    )


class _Loads(HTMLParser):
    """What a page has a browser fetch when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"script", "img", "iframe", "link"} and values.get("rel") not in {
            "canonical",
            "prev",
            "next",
        }:
            self.found += [values.get("src") or values.get("href") or ""]


def loads(page: str) -> list[str]:
    parser = _Loads()
    parser.feed(page)
    return [address for address in parser.found if re.match(r"(https?:)?//", address)]


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = {page: loads(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    assert len(pages) > 20
    assert {page: found for page, found in pages.items() if found} == {}


def test_a_script_from_elsewhere_would_be_noticed() -> None:
    assert loads('<head><script src="https://example.org/count.js"></script></head>')
    assert loads('<link rel="stylesheet" href="//example.org/font.css">')


def test_a_link_out_of_the_pages_leads_to_a_page_of_the_site(site: Path) -> None:
    pools = (site / "pools.html").read_text(encoding="utf-8")
    assert 'href="security-policy.html"' in pools
    tiers = (site / "guides" / "jit-tiers.html").read_text(encoding="utf-8")
    assert 'href="../security-policy.html#the-compiler-tiers"' in tiers
    assert 'id="the-compiler-tiers"' in (site / "security-policy.html").read_text(encoding="utf-8")


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("[nowhere](missing.md)", encoding="utf-8")
    configuration = tmp_path / "mkdocs.yml"
    configuration.write_text("site_name: wrong\ndocs_dir: pages\n", encoding="utf-8")
    finished = build(tmp_path / "site", configuration)
    assert finished.returncode != 0
    assert "missing.md" in finished.stderr
