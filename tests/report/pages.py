"""What stands in a page of a report."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from typing import Any


def held(page: str, name: str = "data") -> Any:
    """What one of the page's packed elements holds."""
    (packed,) = re.findall(rf'<script type="application/octet-stream" id="{name}">([^<]*)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


class Elements(HTMLParser):
    """The elements of a page, with their attributes.

    Attributes:
        found: in the order of the page.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def count(self, tag: str) -> int:
        """How many there are of a kind."""
        return sum(name == tag for name, _ in self.found)
