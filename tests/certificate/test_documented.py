"""The lines of a certificate that docs/certificates.md shows are lines of that certificate."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from smartmem_rules.certificate.certify import certify
from tests.certificate.making import certified

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "certificates.md"


def shown() -> list[dict[str, Any]]:
    """The JSON objects of the page."""
    found: list[dict[str, Any]] = []
    for block in re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        found += (json.loads(re.sub(r"\n\s+", " ", one)) for one in re.split(r"\n(?=\{)", block))
    return found


def test_the_page_shows_lines_of_the_certificate() -> None:
    made = certified(ROOT / "examples" / "models" / "yolov8n.onnx")
    lines = [*made.certificate["steps"], *made.certificate["graph"]["constants"], *made.certificate["kernels"]]
    assert len(shown()) == 6
    for one in shown():
        assert one in lines
    verdict = certify(made.graph, made.base, made.certificate)
    text = PAGE.read_text("utf-8")
    assert f"{verdict.steps} steps hold, by {len(verdict.rules)} rules: {', '.join(verdict.rules)}" in text
    assert f"{verdict.nodes} of {verdict.nodes} nodes of the plan are certified" in text
    assert not verdict.gaps
    assert not verdict.kernel_gaps
