"""Texts of kernels as syntax trees: what needs no preprocessor is read as it would be behind one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pycparser.c_generator import CGenerator

from smartmem_rules.simulate import source
from smartmem_rules.simulate.source import KernelText, SimulationError, parse

GOLDEN = Path(__file__).parents[1] / "emit" / "golden"
UNUSED = "\n#define SMR_UNUSED 1\n"
"""With a definition a text goes through the preprocessor."""


def shown(text: KernelText) -> tuple[object, ...]:
    return text.parameters, CGenerator().visit(text.body), [CGenerator().visit(table) for table in text.tables]


@pytest.mark.parametrize("name", ["panel", "pointwise_image", "scan", "gather"])
def test_without_definitions_no_preprocessor_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (GOLDEN / f"{name}.cl").read_text()
    preprocessed = parse(text + UNUSED, "smr_kernel")
    monkeypatch.setattr(source, "_Quiet", None)
    assert shown(parse(text, "smr_kernel")) == shown(preprocessed)


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("#define TWICE(X) (2 * (X))\n", "p0[0] = TWICE(3);"),
        ("#ifndef SMR_NOT_THERE\n#define TWICE(X) (2 * (X))\n#endif\n", "p0[0] = TWICE(3);"),
    ],
)
def test_definitions_are_written_out(before: str, body: str) -> None:
    text = parse(f"{before}__kernel void k(__global int* p0) {{ {body} }}", "k")
    assert "2 * 3" in CGenerator().visit(text.body)


def test_comments_are_nothing() -> None:
    body = "// p0[1] = 1;\n/* p0[2] = 2;\n p0[3] = 3; */ p0[0] = 4; // ;\n"
    text = parse(f"__kernel void k(__global int* p0) {{\n{body}}}", "k")
    assert [CGenerator().visit(one) for one in text.body.block_items] == ["p0[0] = 4"]


def test_a_variable_may_have_the_name_of_a_type() -> None:
    text = parse("__kernel void k(__global float* p0, int half) { const float4 x = (float4)(0); p0[half] = x.x; }", "k")
    assert text.parameters == ("p0", "half")
    assert CGenerator().visit(text.body.block_items[1]) == "p0[half] = x.x"


def test_hundreds_of_kernels_may_share_a_launch() -> None:
    calls = " else ".join(f"if (get_group_id(0) < {n}) f(x, get_group_id(0));" for n in range(1, 1000))
    text = f"static void f(float *x, int i) {{ x[i] = i; }}\n__kernel void k(__global float *x) {{ {calls} }}"
    limit = sys.getrecursionlimit()
    assert parse(text, "k").parameters == ("x",)
    assert sys.getrecursionlimit() == limit


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(SimulationError, match="cannot be read"):
        parse("__kernel void k(__global float* p0) { p0[0] = ; }", "k")
    with pytest.raises(SimulationError, match="no function other"):
        parse("__kernel void k(__global float* p0) { p0[0] = 1; }", "other")
