"""The navigation of the site is that of the landing pages: the documents that their lists lead to, in that order."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

_ENTRY = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<target>[^)#\s]+\.md)\)", re.M)


def listed(text: str) -> dict[str, str]:
    """What the items of a page's lists begin with links to: titles by paths relative to the page, in their order."""
    return {match["target"]: match["title"] for match in _ENTRY.finditer(text)}


def _with_toctree(app: Sphinx, docname: str, source: list[str]) -> None:
    if Path(docname).name != "README" or not docname.startswith("docs/"):
        return
    entries = [f"{title} <{target}>" for target, title in listed(source[0]).items()]
    source[0] += "\n".join(["\n", "```{toctree}", ":hidden:", "", *entries, "```", ""])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _with_toctree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
