"""The text of some kernels, to be read; `--update-golden` writes it anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.build import build
from smartmem_rules.plan.profile import Profile
from tests.plan.models import Array, Node, i64, model, normal, whole
from tests.plan.programs import rules

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Case:
    """A model of one kernel at level `smartmem`, or of several at level `none`."""

    nodes: list[Node]
    feeds: dict[str, Array]
    constants: dict[str, Array] = field(default_factory=dict)
    memory: str = "buffer"
    device: str = "pocl"
    level: str = "smartmem"


X = {"x": normal(6, 10)}
CASES = {
    "pointwise_buffer": Case([("Tanh", "x", "a"), ("Add", "a b", "y")], X, {"b": normal(10)}),
    "shifted_window": Case(
        [
            ("Slice", "x one end axis", "a"),
            ("Slice", "x zero one axis", "b"),
            ("Concat", "a b", "c", {"axis": 1}),
            ("Relu", "c", "y"),
        ],
        X,
        {"zero": i64(0), "one": i64(3), "end": i64(10), "axis": i64(1)},
    ),
    "softmax_buffer": Case([("Softmax", "x", "y")], {"x": normal(6, 19)}),
    "softmax_image": Case(
        [("Softmax", "x", "s"), ("MatMul", "s w", "y")], X, {"w": normal(10, 8)}, "image", "adreno_740"
    ),
    "gather": Case([("Gather", "x i", "y", {"axis": 1})], {**X, "i": whole(3, dtype="int64", low=0)}),
    "product_image": Case(
        [("MatMul", "x w", "p"), ("Add", "p b", "y")], X, {"w": normal(10, 9), "b": normal(9)}, "image", "adreno_740"
    ),
}


def kernels(case: Case) -> str:
    """All kernels of the case, without the prelude."""
    base = rules()
    graph = import_model(model(case.nodes, case.feeds, "y", case.constants), base, {})
    plan = build(graph, base, Profile.of(base.devices[case.device]), case.level, "float32", case.memory)
    parts = []
    for kernel, source in zip(plan.kernels, plan.sources, strict=True):
        body = source.text[source.text.index("__kernel ") :]
        parts.append(f"// {kernel.name}: global {source.global_size}, local {source.local_size}\n{body.strip()}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("name", sorted(CASES))
def test_golden(name: str, update_golden: bool) -> None:
    text = kernels(CASES[name])
    path = GOLDEN / f"{name}.cl"
    if update_golden:
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, f"{path} differs; `pytest --update-golden` writes it anew"


def test_equal_models_have_equal_kernels() -> None:
    case = CASES["softmax_buffer"]
    assert kernels(case) == kernels(case)
