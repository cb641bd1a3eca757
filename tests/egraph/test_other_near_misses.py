"""Near misses of index rules, eliminations and `keep` rules: instances on which one guard alone fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from smartmem_rules.egraph import saturate
from smartmem_rules.egraph.bindings import bindings
from smartmem_rules.egraph.index_compile import DECLARATIONS, compile_index_rules
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.kept import Constant, keeping_rule
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import instantiate
from tests.egraph.building import Builder

# --- index rules ---------------------------------------------------------------------------------------

CONSTANTS = (1, 2, 3, 6, 12, -2, -3)
RANGES = ((0, 5), (0, 1), (2, 3), (3, 5), (-3, -1), (-2, 3), (7, 13), (-9, -7))
TERMS = {"+": "Plus", "*": "Times", "//": "Over", "%": "Modulo"}
FAR = 1 << 20
IMPLIED = {
    (name, "c > 0")
    for name in (
        "div_of_low_digits",
        "mod_of_low_digits",
        "mod_of_one_period_less",
        "mod_of_one_period_more",
        "div_of_bounded_quotient",
    )
}
"""Guards that cannot fail alone: something lies between 0 and c, or between c and 2 c."""


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value of an expression."""

    low: int
    high: int


@dataclass(frozen=True)
class Instance:
    """Values of a rule's constants and bounds of its other names."""

    values: Mapping[str, Bounds]

    def bounds(self, expr: ast.Expression) -> Bounds:
        match expr:
            case ast.Number(value=value):
                return Bounds(int(value), int(value))
            case ast.Name(id=name):
                return self.values[name]
            case ast.Unary(operand=operand):
                inner = self.bounds(operand)
                return Bounds(-inner.high, -inner.low)
            case ast.Binary(operator="+", left=left, right=right):
                one, other = self.bounds(left), self.bounds(right)
                return Bounds(one.low + other.low, one.high + other.high)
            case ast.Binary(operator=operator, left=left, right=right):
                one, other = self.bounds(left).low, self.bounds(right).low
                number = {"*": one * other, "%": one % other, "-": one - other}[operator]
                return Bounds(number, number)
        raise AssertionError(expr)

    def holds(self, guard: ast.Expression) -> bool:
        """Whether the bounds alone show that the guard holds."""
        assert isinstance(guard, ast.Binary)
        left, right = self.bounds(guard.left), self.bounds(guard.right)
        return {
            "<": left.high < right.low,
            "<=": left.high <= right.low,
            ">": left.low > right.high,
            "==": left == right,
        }[guard.operator]

    def term(self, expr: ast.Expression, constants: set[str]) -> str:
        """The left side of the rule in the e-graph."""
        match expr:
            case ast.Number(value=value):
                return f"(K {int(value)})"
            case ast.Name(id=name):
                return f"(K {self.values[name].low})" if name in constants else f"${name}"
            case ast.Binary(operator=operator, left=left, right=right):
                return f"({TERMS[operator]} {self.term(left, constants)} {self.term(right, constants)})"
        raise AssertionError(expr)


def constants_of(rule: ast.IndexRule) -> set[str]:
    """The names that multiply or divide."""
    products = (node for node in nodes(rule.left) if isinstance(node, ast.Binary) and node.operator in ("*", "//", "%"))
    return {node.right.id for node in products if isinstance(node.right, ast.Name)}


def instances(rule: ast.IndexRule) -> Iterator[Instance]:
    constants = constants_of(rule)
    names = sorted({node.id for node in nodes(rule.left) if isinstance(node, ast.Name)})
    choices = (CONSTANTS if name in constants else RANGES for name in names)
    for chosen in itertools.product(*choices):
        pairs = ((one, one) if isinstance(one, int) else one for one in chosen)
        yield Instance({name: Bounds(*pair) for name, pair in zip(names, pairs, strict=True)})


def fires(rule: ast.IndexRule, instance: Instance) -> bool:
    """Whether the rule takes its left side for the right one in the e-graph."""
    constants = constants_of(rule)
    (text,) = compile_index_rules([rule])
    lines = ["(relation fired (i64))", text.replace("((union ", "((fired 1) (union ", 1)]
    for number, (name, bounds) in enumerate(instance.values.items()):
        if name not in constants:
            lines += [f"(let ${name} (V {number}))", f"(set (low ${name}) {bounds.low})"]
            lines += [f"(set (high ${name}) {bounds.high})"]
    lines.append(f"(let $left {instance.term(rule.left, constants)})")
    # of a division by a negative number nothing is known in the e-graph
    lines += [f"(set (low $left) {-FAR})", f"(set (high $left) {FAR})", "(run-schedule (repeat 3 (run index)))"]
    egraph = bindings.EGraph()
    for line in (DECLARATIONS, *lines):
        egraph.run_program(*egraph.parse_program(line))
    (size,) = egraph.run_program(*egraph.parse_program("(print-size fired)"))
    return int(str(size)) > 0


def guarded_index_rules() -> list[tuple[ast.IndexRule, int]]:
    return [(rule, place) for rule in load_rules().index_rules for place in range(len(rule.guards))]


