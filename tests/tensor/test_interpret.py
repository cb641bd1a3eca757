"""The reference interpreter against numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Const,
    Equation,
    Expr,
    FromIndex,
    Logic,
    Read,
    Reduce,
    Select,
    TensorType,
)
from smartmem_rules.tensor.index import Index, div, mod, variable
from smartmem_rules.tensor.interpreter import interpret
from smartmem_rules.tensor.interpreter.interpret import InterpretError, evaluate_equations
from smartmem_rules.tensor.substitution import gathered, lookup, ravel, unravel

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(7)


def axes(*extents: int) -> tuple[Var, ...]:
    return tuple(Var(f"i{k}", extent) for k, extent in enumerate(extents))


def compute(variables: tuple[Var, ...], body: Expr, **tensors: Array) -> Array:
    type_ = TensorType(body.dtype, tuple(v.extent for v in variables))
    result = evaluate_equations([Equation("y", variables, body, type_)], tensors)["y"]
    assert result.shape == type_.shape
    assert result.flags.c_contiguous
    return result


def read(tensor: str, *indices: Index | Var | int, dtype: str = "float32") -> Read:
    placed = tuple(variable(i) if isinstance(i, Var) else i if isinstance(i, Index) else Index(i) for i in indices)
    return Read(tensor, placed, dtype)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def test_transposed_and_sliced_reads() -> None:
    x = normal(5, 6, 7)
    i, j = axes(7, 3)
    got = compute((i, j), read("x", 2, variable(j) * 2 + 1, i), x=x)
    np.testing.assert_array_equal(got, x[2, 1::2].T)


def test_reversed_diagonal_and_broadcast_reads() -> None:
    x = normal(4, 4)
    (i,) = axes(4)
    np.testing.assert_array_equal(compute((i,), read("x", i, variable(i) * -1 + 3), x=x), np.diag(x[:, ::-1]))
    i, j = axes(4, 3)
    np.testing.assert_array_equal(compute((i, j), read("x", 1, i), x=x), np.repeat(x[1][:, None], 3, 1))


@pytest.mark.parametrize("shape", [(6, 4), (2, 12), (3, 2, 4), (24,)])
@pytest.mark.parametrize("scale", [1, 40])
def test_reshape(shape: tuple[int, ...], scale: int) -> None:
    x = normal(4, 6, 10 * scale)
    target = (*shape, 10 * scale)
    variables = axes(*target)
    indices = unravel(ravel(tuple(map(variable, variables)), target), x.shape)
    np.testing.assert_array_equal(compute(variables, read("x", *indices), x=x), x.reshape(target))


def test_roll_is_gathered() -> None:
    x = normal(7, 80)
    i, j = axes(7, 80)
    got = compute((i, j), read("x", mod(variable(i) + 3, 7), mod(variable(j) + 5, 80)), x=x)
    np.testing.assert_array_equal(got, np.roll(x, (-3, -5), (0, 1)))


def padded(index: Index, extent: int, fill: float) -> Select:
    inside = Logic("and", (Compare("<=", Index(0), index), Compare("<", index, Index(extent))))
    return Select(inside, read("x", index), Const(fill, "float32"), "float32")


def test_padding_by_constant_and_by_condition() -> None:
    x = normal(5)
    (i,) = axes(9)
    expected = np.pad(x, 2, constant_values=-1)
    np.testing.assert_array_equal(compute((i,), padded(variable(i) - 2, 5, -1.0), x=x), expected)
    outside = Logic("not", (Compare("<", variable(i), Index(2)),))
    body = Select(outside, padded(variable(i) - 2, 5, -1.0), Const(7.0, "float32"), "float32")
    np.testing.assert_array_equal(compute((i,), body, x=x), np.concatenate([[7, 7], expected[2:]]).astype(np.float32))


def test_one_sided_guard_leaves_other_side_checked() -> None:
    (i,) = axes(9)
    index = variable(i) - 2
    body = Select(Compare("<=", Index(0), index), read("x", index), Const(0.0, "float32"), "float32")
    # the guarded read is clamped, as only the chosen side counts
    x = normal(5)
    np.testing.assert_array_equal(compute((i,), body, x=x)[2:7], x)


def convolution(groups: int, stride: int) -> tuple[Array, Array]:
    x, w = normal(2, 4 * groups, 9, 9), normal(6 * groups, 4, 3, 3)
    extent = (9 + 2 - 3) // stride + 1
    n, o, a, b = axes(2, 6 * groups, extent, extent)
    c, k, m = Var("c", 4), Var("k", 3), Var("m", 3)
    row = variable(a) * stride + variable(k) - 1
    column = variable(b) * stride + variable(m) - 1
    inside = Logic(
        "and",
        (
            Compare("<=", Index(0), row),
            Compare("<", row, Index(9)),
            Compare("<=", Index(0), column),
            Compare("<", column, Index(9)),
        ),
    )
    source = read("x", n, div(variable(o), 6) * 4 + variable(c), row, column)
    value = Select(inside, source, Const(0.0, "float32"), "float32")
    body = Reduce("sum", (c, k, m), Apply("mul", (value, read("w", o, c, k, m)), "float32"), "float32")
    got = compute((n, o, a, b), body, x=x, w=w)
    pad = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    expected = np.zeros(got.shape)
    for y in range(extent):
        for z in range(extent):
            window = pad[:, :, y * stride : y * stride + 3, z * stride : z * stride + 3]
            split = window.reshape(2, groups, 4, 3, 3)
            parts = [np.einsum("nckm,ockm->no", split[:, g], w[6 * g : 6 * g + 6]) for g in range(groups)]
            expected[:, :, y, z] = np.concatenate(parts, 1)
    return got, expected


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution(groups: int, stride: int) -> None:
    got, expected = convolution(groups, stride)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_blocks_give_the_same_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    x = normal(40, 30)
    i, j = axes(40, 40)
    k = Var("k", 30)
    difference = Apply("abs", (Apply("sub", (read("x", i, k), read("x", j, k)), "float32"),), "float32")
    body = Reduce("sum", (k,), difference, "float32")
    whole = compute((i, j), body, x=x)
    monkeypatch.setattr(interpret, "BLOCK", 1000)
    np.testing.assert_array_equal(compute((i, j), body, x=x), whole)
    np.testing.assert_allclose(whole, np.abs(x[:, None] - x).sum(-1), rtol=1e-5)
    monkeypatch.setattr(interpret, "BLOCK", 64)
    got, expected = convolution(3, 1)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def product(*factors: Expr) -> Expr:
    body = factors[0]
    for factor in factors[1:]:
        body = Apply("mul", (body, factor), "float32")
    return body


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("bik,bkj->bij", [(2, 3, 4), (2, 4, 5)]),
        ("ik,jk->ij", [(3, 4), (5, 4)]),
        ("ik,ik->i", [(3, 4), (3, 4)]),
        ("ik,k->i", [(3, 4), (4,)]),
        ("ik,j->ij", [(3, 4), (5,)]),
        ("i,j->ij", [(3,), (5,)]),
        ("ik,kl,lj->ij", [(3, 4), (4, 5), (5, 6)]),
        ("kl,k->l", [(3, 4), (3,)]),
        ("k,k->", [(6,), (6,)]),
    ],
)
def test_sums_of_products(subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [normal(*shape) for shape in shapes]
    inputs, output = subscripts.split("->")
    extents = {
        n: e for term, shape in zip(inputs.split(","), shapes, strict=True) for n, e in zip(term, shape, strict=True)
    }
    variables = {name: Var(name, extent) for name, extent in extents.items()}
    factors = [read(f"t{k}", *(variables[n] for n in term)) for k, term in enumerate(inputs.split(","))]
    reduced = tuple(v for n, v in variables.items() if n not in output)
    body: Expr = Reduce("sum", reduced, product(*factors), "float32") if reduced else product(*factors)
    got = compute(tuple(variables[n] for n in output), body, **{f"t{k}": a for k, a in enumerate(arrays)})
    np.testing.assert_allclose(got, np.einsum(subscripts, *arrays), rtol=1e-5, atol=1e-6)


def test_a_sum_over_an_unused_variable_counts_it() -> None:
    x = normal(3)
    (i,) = axes(3)
    body = Reduce("sum", (Var("k", 5),), read("x", i), "float32")
    np.testing.assert_allclose(compute((i,), body, x=x), 5 * x, rtol=1e-6)
    body = Reduce("sum", (Var("k", 5),), product(read("x", i), read("x", i)), "float32")
    np.testing.assert_allclose(compute((i,), body, x=x), 5 * x * x, rtol=1e-6)
    body = Reduce("prod", (Var("k", 2),), read("x", i), "float32")
    np.testing.assert_allclose(compute((i,), body, x=x), x * x, rtol=1e-6)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
def test_reductions(kind: str) -> None:
    x = normal(4, 5, 6)
    (i,) = axes(5)
    a, b = Var("a", 4), Var("b", 6)
    got = compute((i,), Reduce(kind, (a, b), read("x", a, i, b), "float32"), x=x)
    np.testing.assert_allclose(got, getattr(np, kind)(x, axis=(0, 2)), rtol=1e-5)


@pytest.mark.parametrize(("kind", "empty"), [("sum", 0), ("max", -math.inf), ("min", math.inf), ("prod", 1)])
def test_empty_reductions_give_the_neutral_element(kind: str, empty: float) -> None:
    (i,) = axes(3)
    body = Reduce(kind, (Var("k", 0),), read("x", i, Var("k", 0)), "float32")
    np.testing.assert_array_equal(compute((i,), body, x=np.zeros((3, 0), np.float32)), np.full(3, empty, np.float32))


def test_empty_output() -> None:
    assert compute(axes(0, 3), read("x", Var("i0", 0), Var("i1", 3)), x=np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_gathered_indices_wrap_and_are_checked() -> None:
    x, places = normal(5, 3), np.array([[0, -1], [3, 2]])
    a, b, c = axes(2, 2, 3)

    def body(wrap: bool) -> Read:
        return read("x", gathered("p", (variable(a), variable(b)), 5, wrap), c)

    np.testing.assert_array_equal(compute((a, b, c), body(True), x=x, p=places), x[places])
    with pytest.raises(InterpretError, match=r"index -1 .* of 'x' is outside its extent 5"):
        compute((a, b, c), body(False), x=x, p=places)


def test_lookup_and_index_values() -> None:
    (i,) = axes(4)
    table = lookup((3, 1, 4, 1), variable(i))
    np.testing.assert_array_equal(compute((i,), FromIndex(table + i.extent, "float32")), np.array([7, 5, 8, 5], "f4"))
    x = normal(9)
    np.testing.assert_array_equal(compute((i,), read("x", table), x=x), x[[3, 1, 4, 1]])


def test_equations_read_earlier_ones() -> None:
    x = normal(6)
    (i,) = axes(6)
    k = Var("k", 6)
    total = Equation("s", (), Reduce("sum", (k,), read("x", k), "float32"), TensorType("float32", ()))
    body = Apply("div", (read("x", i), read("s")), "float32")
    results = evaluate_equations([total, Equation("y", (i,), body, TensorType("float32", (6,)))], {"x": x})
    assert set(results) == {"s", "y"}
    np.testing.assert_allclose(results["y"], x / x.sum(), rtol=1e-5)


def test_missing_tensor_is_named() -> None:
    (i,) = axes(2)
    with pytest.raises(InterpretError, match="'x' has no value"):
        compute((i,), read("x", i))


def elementwise(function: str, result: str, *operands: Array) -> Array:
    (i,) = axes(len(operands[0]))
    arguments = tuple(read(f"t{k}", i, dtype=str(o.dtype)) for k, o in enumerate(operands))
    return compute((i,), Apply(function, arguments, result), **{f"t{k}": o for k, o in enumerate(operands)})


def test_integer_division_and_remainders() -> None:
    a = np.array([7, -7, 7, -7, 6, -6], np.int32)
    b = np.array([2, 2, -2, -2, 3, 3], np.int32)
    assert elementwise("div", "int32", a, b).tolist() == [3, -3, -3, 3, 2, -2]
    assert elementwise("floordiv", "int32", a, b).tolist() == [3, -4, -4, 3, 2, -2]
    assert elementwise("mod", "int32", a, b).tolist() == [1, 1, -1, -1, 0, 0]
    assert elementwise("fmod", "int32", a, b).tolist() == [1, -1, 1, -1, 0, 0]
    assert elementwise("div", "uint8", np.array([7], np.uint8), np.array([2], np.uint8)).tolist() == [3]


def test_rounding_is_half_to_even() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6], np.float32)
    assert elementwise("round", "float32", x).tolist() == [-2, -2, 0, 0, 2, 2, 3]


def test_erf_sigmoid_and_pow() -> None:
    x = normal(50)
    exact = np.array([math.erf(v) for v in x.tolist()], np.float32)
    np.testing.assert_allclose(elementwise("erf", "float32", x), exact, rtol=1e-6)
    big = np.array([-200.0, 0.0, 200.0], np.float32)
    assert elementwise("sigmoid", "float32", big).tolist() == [0.0, 0.5, 1.0]
    powers = elementwise("pow", "int64", np.array([2, -1, 1, 3]), np.array([10, -3, -1, 0]))
    assert powers.tolist() == [1024, -1, 1, 1]


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (np.array([1.9, -1.9, 0.5], np.float32), "int32", [1, -1, 0]),
        (np.array([300.0, -1.0], np.float32), "uint8", [44, 255]),
        (np.array([0.0, 0.1, math.nan], np.float32), "bool", [False, True, True]),
        (np.array([True, False]), "float32", [1.0, 0.0]),
        (np.array([300, -1], np.int64), "int8", [44, -1]),
        (np.array([1 / 3], np.float32), "float16", [float(np.float16(1 / 3))]),
    ],
)
def test_casts(values: Array, target: str, expected: list[object]) -> None:
    assert elementwise("cast", target, values).tolist() == expected


def test_half_precision_is_rounded_on_store_only() -> None:
    x = np.array([1.0, 2048.0], np.float16)
    k = Var("k", 2)
    one = Const(1.0, "float16")
    body = Reduce("sum", (k,), Apply("add", (read("x", k, dtype="float16"), one), "float16"), "float16")
    result = compute((), body, x=x)
    assert result.dtype == np.float16
    # 2 + 2049 in float32; 2049 alone would have been rounded to 2048 in half precision
    assert float(result) == float(np.float16(2051))


def test_select_by_element() -> None:
    x = normal(6)
    (i,) = axes(6)
    test = Apply("lt", (read("x", i), Const(0.0, "float32")), "bool")
    body = Apply("select", (test, Const(0.0, "float32"), read("x", i)), "float32")
    np.testing.assert_array_equal(compute((i,), body, x=x), np.maximum(x, 0))
