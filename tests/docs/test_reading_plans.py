"""The kernel that docs/reading-plans.md shows is what `smartmem show` prints of Swin-T's first attention."""

from __future__ import annotations

import re

import pytest

from smartmem_rules import pipeline
from smartmem_rules.api import plan_only
from smartmem_rules.explanation.inspected import Inspected, kernel_data
from smartmem_rules.runtime.target import Target
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reading-plans.md"
MODEL = ROOT / "examples" / "models" / "swin_tiny.onnx"
NAMES = {
    "onnx::Add_4196": "bias",
    "/layers/layers.0/blocks/blocks.0/attn/qkv/Add_output_0": "qkv",
    "/layers/layers.0/blocks/blocks.0/attn/Add_output_0": "scores",
    "/layers/layers.0/blocks/blocks.0/attn/MatMul_1_output_0": "out",
    "/layers/layers.0/blocks/blocks.0/attn/softmax/Softmax": "Softmax",
}
"""The page's words for the exporter's names."""


@pytest.mark.exhaustive  # plans the whole model
def test_the_kernel_of_the_page_is_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "target_of", lambda name, base: Target(base.devices[name], None))
    texts: dict[str, str] = {}
    plan = plan_only(MODEL, show=texts.__setitem__, device="pocl")
    printed = kernel_data(Inspected(plan, texts), "k2_contraction")["text"]
    for name, word in NAMES.items():
        printed = printed.replace(f"{name}", word)
    (shown,) = re.findall(r"^```\n(kernel k2_contraction.*?)```$", PAGE.read_text("utf-8"), re.M | re.S)
    for line, actual in zip(shown.splitlines(), printed.splitlines(), strict=True):
        if line.lstrip().startswith("from "):
            continue  # the nodes' names are shortened
        if line.endswith(", ..."):
            sizes = line.strip().removesuffix(", ...").split(", ")
            assert set(sizes) <= set(actual.strip().split(", "))
        else:
            assert line == actual
