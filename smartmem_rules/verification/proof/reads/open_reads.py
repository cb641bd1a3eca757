"""Proves that every read of a definition stays inside its tensor, for all operands and attributes that it admits.

The ways are those of `open_views`: ranks and lists up to a bound, extents of 1 and more, numbers any integers. On each
way each read is shown to stay inside by intervals or by z3. docs/verification.md says what such a proof covers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from smartmem_rules.analysis.index_formulas import IndexFormulas, NoFormula
from smartmem_rules.language import syntax as ast
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate
from smartmem_rules.tensor.expr import ALL_DTYPES, Condition, TensorType
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.instantiate import Definitions
from smartmem_rules.tensor.ranges import counting
from smartmem_rules.verification.instances.attributes import Formal, kind_of
from smartmem_rules.verification.instances.draws import dtypes_of
from smartmem_rules.verification.instances.roles import AXES, PERMUTATION, Role, hints_of, operator_roles
from smartmem_rules.verification.operators import application_to_variables
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.open_cases import LEAST_RANK, SPLAT, NoInstance
from smartmem_rules.verification.proof.open_instances import OpenInstances
from smartmem_rules.verification.proof.open_views import BOUND, OpenOperator
from smartmem_rules.verification.proof.paths import Path, TooManyWays, ways
from smartmem_rules.verification.proof.reads.late_scope import Undecided
from smartmem_rules.verification.proof.reads.open_elements import OpenDefinition, ReadWatch, needs_number
from smartmem_rules.verification.proof.reads.split_variables import in_blocks
from smartmem_rules.verification.proof.reads.written_reads import (
    asks_dtype,
    divided_counts,
    only_values,
    rank_bound,
    reads_of,
    spans_of_reads,
    tensor_names,
)
from smartmem_rules.verification.semantics.terms import Leaf, Term

MOST_WAYS = 20_000
MOST_MEMBERS = 3
"""Operands of a list that takes any number of them."""
_RESOURCES = 1_000_000
_PREFERRED = ("float32", "int64", "uint8", "bool", "float8_e4m3fn", "int4")


@dataclass
class ReadProofs:
    """The reads without `else` of a definition, by their places in the text.

    Attributes:
        reached: those that some way looked at.
        left: those that were not shown to stay inside, with the first reason.
        ways: how many were looked at.
    """

    total: frozenset[ast.Span] = frozenset()
    reached: set[ast.Span] = field(default_factory=set)
    left: dict[ast.Span, str] = field(default_factory=dict)
    ways: int = 0

    @property
    def proved(self) -> frozenset[ast.Span]:
        """Reads that stay inside at all operands and attributes that were open."""
        return (self.total & self.reached) - self.left.keys()

    def give_up(self, reason: str) -> None:
        """No read counts as proved."""
        for span in self.total:
            self.left.setdefault(span, reason)


def prove_reads(base: Definitions, operator: ast.Operator, z3: Any, most: int = MOST_WAYS) -> ReadProofs:
    """Which reads of a definition stay inside on all ways."""
    proofs = ReadProofs(reads_of(operator))
    prover = ReadProver(z3, proofs, tensor_names(operator))
    unknown = only_values(operator)

    def run(path: Path) -> None:
        proofs.ways += 1
        prover.path = path
        try:
            _one_way(base, operator, path, prover, unknown)
        except (NoInstance, Unsupported):
            return
        except (DefinitionError, SymbolicExtentError) as failure:
            if needs_number(failure) and path.is_possible:
                proofs.give_up(f"an open number is needed: {failure}")

    try:
        for _ in ways(run, z3, most):
            pass
    except TooManyWays:
        proofs.give_up(f"more than {most} cases of ranks, attributes and extents")
    except (Unprovable, Undecided) as failure:
        proofs.give_up(str(failure))
    return proofs


def _one_way(
    base: Definitions, operator: ast.Operator, path: Path, prover: ReadProver, unknown: frozenset[str]
) -> None:
    known = OpenInstances(base)
    known.path = path
    pattern = application_to_variables(operator)
    alone = ast.Rewrite(operator.span, operator.name, "", pattern, pattern, False, (), (), None, "")
    case = ReadOperands(
        alone, pattern, path, known, rank_bound(operator), hints_of((), pattern, pattern), overload=operator
    )
    with counting(BOUND):
        OpenDefinition(base, operator, case, case.all_outputs(), path, unknown).look(prover)


@dataclass
class ReadOperands(OpenOperator):
    """Operands and attributes of one definition: every optional operand has a type, whether it is there or not."""

    shapes: dict[str, Value] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    lengths_now: set[int] | None = None
    """The lengths of the list in hand that are looked at: that of its default, one less and one more."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.overload is not None
        self.operator = self.overload
        self.roles = operator_roles(self.operator, self.instances.base.functions)

    def dtype_of(self, formal: ast.Input) -> str:
        """The element type: of those that it may have one of floats, integers and truth values, where that is asked."""
        assert formal.type is not None
        name = formal.type.dtype
        if name not in self.dtypes:
            allowed = dtypes_of(self.operator, formal)
            options = [d for d in _PREFERRED if d in allowed] or [allowed[0]]
            self.dtypes[name] = options[self.path.choose(len(options)) if asks_dtype(self.operator) else 0]
        return self.dtypes[name]

    def members_of(self, formal: ast.Input) -> int:
        """How many operands a list has."""
        if not formal.variadic:
            return 1
        if formal.name not in self.members:
            few = range(1, MOST_MEMBERS + 1)
            counts = sorted({*few, *(group * n for group in divided_counts(self.operator) for n in few)})
            self.members[formal.name] = counts[self.path.choose(len(counts))]
        return self.members[formal.name]

    def extents_of(self, name: str, formal: ast.Input) -> Value:
        """The extent or list of extents that a signature names."""
        self.shape_of(formal, 0)
        return self.shapes[f"{name}0" if formal.variadic else name]

    def shape_of(self, formal: ast.Input, member: int) -> tuple[int, ...]:
        """Open extents, one for each name of the signature."""
        assert formal.type is not None
        shape: list[int] = []
        fixed = sum(not isinstance(item, ast.Splat) for item in formal.type.shape)
        for item in formal.type.shape:
            if isinstance(item, ast.Splat) and isinstance(item.operand, ast.Name):
                name = f"{item.operand.id}{member}" if formal.variadic else item.operand.id
                if name not in self.shapes:
                    rank = self.path.choose(self._most_axes(fixed, formal) + 1)
                    self.shapes[name] = tuple(self.path.extent(f"{name}.{axis}") for axis in range(rank))
                value = self.shapes[name]
                shape.extend(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else None
            elif isinstance(item, ast.Name):
                value = self.shapes.setdefault(item.id, self.path.extent(item.id))
                assert isinstance(value, int)
                shape.append(value)
            else:
                operand = item.operand if isinstance(item, ast.Splat) else item
                found = evaluate(operand, Scope(dict(self.shapes), {}, self.instances.base.functions))
                shape.extend(v for v in (found if isinstance(found, tuple) else (found,)) if isinstance(v, int))
        return tuple(shape)

    def _most_axes(self, fixed: int, formal: ast.Input) -> int:
        return SPLAT if formal.variadic else max(LEAST_RANK, self.bound - fixed if self.bound > LEAST_RANK else 0)

    def all_outputs(self) -> int:
        """All outputs; of a list one to some."""
        listed = any(o.index is not None for o in self.operator.outputs)
        return 1 + self.path.choose(BOUND) if listed else len(self.operator.outputs)

    def attribute_of(self, formal: Formal, default: Value) -> Value:
        """An attribute or compile-time operand, None for one that is absent."""
        known: list[Leaf] = []
        self.lengths_now = {len(default) + n for n in (-1, 0, 1)} - {-1} if isinstance(default, tuple) else None
        is_of_axes = self.roles[formal.name].use in (AXES, PERMUTATION)
        if kind_of(formal) == "int":
            # an axis is one of an operand of the highest rank, whatever the ranks of operands are
            known = [Leaf("", TensorType(_PREFERRED[0], (1,) * max(LEAST_RANK, self.bound)))]
        elif is_of_axes or (self.lengths_now is None and kind_of(formal) in ("ints", "floats")):
            needed = [i for i in self.operator.inputs if i.constant is None and not i.optional]
            known = [Leaf("", TensorType(_PREFERRED[0], self.shape_of(one, 0))) for one in needed]
        lengths = {len(v) for v in self.shapes.values() if isinstance(v, tuple)}
        return self._any(formal.name, formal, self.roles[formal.name], known, lengths)

    def _any(self, name: str, formal: Formal, role: Role, operands: Sequence[Term | None], lengths: set[int]) -> Value:
        kind = kind_of(formal)
        if kind == "bool":
            return self.path.choose(2) == 1
        if kind == "string" and not role.literals:
            words = [w for w in _PREFERRED if w in ALL_DTYPES]
            return words[self.path.choose(len(words))]
        if kind in ("floats", "strings"):
            options: list[Value] = [] if _is_given(formal) else [None]
            options += self._lists(name, formal, lengths)
            return options[self.path.choose(len(options))]
        if kind == "tensor":
            raise Unprovable(f"the elements of the constant {name} decide extents or indices")
        return super()._any(name, formal, role, operands, lengths)

    def _lists(self, name: str, formal: Formal, lengths: set[int]) -> Iterator[Value]:
        if kind_of(formal) == "strings":
            raise Unprovable(f"the words {formal.name} decide extents or indices")
        made = self.path.real if kind_of(formal) == "floats" else self.path.integer
        free = set(range(self.most_named + 1))
        if self.most_named > 1:
            free |= {*lengths, *(2 * n for n in lengths)}
        for length in sorted(free if self.lengths_now is None else self.lengths_now):
            yield tuple(made(f"{name}.{place}") for place in range(length))


def _is_given(formal: Formal) -> bool:
    return formal.required if isinstance(formal, ast.Attribute) else formal.default is None and not formal.optional


class ReadProver(ReadWatch):
    """Asks z3 whether an index stays inside an axis on the way in hand."""

    def __init__(self, z3: Any, proofs: ReadProofs, names: frozenset[str]) -> None:
        self.path: Path | None = None
        self._z3 = z3
        self._proofs = proofs
        self._names = names
        self._known: dict[tuple[object, ...], bool] = {}
        self.seconds = 0.0
        self.asked = 0

    def inside(self, read: ast.Expression) -> None:
        self._proofs.reached.update(spans_of_reads(read, self._names))

    def undecided(self, read: ast.Expression, index: Index, extent: int, conditions: Sequence[Condition]) -> None:
        if not self._is_left(read) and not self._surely(index, extent, conditions):
            self._leave(
                read, f"{index} below {extent!r} is not shown where {', '.join(map(str, conditions)) or 'always'}"
            )

    def later(self, read: ast.Expression, since: Index, conditions: Sequence[Condition]) -> None:
        if not self._is_left(read) and not self._surely(since, None, conditions):
            self._leave(read, f"{since} is not shown to be 0 or more")

    def outside(self, read: ast.Expression, reason: str) -> None:
        assert self.path is not None
        if self.path.is_possible:
            self._leave(read, reason)

    def failed(self, part: ast.Expression, reason: str) -> None:
        assert self.path is not None
        if self.path.is_possible:
            self._leave(part, reason)

    def _is_left(self, read: ast.Expression) -> bool:
        return all(span in self._proofs.left for span in spans_of_reads(read, self._names))

    def _leave(self, part: ast.Expression, reason: str) -> None:
        for span in spans_of_reads(part, self._names):
            self._proofs.left.setdefault(span, reason)

    def _surely(self, index: Index, extent: int | None, conditions: Sequence[Condition]) -> bool:
        assert self.path is not None
        key = (index, extent, tuple(conditions), self.path.facts)
        if key not in self._known:
            began = time.process_time()
            split = in_blocks(index, conditions)
            asked = [(index, tuple(conditions))] + ([split] if split[0] != index else [])
            self._known[key] = any(
                self._ask(one, extent, under, by_reach) for by_reach in (True, False) for one, under in asked
            )
            self.seconds += time.process_time() - began
            self.asked += 1
        return self._known[key]

    def _ask(self, index: Index, extent: int | None, conditions: Sequence[Condition], by_reach: bool) -> bool:
        assert self.path is not None
        formulas = IndexFormulas(self._z3, by_reach)
        solver = self._z3.SimpleSolver() if by_reach else self._z3.Solver()
        solver.set("rlimit", _RESOURCES)
        if by_reach:
            solver.set("arith.nl", False)  # products are numbers of their own
        try:
            value = formulas.index(index)
            wrong = [value < 0] + ([] if extent is None else [value >= formulas.extent(extent)])
            known = self.path.formulas(formulas)
        except NoFormula:
            return False
        known += [formula for c in conditions if (formula := formulas.condition_if_any(c)) is not None]
        solver.add(self._z3.Or(*wrong), *known, *formulas.facts)
        return bool(solver.check() == self._z3.unsat)
