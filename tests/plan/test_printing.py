"""The printed stages of small models, to be read; `--update-golden` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from smartmem_rules import pipeline
from smartmem_rules.api import plan_only
from smartmem_rules.explanation.inspected import Inspected, stage_differences
from smartmem_rules.runtime.target import Target
from smartmem_rules.tensor import expr as e
from smartmem_rules.tensor.atoms import Div, Mod, Var
from smartmem_rules.tensor.index import Index, variable
from tests.checking import models
from tests.checking.models import Net, drawn

GOLDEN = Path(__file__).parent / "golden"
PRINTED = ("extract", "fuse", "layout", "schedule", "launch", "memory")
FAMILIES = (
    models.attention, models.shifted_windows, models.gated, models.convolutions, models.pyramid, models.recurrent,
    models.quantized,
)  # fmt: skip
"""A block of each family: encoders, windows, decoders, convolutional networks, detectors, recurrences, 8 bits."""
A, B, C = Var("a", 4), Var("b", 8), Var("c", 16)


@pytest.fixture(autouse=True)
def profiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans for device profiles as they stand, whatever device this computer has."""
    monkeypatch.setattr(pipeline, "target_of", lambda name, base: Target(base.devices[name], None))


def stages(kind: Callable[[Net], str], device: str, level: str = "smartmem") -> Inspected:
    model, _, _ = drawn(kind, 0)
    texts: dict[str, str] = {}
    plan = plan_only(model, show=texts.__setitem__, device=device, level=level)
    return Inspected(plan, texts)


@pytest.mark.covering
@pytest.mark.parametrize("device", ["pocl", "adreno_740", "nvidia"])
@pytest.mark.parametrize("kind", FAMILIES, ids=lambda k: k.__name__)
def test_printed_stages(kind: Callable[[Net], str], device: str, update_golden: bool) -> None:
    found = stages(kind, device).stages
    text = "\n".join(f"--- {stage}\n{found[stage]}" for stage in PRINTED)
    path = GOLDEN / f"{kind.__name__}-{device}.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), "python -m pytest tests/plan/test_printing.py --update-golden writes it anew"


def test_two_plans_of_one_model_read_the_same() -> None:
    first, second = (stages(models.attention, "pocl") for _ in range(2))
    assert all(one["same"] for one in stage_differences(first, second))
    assert str(first.plan) == str(second.plan)


def test_what_a_level_changes() -> None:
    changed = stage_differences(stages(models.attention, "pocl"), stages(models.attention, "pocl", "dnnfusion"))
    by_stage = {one["stage"]: one for one in changed}
    assert by_stage["import"]["same"]
    assert not by_stage["fuse"]["same"]
    assert by_stage["fuse"]["added"] > by_stage["fuse"]["removed"]


def test_equations() -> None:
    left = e.Read("x", (variable(A), variable(C)), "float32")
    right = e.Read("w", (variable(C), variable(B)), "float32")
    product = e.Reduce("sum", (C,), e.Apply("mul", (left, right), "float32"), "float32")
    equation = e.Equation("y", (A, B), product, e.TensorType("float32", (4, 8)))
    assert str(equation) == "y[i0, i1] : float32[4, 8] = sum(i2 < 16) x[i0, i2] * w[i2, i1]"
    assert str(product) == "sum(c < 16) x[a, c] * w[c, b]"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (e.Const(0.5, "float32"), "0.5"),
        (e.Const(True, "bool"), "True"),
        (e.Read("s", (), "float32"), "s"),
        (e.FromIndex(variable(A), "int64"), "int64(a)"),
        (e.Apply("exp", (e.Read("x", (variable(A),), "float32"),), "float32"), "exp(x[a])"),
        (e.Apply("cast", (e.Read("x", (variable(A),), "float32"),), "float16"), "float16(x[a])"),
        (e.Read("x", (Index(0, ((Div(variable(B), 2), 1),)), Index(1, ((Mod(variable(B), 2), 3),))), "float32"),
         "x[b // 2, 3*(b % 2) + 1]"),
    ],
)  # fmt: skip
def test_expressions(expression: e.Expr, text: str) -> None:
    assert str(expression) == text


def test_brackets_are_where_they_are_needed() -> None:
    a, b, c = (e.Read(name, (), "float32") for name in "abc")

    def apply(function: str, *arguments: e.Expr) -> e.Expr:
        return e.Apply(function, arguments, "float32")

    assert str(apply("add", apply("add", a, b), c)) == "(a + b + c)"
    assert str(apply("add", a, apply("add", b, c))) == "(a + (b + c))"
    assert str(apply("sub", a, apply("sub", b, c))) == "(a - (b - c))"
    assert str(apply("mul", e.Reduce("sum", (C,), b, "float32"), c)) == "((sum(c < 16) b) * c)"
    chosen = e.Select(e.Compare("<", variable(A), Index(3)), a, b, "float32")
    assert str(apply("max", chosen, c)) == "max(a if a < 3 else b, c)"
