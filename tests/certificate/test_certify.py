"""The checker: it takes what the optimizer did, of several kinds of models, and stands on its own."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import onnx
import pytest

from smartmem_rules.certificate.certify import certify
from smartmem_rules.certificate.terms import Refused
from smartmem_rules.graph.importer import import_model
from tests.certificate.making import Certified, certified
from tests.plan.models import i64, model, normal

PACKAGE = Path(__file__).parents[2] / "smartmem_rules" / "certificate"
MOST_LINES = 1000


def attention() -> onnx.ModelProto:
    """Attention over two heads with a scale, a normalization before and a perceptron with GELU behind it."""
    nodes = [
        ("LayerNormalization", "x scale bias", "n", {"axis": -1}),
        ("MatMul", "n wq", "q0"), ("MatMul", "n wk", "k0"), ("MatMul", "n wv", "v0"),
        ("Reshape", "q0 heads", "q1"), ("Transpose", "q1", "q", {"perm": [0, 2, 1, 3]}),
        ("Reshape", "k0 heads", "k1"), ("Transpose", "k1", "k", {"perm": [0, 2, 3, 1]}),
        ("Reshape", "v0 heads", "v1"), ("Transpose", "v1", "v", {"perm": [0, 2, 1, 3]}),
        ("MatMul", "q k", "s0"), ("Div", "s0 root", "s"), ("Softmax", "s", "p", {"axis": -1}),
        ("MatMul", "p v", "o0"), ("Transpose", "o0", "o1", {"perm": [0, 2, 1, 3]}), ("Reshape", "o1 flat", "o"),
        ("Add", "o x", "r"), ("MatMul", "r w1", "h0"), ("Div", "h0 two", "h1"), ("Erf", "h1", "h2"),
        ("Add", "h2 one", "h3"), ("Mul", "h0 h3", "h4"), ("Mul", "h4 half", "h"), ("MatMul", "h w2", "y"),
    ]  # fmt: skip
    weights = {f"w{n}": normal(8, 8, seed=place) for place, n in enumerate("qkv")}
    numbers = {"root": 2.0, "two": 2**0.5, "one": 1.0, "half": 0.5}
    constants = {
        **weights, "w1": normal(8, 12), "w2": normal(12, 8), "scale": normal(8), "bias": normal(8),
        "heads": i64(2, 6, 2, 4), "flat": i64(2, 6, 8), **{n: np.float32(v) for n, v in numbers.items()},
    }  # fmt: skip
    return model(nodes, {"x": normal(2, 6, 8)}, "y", constants)


def convolutions() -> onnx.ModelProto:
    """A convolution with a folded normalization and SiLU, a part of its channels, and both parts joined again."""
    nodes = [
        ("Conv", "x w", "c", {"pads": [1, 1, 1, 1]}),
        ("BatchNormalization", "c s b m v", "n", {"epsilon": 1e-3}),
        ("Sigmoid", "n", "g"), ("Mul", "n g", "a"),
        ("Slice", "a zero two axis", "first"), ("Slice", "a two four axis", "second"),
        ("Relu", "second", "r"), ("Concat", "first r", "j", {"axis": 1}),
        ("Resize", "j nothing scales", "u", {"mode": "nearest"}),
        ("ReduceMean", "u axes", "y", {"keepdims": 0}),
    ]  # fmt: skip
    constants = {
        "w": normal(4, 3, 3, 3), "s": normal(4), "b": normal(4, seed=1), "m": normal(4, seed=2),
        "v": np.abs(normal(4, seed=3)) + 1, "zero": i64(0), "two": i64(2), "four": i64(4), "axis": i64(1),
        "nothing": np.zeros(0, np.float32), "scales": np.array([1, 1, 2, 2], np.float32), "axes": i64(2, 3),
    }  # fmt: skip
    return model(nodes, {"x": normal(2, 3, 5, 7)}, "y u", constants)


def recurrence() -> onnx.ModelProto:
    """A GRU, whose kernel reads what it wrote in the step before."""
    constants = {"w": normal(1, 12, 3), "r": normal(1, 12, 4), "b": normal(1, 24)}
    return model([("GRU", "x w r b", "y h", {"hidden_size": 4})], {"x": normal(5, 2, 3)}, "y h", constants)


def equal_constants() -> onnx.ModelProto:
    """Quotients by constants of the same elements, each with a name of its own."""
    nodes = [
        ("Div", "x one", "a"), ("Relu", "a", "b"), ("Div", "b other", "c"), ("Exp", "c", "d"), ("Div", "d third", "y"),
    ]  # fmt: skip
    numbers = np.linspace(0.5, 2.0, 96, dtype=np.float32)
    return model(nodes, {"x": normal(3, 96)}, "y c", {name: numbers.copy() for name in ("one", "other", "third")})


MODELS = {
    "attention": attention,
    "convolutions": convolutions,
    "recurrence": recurrence,
    "equal_constants": equal_constants,
}


@pytest.mark.parametrize("level", ["none", "smartmem"])
@pytest.mark.parametrize("name", MODELS)
def test_every_node_and_kernel_is_certified(name: str, level: str) -> None:
    made = certified(MODELS[name](), level)
    verdict = certify(made.graph, made.base, made.certificate)
    assert verdict.nodes > 0
    assert verdict.kernels > 0
    assert not verdict.gaps
    assert not verdict.kernel_gaps
    assert bool(verdict.steps) == (level == "smartmem" and name != "recurrence")


@pytest.fixture(scope="module")
def attended() -> Certified:
    return certified(attention())


def test_steps_name_their_rules_and_guards(attended: Certified) -> None:
    steps = attended.certificate["steps"]
    (gelu,) = (step for step in steps if step.get("rule") == "gelu")
    assert gelu["match"][-1] == "h"
    assert gelu["makes"] == ["Gelu(h0)"]
    assert any("value(c)" in one["guard"] for one in gelu["guards"])


def test_a_certificate_is_of_one_model(attended: Certified) -> None:
    other = attention()
    (node,) = (n for n in other.graph.node if n.output[0] == "r")
    node.op_type = "Sub"
    graph = import_model(other, attended.base)
    with pytest.raises(Refused, match="no step shows that r is the model"):
        certify(graph, attended.base, attended.certificate)


def test_other_weights_need_another_certificate(attended: Certified) -> None:
    other = attention()
    (weight,) = (t for t in other.graph.initializer if t.name == "w2")
    weight.CopyFrom(onnx.numpy_helper.from_array(normal(12, 8, seed=9), "w2"))
    with pytest.raises(Refused, match="the constant w2 has other elements"):
        certify(import_model(other, attended.base), attended.base, attended.certificate)


def test_the_checker_loads_neither_egglog_nor_the_planner() -> None:
    code = (
        "import sys, smartmem_rules.certificate.certify\n"
        "bad = ('egglog', 'smartmem_rules.egraph', 'smartmem_rules.extraction', 'smartmem_rules.plan',"
        " 'smartmem_rules.pipeline', 'smartmem_rules.provenance', 'highspy')\n"
        "print([m for m in sys.modules if m.split('.')[0] in bad or '.'.join(m.split('.')[:2]) in bad])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_checker_is_small() -> None:
    lines = {path.name: code_lines(path.read_text("utf-8")) for path in PACKAGE.glob("*.py")}
    assert sum(lines.values()) <= MOST_LINES, lines


def code_lines(text: str) -> int:
    """The lines that are neither blank nor comments nor docstrings."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for statement in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                documented |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in idle:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - documented)
