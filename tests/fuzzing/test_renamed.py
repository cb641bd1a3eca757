"""Models whose tensors get the names of an import's own compute what they did, and the names are those of an import."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.expected.outputs import Reference
from smartmem_rules.fuzzing.sources import renamed as source
from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules

MODEL = """
<ir_version: 8, opset_import: ["": 17]>
g (bool[6] x, float[2] y) => (float[2] s, float[n, 2] all) <int64 most = {5}> {
    outer = Neg (y)
    last, p = Loop (most, , outer) <body = b (int64 i, bool g, float[2] a) => (bool goes, float[2] after, float[2] q) {
        goes = Gather (x, i)
        sum = If (goes) <then_branch = yes () => (float[2] u) { v = Exp (a) u = Add (v, outer) },
            else_branch = no () => (float[2] w) { w = Sub (a, outer) }>
        after = Add (sum, outer)
        q = Mul (after, sum)
    }>
    s = Add (last, outer)
    all = Neg (p)
}"""


def names_in(graph: onnx.GraphProto) -> list[str]:
    return list(source._inside(graph))


@pytest.fixture(scope="module")
def case() -> Case:
    feeds = {"x": np.arange(6) < 3, "y": np.array([0.5, -1], np.float32)}
    return Case("loop", parser.parse_model(MODEL), feeds, Mode())


def test_the_model_computes_what_it_did(case: Case) -> None:
    wanted = Reference(case.model, case.feeds).native_outputs()
    before = names_in(case.model.graph)
    changed = set()
    for seed in range(20):
        made = source.renamed(case, np.random.default_rng(seed))
        names = names_in(made.model.graph)
        assert len(names) == len(set(names)) == len(before)
        assert [v.name for v in made.model.graph.output] == list(wanted)
        for name, array in Reference(made.model, case.feeds).native_outputs().items():
            np.testing.assert_array_equal(array, wanted[name])
        changed.update(old for old, new in zip(before, names, strict=True) if old != new)
    assert changed == set(before) - {"x", "y", "s", "all"}


def test_an_import_has_these_names(case: Case) -> None:
    """What no import calls a tensor could meet none: the words are looked at here when an import's names change."""
    graph = import_model(case.model, load_rules())
    made = {output for node in graph.nodes for output in node.outputs} | graph.known.keys()
    words = set(source._words(case.model.graph, ""))
    assert len(words & made) > 20
    assert {f"Loop_1/1/{word}" for word in ("step", "live", "at", "in/0", "out/0", "counted")} - made <= {
        "Loop_1/1/counted"  # of loops whose number of steps is computed
    }
