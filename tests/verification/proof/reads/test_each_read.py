"""Reads that only a slice proves: they stay inside, and an error planted in any of their indices is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import Syntax, branches_of
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.tensor.builtins import ConstantTensor, Unsupported
from smartmem_rules.tensor.expr import Select, TensorType, walk
from smartmem_rules.tensor.instantiate import instantiate
from smartmem_rules.verification.proof.reads.each_read import prove_each_read, prove_read
from smartmem_rules.verification.proof.reads.written_reads import read_nodes, tensor_names

z3 = pytest.importorskip("z3")

SLICED = (
    "LayerNormalization", "QLinearAdd", "QLinearMul", "QLinearMatMul", "MatMulIntegerToFloat", "QGemm", "NonZero",
    "Compress", "DFT", "MelWeightMatrix", "TfIdfVectorizer", "FusedAttention", "MatMulNBits", "RotaryEmbedding",
    "RotaryEmbeddingOfCaches", "MaxPool", "DequantizeLinear", "QLinearConv", "Attention", "FusedConv",
)  # fmt: skip
"""Definitions of which all reads together have too many ways."""
STILL_INSIDE = {"MelWeightMatrix": 8}
"""Planted errors that are none: there are two edges more than bins, and all reads but those of the last have room."""
_WAYS = 320


@pytest.fixture(scope="module")
def base() -> RuleBase:
    return load_rules()


def _planted(operator: ast.Operator) -> Iterator[tuple[ast.Subscript, ast.Operator, ast.Subscript]]:
    """Each read, with each of its indices off by one: the definition and the read in it."""
    for place, equation in enumerate(operator.equations):
        for read in read_nodes(equation.body, tensor_names(operator)):
            for number, item in enumerate(read.items):
                wrong = replace(read, items=(*read.items[:number], _shifted(item), *read.items[number + 1 :]))
                changed = replace(equation, body=_with(equation.body, read, wrong))
                equations = (*operator.equations[:place], changed, *operator.equations[place + 1 :])
                yield read, replace(operator, equations=equations), wrong


def _shifted(item: ast.Expression) -> ast.Expression:
    if isinstance(item, ast.Splat | ast.Broadcast):
        return replace(item, operand=_shifted(item.operand))
    return ast.Binary(item.span, "+", item, ast.Number(item.span, 1))


def _with(node: Syntax, old: Syntax, new: Syntax) -> Syntax:
    if node is old:
        return new
    parts = {name: getattr(node, name) for name in branches_of(node)}
    made = {
        name: tuple(_with(p, old, new) if isinstance(p, Syntax) else p for p in part)
        if isinstance(part, tuple)
        else _with(part, old, new)
        if isinstance(part, Syntax)
        else part
        for name, part in parts.items()
    }
    return node if all(_same(made[name], part) for name, part in parts.items()) else replace(node, **made)


def _same(new: object, old: object) -> bool:
    if isinstance(new, tuple) and isinstance(old, tuple):
        return all(a is b for a, b in zip(new, old, strict=True))
    return new is old


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["QLinearAdd", "NonZero", "LayerNormalization", "MelWeightMatrix"])
def test_reads_that_together_have_too_many_ways_are_proved_alone(base: RuleBase, name: str) -> None:
    for operator in base.operators[name]:
        proofs = prove_each_read(base, operator, z3, 2000)
        assert proofs.proved == proofs.total, proofs.left


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", SLICED)
def test_an_index_that_is_off_by_one_is_not_proved(base: RuleBase, name: str) -> None:
    planted, survivors = 0, []
    for operator in base.operators[name]:
        for original, changed, read in _planted(operator):
            if prove_read(base, operator, original, z3, _WAYS) is None:
                planted += 1
                if prove_read(base, changed, read, z3, _WAYS) is None:
                    survivors.append(str(read.span))
    assert planted
    assert len(survivors) <= STILL_INSIDE.get(name, 0), survivors


def test_a_table_of_a_view_holds_the_index_inside(base: RuleBase) -> None:
    """The `else` of these definitions is never taken: no condition is left of it."""
    for shape in ((5, 4), (1, 7), (3, 1)):
        x = TensorType("float32", shape)
        made = [
            instantiate(base, "Gather", [x], {"indices": ConstantTensor((3,), (0, -1, 0), "int64"), "axis": 0}),
            *(
                instantiate(base, "Pad", [x], {"pads": (0, 3, 1, 2), "mode": mode})
                for mode in ("edge", "wrap", "reflect")
            ),
            instantiate(base, "Upsample", [x], {"scales": (1.5, 2.0)}),
            instantiate(base, "Upsample", [x], {"scales": (1.5, 2.0), "mode": "linear"}),
            instantiate(base, "Einsum", [x, TensorType("float32", shape[::-1])], {"equation": "ij,jk->ik"}),
        ]
        for instance in made:
            for equation in instance.equations:
                assert not any(isinstance(part, Select) for part in walk(equation.body)), equation


def test_axes_of_one_label_must_fit(base: RuleBase) -> None:
    with pytest.raises(Unsupported):
        instantiate(
            base, "Einsum", [TensorType("float32", (2, 3)), TensorType("float32", (4, 5))], {"equation": "ij,jk->ik"}
        )