@pytest.mark.parametrize(
    ("rule", "place"),
    guarded_index_rules(),
    ids=lambda value: value.name if isinstance(value, ast.IndexRule) else str(value),
)
def test_an_index_rule_rests_where_one_guard_fails(rule: ast.IndexRule, place: int) -> None:
    guard, others = rule.guards[place], rule.guards[:place] + rule.guards[place + 1 :]
    lax = replace(rule, guards=others)
    near = (one for one in instances(rule) if all(map(one.holds, others)) and not one.holds(guard))
    if (rule.name, print_expression(guard)) in IMPLIED:
        assert next(near, None) is None
        return
    found = next((one for one in itertools.islice(near, 40) if fires(lax, one)), None)
    assert found is not None, print_expression(guard)
    assert not fires(rule, found)


# --- operators that are left to the run ----------------------------------------------------------------

PACKED = TensorType("int4", (64, 64))
NEAR_KEPT = {
    ("weights_of_few_bits", "rank(x) == 2"): TensorType("int4", (64, 8, 8)),
    ("weights_of_few_bits", "prod(shape(x)) >= 4096"): TensorType("int4", (64, 63)),
    (
        "weights_of_few_bits",
        'contains(["int4", "uint4", "int2", "uint2", "int8", "uint8"], dtype(x))',
    ): TensorType("int16", (64, 64)),
    ("weights_of_bytes", 'contains(["int8", "uint8"], dtype(x))'): TensorType("int16", (64, 64)),
    ("weights_of_bytes", "prod(shape(x)) > 0"): TensorType("int8", (0, 4)),
    ("biases_of_words", "rank(x) == 1"): TensorType("int32", (4, 4)),
    ("biases_of_words", 'dtype(x) == "int32"'): TensorType("int16", (64,)),
    ("biases_of_words", "prod(shape(x)) > 0"): TensorType("int32", (0,)),
}


def is_kept(base: RuleBase, weights: TensorType) -> bool:
    types = (weights, TensorType("float32", ()), None)
    constants = [
        None if one is None else Constant(type=one, uniform=lambda: None, elements=lambda: None) for one in types
    ]
    return keeping_rule(base, instantiate(base, "DequantizeLinear", types, {}, 1), constants) is not None


def test_each_guard_of_what_is_kept_has_a_near_miss(base: RuleBase) -> None:
    guards = [(rule, guard) for rule in base.keeps for guard in rule.guards]
    assert {(rule.name, print_expression(guard)) for rule, guard in guards} == NEAR_KEPT.keys()
    assert is_kept(base, PACKED)
    for rule, guard in guards:
        weights = NEAR_KEPT[rule.name, print_expression(guard)]
        lax = replace(rule, guards=tuple(other for other in rule.guards if other is not guard))
        assert not is_kept(base, weights)
        assert is_kept(replace(base, keeps=[lax]), weights)


# --- operators that are views --------------------------------------------------------------------------

NO_VIEWS: list[tuple[str, tuple[int, ...], dict[str, Value], str]] = [
    ("Pad", (2, 3), {"pads": (0, 1, 0, 0)}, "pure read"),
    ("CenterCropPad", (2, 3), {"shape": (4, 3)}, "pure read"),
    ("Resize", (1, 1, 2, 2), {"sizes": (1, 1, 4, 4), "mode": "linear"}, "pure read"),
    ("Upsample", (1, 1, 2, 2), {"scales": (1.0, 1.0, 2.0, 2.0), "mode": "linear"}, "pure read"),
]


@pytest.mark.parametrize(("operator", "shape", "attributes", "reason"), NO_VIEWS, ids=lambda value: str(value))
def test_an_operator_that_computes_is_no_view(
    operator: str, shape: tuple[int, ...], attributes: dict[str, Value], reason: str, base: RuleBase
) -> None:
    builder = Builder(base)
    graph = builder.finish(builder.add(operator, builder.input("x", shape), **attributes))
    saturation = saturate(graph, base, ["eliminate"])
    (rule,) = (rule for rule in base.eliminates if rule.operator == operator)
    assert saturation.statistics[rule.name].fired == 0
    assert [reason in miss.reason for miss in saturation.near_misses if miss.rule == rule.name] == [True]


def test_an_elimination_is_not_guarded_by_anything_but_its_operators_definition(base: RuleBase) -> None:
    """A shipped one with a guard needs an instance on which that guard fails, as the author's below."""
    assert {print_expression(guard) for rule in base.eliminates for guard in rule.guards} == {"true"}


OWN = """eliminate own in eliminate
    Transpose where rank(x) == 3, extent(x, 0) == 1, perm[0] == 0
"""
NEAR_VIEWS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "rank(x) == 3": ((1, 3), (0, 1)),
    "extent(x, 0) == 1": ((2, 3, 4), (0, 2, 1)),
    "perm[0] == 0": ((1, 3, 4), (1, 0, 2)),
}


@pytest.mark.parametrize("text", [*NEAR_VIEWS, ""])
def test_the_near_miss_of_an_authors_elimination_names_its_guard(text: str, tmp_path: Path) -> None:
    file = tmp_path / "own.smr"
    file.write_text(OWN)
    base = load_rules([file], disable=["transpose"])
    (rule,) = (rule for rule in base.eliminates if rule.name == "own")
    shape, perm = NEAR_VIEWS.get(text, ((1, 3, 4), (0, 2, 1)))
    builder = Builder(base)
    graph = builder.finish(builder.add("Transpose", builder.input("x", shape), perm=perm))
    saturation = saturate(graph, base, ["eliminate"], disable=base.rule_names() - {"own"})
    failed = [guard.span for guard in rule.guards if print_expression(guard) == text]
    assert [miss.place for miss in saturation.near_misses] == failed
    assert saturation.statistics["own"].fired == (0 if text else 1)
