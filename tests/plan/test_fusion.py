"""Which operators share a kernel, and which must not."""

from __future__ import annotations

import pytest

from tests.plan.models import Node, i64, normal
from tests.plan.programs import forms, fused, program_of

X = {"x": normal(6, 8)}


def test_elementwise_operators_share_a_kernel() -> None:
    nodes: list[Node] = [("Tanh", "x", "a"), ("Mul", "a x", "b"), ("Relu", "b", "y")]
    assert forms(fused(nodes, X, "y")) == ["pointwise"]
    assert forms(fused(nodes, X, "y", level="none")) == ["pointwise"] * 3


def test_layout_operators_vanish_into_their_readers() -> None:
    nodes: list[Node] = [
        ("Transpose", "x", "t", {"perm": [1, 0]}),
        ("Reshape", "t s", "r"),
        ("Tanh", "r", "a"),
        ("Reshape", "a back", "y"),
    ]
    constants = {"s": i64(4, 12), "back": i64(48)}
    assert forms(fused(nodes, X, "y", constants)) == ["pointwise"]
    assert len(fused(nodes, X, "y", constants, "none").groups) == 4


def test_an_epilogue_joins_its_product() -> None:
    nodes: list[Node] = [("MatMul", "x w", "p"), ("Add", "p b", "q"), ("Relu", "q", "r"), ("Add", "r x", "y")]
    constants = {"w": normal(8, 8), "b": normal(8)}
    assert forms(fused(nodes, X, "y", constants)) == ["contraction"]


def test_what_an_operator_does_not_read_is_not_computed() -> None:
    """`Gemm` of beta 0 has an operand `C` that its equation does not read."""
    feeds = {"u": normal(1), "v": normal(2)}
    nodes: list[Node] = [
        ("Mul", "u v", "row"),
        ("Reshape", "row s", "r"),
        ("MatMul", "r v", "c"),
        ("Gemm", "r w c", "y", {"beta": 0.0, "transA": 1, "transB": 1}),
    ]
    assert forms(fused(nodes, feeds, "y", {"s": i64(1, 2), "w": normal(2, 1)})) == ["pointwise"]


@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_what_a_recurrence_reads_of_its_last_step_is_computed(operator: str, gates: int) -> None:
    """It stands behind its readers: the state of an LSTM's cells is read by the gates of the next step."""
    weights = {"w": normal(1, 5 * gates, 4), "r": normal(1, 5 * gates, 5)}
    program = program_of([(operator, "x w r", "y", {"hidden_size": 5})], {"x": normal(3, 2, 4)}, "y", weights)
    there = {*program.inputs, *program.constants, *(one.tensor for one in program.definitions)}
    assert {name for one in program.definitions for name in one.reads} <= there


def test_softmax_is_one_kernel() -> None:
    assert forms(fused([("Softmax", "x", "y")], X, "y")) == ["reduction"]


def test_statistics_and_the_row_share_a_kernel() -> None:
    nodes: list[Node] = [
        ("ReduceMean", "x one", "m"),
        ("Sub", "x m", "d"),
        ("Mul", "d d", "q"),
        ("ReduceMean", "q one", "v"),
        ("Add", "v e", "w"),
        ("Sqrt", "w", "s"),
        ("Div", "d s", "y"),
    ]
    constants = {"one": i64(1), "e": normal()}
    assert forms(fused(nodes, X, "y", constants)) == ["reduction"]


def test_a_statistic_of_rows_that_is_read_for_pairs_of_rows_is_stored() -> None:
    """`r[i] * r[j]` needs rows that other work-items make: the row's own work-item cannot compute it."""
    nodes: list[Node] = [("ReduceSum", "x one", "r", {"keepdims": 0}), ("Reshape", "r s", "c"), ("Mul", "r c", "y")]
    result = fused(nodes, X, "y", {"one": i64(1), "s": i64(6, 1)})
    assert forms(result) == ["pointwise", "reduction"]


def test_rows_of_different_axes_do_not_share_a_kernel() -> None:
    nodes: list[Node] = [("ReduceMax", "x zero", "m"), ("Sub", "x m", "d"), ("ReduceMax", "d one", "y")]
    result = fused(nodes, X, "y", {"zero": i64(0), "one": i64(1)})
    assert forms(result).count("reduction") == 2


def test_a_diamond_whose_other_side_is_another_kernel_makes_no_cycle() -> None:
    """y = tanh(x) + (softmax of tanh(x) over the columns, by rows): the sum cannot join what the softmax depends on."""
    nodes: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Tanh", "p", "a"),
        ("Softmax", "a", "s", {"axis": 0}),
        ("Add", "a s", "y"),
    ]
    result = fused(nodes, X, "y", {"w": normal(8, 8)})
    done: set[str] = set()
    for group in result.groups:
        reads = {t for m in group.members for t in _reads(m)} - group.tensors
        assert not (reads & result.stored) - done, "a kernel reads what a later one writes"
        done |= group.tensors


def _reads(member: object) -> list[str]:
    from smartmem_rules.plan.fusion.equations.program import Definition
    from smartmem_rules.tensor.expr import tensors_read

    assert isinstance(member, Definition)
    return tensors_read(member.equation.body)


def test_a_chain_of_diamonds_is_ordered() -> None:
    nodes: list[Node] = [
        ("Softmax", "x", "a", {"axis": 0}),
        ("Softmax", "x", "b", {"axis": 1}),
        ("Add", "a b", "c"),
        ("Softmax", "c", "d", {"axis": 0}),
        ("Mul", "d a", "e"),
        ("Mul", "e b", "y"),
    ]
    result = fused(nodes, X, "y a")
    done: set[str] = set()
    for group in result.groups:
        reads = {t for m in group.members for t in _reads(m)} - group.tensors
        assert not (reads & result.stored) - done
        done |= group.tensors


def test_outputs_of_the_model_stay_in_memory() -> None:
    nodes: list[Node] = [("Tanh", "x", "a"), ("Exp", "a", "b"), ("Softmax", "b", "y")]
    assert {"a", "y"} <= fused(nodes, X, "y a").stored


def test_a_producer_of_indices_is_stored() -> None:
    nodes: list[Node] = [("ArgMax", "x", "i", {"axis": 1, "keepdims": 0}), ("Gather", "x i", "y")]
    assert "i" in fused(nodes, X, "y").stored


@pytest.mark.parametrize("level", ["none", "dnnfusion", "eliminate", "layout", "smartmem"])
def test_every_definition_has_one_place(level: str) -> None:
    nodes: list[Node] = [
        ("MatMul", "x w", "p"),
        ("Softmax", "p", "s"),
        ("Transpose", "s", "t"),
        ("Concat", "t t", "c", {"axis": 0}),
        ("Exp", "c", "y"),
    ]
    result = fused(nodes, X, "y t", {"w": normal(8, 8)}, level)
    members = [m.tensor for g in result.groups for m in g.members]
    assert len(members) == len(set(members))
    assert {"y", "t"} <= set(members)
