"""The site of `make docs` builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.report.browser import browser, missing

LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"(?P<address>(?:https?:)?//[^\"]*)\"")


@pytest.mark.exhaustive
def test_the_site_builds_and_needs_no_network(tmp_path: Path) -> None:
    for module in ("sphinx", "furo", "myst_parser", "sphinx_click"):
        pytest.importorskip(module, reason="the extra `docs` is not installed; `make docs` installs it")
    site = tmp_path / "site"
    command = ["-m", "sphinx", "-q", "-W", "-c", str(ROOT / "docs" / "site"), "-d", str(tmp_path / "trees")]
    done = subprocess.run([sys.executable, *command, str(ROOT), str(site)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (site / "index.html").exists()
    pages = list(site.rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        assert not LOADED.findall(page.read_text("utf-8")), page
    if missing():
        pytest.skip(missing())
    with browser() as window:
        window.look(width=390)
        for name in ("simplify", "reference/cli", "torch"):
            window.driver.get((site / "docs" / f"{name}.html").as_uri())
            assert window.script("return document.querySelectorAll('article [tabindex]').length") > 0, name
            found = window.violations()
            assert not [one for one in found if one.startswith("scrollable-region-focusable")], name
