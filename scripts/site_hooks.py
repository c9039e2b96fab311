"""What the site adds to the pages of `docs/`: the documents of the project's root, and files that pages link to.

A link that works in the repository works on the site: one that leads out of `docs/` is pointed at the document's page,
or at a copy of the file.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs import plugins
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

PROJECT = Path(__file__).parent.parent

#: The documents that stand in the root of the repository, and the pages that show them.
DOCUMENTS = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security-policy.md",
}

#: The pages that show what does not stand in `docs/`, by where it stands.
PAGES = {**DOCUMENTS, "examples/notebook.ipynb": "notebook.ipynb"}

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


# Before the plugin that shows notebooks looks for them.
@plugins.event_priority(100)
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root, and each example for those who follow a link to it."""
    for document, page in DOCUMENTS.items():
        if files.get_file_from_path(page) is None:
            files.append(
                File.generated(config, page, content=(PROJECT / document).read_text(encoding="utf-8"))
            )
    folder = PROJECT / "examples"
    site, pretty = config.site_dir, config.use_directory_urls
    files.append(File("notebook.ipynb", str(folder), site, pretty))
    for example in sorted(folder.glob("*.*")):
        if example.suffix != ".ipynb":
            files.append(File(f"examples/{example.name}", str(PROJECT), site, pretty))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Point the links of a page at what the site has; a file that only the repository has keeps its name alone."""
    path = page.file.src_uri
    origins = {shown: origin for origin, shown in PAGES.items() if shown != "index.md"}
    in_repository = origins.get(path, f"docs/{path}")

    def follow(link: re.Match[str]) -> str:
        text, address, anchor = link[1], link[2], link[3] or ""
        if "://" in address:
            return link[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository), address))
        shown = PAGES.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(shown) is None and (PROJECT / target).exists():
            return text
        return f"[{text}]({posixpath.relpath(shown, posixpath.dirname(path) or '.')}{anchor})"

    parts = _CODE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(follow, part) for part in parts)
