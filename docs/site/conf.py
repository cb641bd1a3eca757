"""The site that `make docs` builds from docs/, the rules and the docstrings: what Sphinx reads.

Its source folder is the repository's root, so that links between documents are the same here and in an editor.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import smartmem_rules  # noqa: E402

project = "smartmem_rules"
author = "the authors of smartmem_rules"
copyright = "the authors of smartmem_rules. Apache License 2.0"
release = version = smartmem_rules.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "rule_pages",
    "landing_pages",
    "smr_lexer",
]
root_doc = "docs/README"
include_patterns = [
    "docs/**",
    *("android/README.md", "editors/vscode/README.md", "rules/README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
]
exclude_patterns = ["docs/site/**"]

myst_heading_anchors = 4
"""Headings down to this level can be linked to, by the anchors that GitHub gives them."""
suppress_warnings: list[str] = []

default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"

html_theme = "furo"
html_title = "smartmem_rules"
html_extra_path = ["root"]
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["scrolling.js"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
