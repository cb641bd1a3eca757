"""Proofs by normal forms: ways through open comparisons, polynomials over elements, and rules that must not pass."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, Reduce, TensorType
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.instantiate import instantiate_overload
from smartmem_rules.verification.proof.equations import solved
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.normal_form import Forms
from smartmem_rules.verification.proof.open_rewrites import prove_open
from smartmem_rules.verification.proof.paths import Path as Way, TooManyWays, ways

z3 = pytest.importorskip("z3")
AT, J, K = Var("i", 5), Var("j", 5), Var("k", 7)

QUICK = ("sum_of_products", "product_of_constant_products", "softmax", "unshifted_softmax", "l2_norm",
         "biased_matmul", "batch_normalization_as_scale_and_bias", "scale_of_transposed_keys",
         "concat_of_one", "cast_to_same_type")  # fmt: skip

WRONG = {
    "rows_and_columns": "Mul(MatMul(x, w), k) => MatMul(Mul(x, k), w) where rank(w) == 2, rank(x) == 2, rank(k) == 1",
    "other_order": "MatMul(MatMul(x, v), w) => MatMul(x, MatMul(w, v)) where rank(v) == 2, rank(w) == 2",
    "difference_as_sum": "Sub(MatMul(x, v), MatMul(x, w)) => MatMul(x, Add(v, w)) where shape(v) == shape(w)",
    "only_without_axes": "ReduceSum(ReduceSum(x; keepdims = 1); keepdims = 1) => ReduceSum(Mul(x, 2); keepdims = 1)",
    "mean_as_sum": "ReduceMean(x; axes = a, keepdims = 1) => ReduceSum(x; axes = a, keepdims = 1)",
    "sum_of_squares": "Mul(ReduceSum(x), ReduceSum(x)) => ReduceSum(Mul(x, x))",
    "axis_of_softmax": "Softmax(x; axis = a) => Softmax(x; axis = 0) where rank(x) > 0",
    "transposed_once": "Transpose(Transpose(x; perm = p); perm = q) => x where p == q",
    "half_is_nothing": "MatMul(Mul(q, 0.5), k) => MatMul(q, k)",
    "bias_scaled": "Mul(LayerNormalization(x, 1, b; axis = a, epsilon = e), s)"
    " => LayerNormalization(x, s, b; axis = a, epsilon = e) where rank(x) == 1",
    "scale_as_bias": "Add(LayerNormalization(x, 1; axis = a, epsilon = e), s)"
    " => LayerNormalization(x, s; axis = a, epsilon = e) where rank(x) == 1, rank(s) <= 1",
    "another_epsilon": "Add(LayerNormalization(x, s; axis = a, epsilon = e), b)"
    " => LayerNormalization(x, s, b; axis = a, epsilon = e * 2) where rank(x) == 1, rank(b) <= 1",
    "bias_not_scaled": "Mul(Gemm(a, w, b; alpha = p, beta = q, @g), k)"
    " => Gemm(a, w, b; @g, alpha = p * value(k), beta = q) where present(value(k))",
    "only_where_the_product_is_1": "Mul(Gemm(a, w; alpha = p, @g), k) => Gemm(a, w; @g, alpha = 1)"
    " where present(value(k))",
    "kernels_scaled_alone": "Mul(Conv(x, w, b; @c), k)"
    " => Conv(x, Mul(w, Reshape(k; shape = concat([-1], ones(rank(w) - 1)))), b; @c)"
    " where present(value(k)), rank(x) == 3",
    "forgotten_scale": "Div(Exp(x), ReduceSum(Exp(x); axes = a, keepdims = 1)) => Softmax(x; axis = -1)"
    " where present(a), rank(a) == 1",
}

TRUE = {
    "difference": "Sub(MatMul(x, v), MatMul(x, w)) => MatMul(x, Sub(v, w)) where shape(v) == shape(w)",
    "moved_scale": "ReduceSum(Mul(x, c); axes = a, keepdims = 1) => Mul(ReduceSum(x; axes = a, keepdims = 1), c)"
    " where prod(shape(c)) == 1, rank(c) <= rank(x)",
    "mean_of_sum": "ReduceMean(Add(x, y); keepdims = 1)"
    " => Add(ReduceMean(x; keepdims = 1), ReduceMean(y; keepdims = 1)) where shape(x) == shape(y)",
    "bias_of_normalization": "Add(LayerNormalization(x, s; axis = a, epsilon = e), b)"
    " => LayerNormalization(x, s, b; axis = a, epsilon = e) where rank(x) == 1, rank(b) <= 1",
    "scaled_product": "Mul(Gemm(a, w, b; alpha = p, beta = q, @g), k)"
    " => Gemm(a, w, b; @g, alpha = p * value(k), beta = q * value(k))"
    " where present(value(k)), value(k) != 0, rank(k) == 0, rank(b) == 1",
    "there_and_back": "Transpose(Transpose(x; perm = [1, 0]); perm = [1, 0]) => x where rank(x) == 2",
}


def _rule(tmp_path: Path, name: str, text: str, relaxes: str = "reassociation, nan, infinities") -> None:
    operators = ("contraction", "elementwise", "normalization", "reduction", "view")
    rules = Path(__file__).parents[3] / "rules" / "operators"
    imports = "\n".join(f'import "{rules / one}.smr"' for one in operators)
    file = tmp_path / f"{name}.smr"
    file.write_text(f"{imports}\nrewrite {name} in algebra\n    {text}\n    relaxes {relaxes}\n")
    base = load_rules([file])
    (rule,) = [r for r in base.rewrites if r.name == name]
    prove_open(rule, rule.left, rule.right, Instances(base), z3)


@pytest.mark.parametrize("name", QUICK)
def test_shipped_rules_are_proved(name: str) -> None:
    base = load_rules()
    (rule,) = [r for r in base.rewrites if r.name == name]
    assert prove_open(rule, rule.left, rule.right, Instances(base), z3).instances > 0


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_not_proved(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unprovable):
        _rule(tmp_path, name, WRONG[name])


@pytest.mark.parametrize("name", TRUE)
def test_true_rules_are_proved(name: str, tmp_path: Path) -> None:
    _rule(tmp_path, name, TRUE[name])


def test_undefined_points_count_unless_they_are_relaxed(tmp_path: Path) -> None:
    text = "Div(x, ReduceL2(x; axes = a, keepdims = 1)) => LpNormalization(x; axis = a[0], p = 2) where rank(a) == 1"
    _rule(tmp_path, "both", text, "nan, infinities")
    for relaxes in ("nan", "infinities"):
        with pytest.raises(Unprovable, match="defined"):
            _rule(tmp_path, "one", text, relaxes)


def _read(tensor: str, *indices: Var) -> Read:
    return Read(tensor, tuple(map(variable, indices)), "float32")


def _apply(function: str, *arguments: Expr) -> Apply:
    return Apply(function, arguments, "float32")


def _same(left: Expr, right: Expr) -> bool:
    return Forms(Fraction).form(left) == Forms(Fraction).form(right)


def test_sums_are_linear() -> None:
    a, b = _read("a", AT, K), _read("b", K, J)
    inner = _apply("mul", _apply("add", a, _read("c", AT)), b)
    left = Reduce("sum", (K,), inner, "float32")
    first = Reduce("sum", (K,), _apply("mul", a, b), "float32")
    second = _apply("mul", _read("c", AT), Reduce("sum", (K,), b, "float32"))
    assert _same(left, _apply("add", first, second))
    assert not _same(left, first)


def test_names_of_bound_indices_do_not_matter() -> None:
    other = Var("m", 7)
    one = Reduce("sum", (K,), _apply("mul", _read("a", AT, K), _read("b", K, J)), "float32")
    two = Reduce("sum", (other,), _apply("mul", _read("b", other, J), _read("a", AT, other)), "float32")
    swapped = Reduce("sum", (other,), _apply("mul", _read("b", J, other), _read("a", AT, other)), "float32")
    assert _same(one, two)
    assert not _same(one, swapped)


def test_what_a_sum_does_not_depend_on_is_taken_as_often_as_it_counts() -> None:
    assert _same(Reduce("sum", (K,), _read("a", AT), "float32"), _apply("mul", Const(7, "float32"), _read("a", AT)))


def test_quotients_say_what_they_need() -> None:
    forms = Forms(Fraction)
    forms.form(_apply("div", _read("a", AT), _read("b", AT)))
    assert {what for what, _ in forms.needs} == {"not zero"}
    exponentials = Forms(Fraction)
    exponentials.form(_apply("div", _read("a", AT), Reduce("sum", (K,), _apply("exp", _read("b", K)), "float32")))
    assert not exponentials.needs


def test_roots_of_squares_are_no_identities() -> None:
    a = _read("a", AT)
    assert not _same(_apply("sqrt", _apply("mul", a, a)), a)
    root = _apply("sqrt", a)
    assert _same(_apply("mul", root, root), a)


def test_indices_of_reads_count() -> None:
    shifted = Read("a", (variable(AT) + 1,), "float32")
    assert not _same(_read("a", AT), shifted)
    assert _same(Read("a", (Index(0) + variable(AT),), "float32"), _read("a", AT))


def test_each_open_comparison_is_taken_both_ways() -> None:
    seen: list[tuple[bool, bool]] = []

    def run(path: Way) -> None:
        one, other = path.extent("n"), path.extent("m")
        seen.append((path.answer(one, "==", 1), path.answer(one, "==", other)))

    assert len(list(ways(run, z3, 100))) == len(seen) == 4
    assert set(seen) == {(a, b) for a in (True, False) for b in (True, False)}


def test_comparisons_that_change_no_unknown_begin_nothing_anew() -> None:
    begun: list[Way] = []
    seen: list[tuple[bool, bool]] = []

    def run(path: Way) -> None:
        begun.append(path)
        one, other = path.extent("n"), path.extent("m")
        seen.append((path.answer(one, "<", other), path.answer(one, "!=", 1)))

    list(ways(run, z3, 100))
    assert sorted(seen) == [(False, False), (False, True), (True, False), (True, True)]
    assert len(begun) <= 6


def test_least_values_answer_comparisons() -> None:
    def run(path: Way) -> None:
        extent = path.extent("n")
        if path.answer(extent, "!=", 1):
            assert path.answer(extent, ">", 1)
            assert path.answer(2 * extent, ">=", 4)
            assert path.answer(extent, "!=", 2) is path.answer(extent, ">", 2)
        else:
            assert path.settled(extent) == 1

    assert len(list(ways(run, z3, 100))) == 3


def test_equations_that_give_no_value_are_known_from_then_on() -> None:
    def run(path: Way) -> None:
        a, b = path.real("a"), path.real("b")
        assert path.answer(a * b, "==", 2) is path.answer(a * b, "==", 2)
        assert path.answer(2, "==", a * b) is not path.answer(a * b, "!=", 2)

    assert len(list(ways(run, z3, 100))) == 2


def test_of_two_unknowns_the_later_one_gets_the_value() -> None:
    found: list[tuple[int, int]] = []

    def run(path: Way) -> None:
        first, second = path.extent("z"), path.extent("a")
        if path.answer(first, "==", second):
            found.append((path.settled(first), path.settled(second)))

    list(ways(run, z3, 100))
    ((first, second),) = found
    assert first == second
    assert repr(first) == "z"


def test_choices_are_all_made() -> None:
    seen: list[tuple[int, int]] = []
    list(ways(lambda path: seen.append((path.choose(2), path.choose(3))), z3, 100))
    assert sorted(seen) == [(a, b) for a in range(2) for b in range(3)]
    with pytest.raises(TooManyWays):
        list(ways(lambda path: seen.append((path.choose(2), path.choose(3))), z3, 5))


def test_equations_are_solved() -> None:
    found: list[dict[str, int]] = []

    def run(path: Way) -> None:
        a, b, c = path.extent("a"), path.extent("b"), path.extent("c")
        found.append(dict(solved(a * b, a * c)))
        found.append(dict(solved(a * b, 1)))
        found.append(dict(solved(a % b, 0)))

    list(ways(run, z3, 100))
    halves, ones, multiple = found
    assert list(halves) in (["b"], ["c"])
    assert ones == {"a": 1, "b": 1}
    assert list(multiple) == ["a"]


def test_lists_that_may_have_any_length_are_not_enumerated(tmp_path: Path) -> None:
    rule = "Slice(Neg(x); starts = a, ends = b, axes = c) => Neg(Slice(x; starts = a, ends = b, axes = c))"
    with pytest.raises(Unprovable, match="may be of any length"):
        _rule(tmp_path, "slice_of_negation", rule)


@pytest.mark.parametrize("name", ["Conv", "MaxPool", "AveragePool", "LpPool"])
def test_lists_of_another_length_than_their_default_are_refused(name: str) -> None:
    """What proofs of all extents rest on: no other length of these lists makes an instance."""
    base = load_rules()
    shapes = [(1, 2, 5, 6), (4, 2, 3, 3)] if name == "Conv" else [(1, 2, 5, 6)]
    given = {} if name == "Conv" else {"kernel_shape": (2, 2)}
    operands = [TensorType("float32", shape) for shape in shapes]
    for overload in base.operators[name]:
        _refuses_other_lengths(base, overload, operands, given)


def _refuses_other_lengths(
    base: RuleBase, overload: ast.Operator, operands: list[TensorType], given: dict[str, tuple[int, ...]]
) -> None:
    lists = {a.name for a in overload.attributes} & {"strides", "dilations", "pads"}
    right = {"strides": 2, "dilations": 2, "pads": 4}
    for lengths in product(range(6), repeat=len(lists)):
        chosen = dict(zip(sorted(lists), lengths, strict=True))
        values = {one: (0 if one == "pads" else 1,) * length for one, length in chosen.items()}
        if all(right[one] == length for one, length in chosen.items()):
            instantiate_overload(base, overload, operands, {**given, **values}, 1)
        else:
            with pytest.raises((Unsupported, DefinitionError)):
                instantiate_overload(base, overload, operands, {**given, **values}, 1)
