"""Proves the reads of a definition: all together, then one by one what is left.

Together a definition has one way for each combination of ranks, attributes and extents; where there are too many, or
something that a read does not depend on cannot be followed, the read is looked at alone (`slices`).
"""

from __future__ import annotations

from typing import Any

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import Span
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.extents import SymbolicExtentError
from smartmem_rules.tensor.instantiate import Definitions
from smartmem_rules.tensor.ranges import counting
from smartmem_rules.verification.instances.roles import hints_of, nodes
from smartmem_rules.verification.operators import application_to_variables
from smartmem_rules.verification.proof.formulas import Unprovable
from smartmem_rules.verification.proof.open_cases import NoInstance
from smartmem_rules.verification.proof.open_instances import OpenInstances
from smartmem_rules.verification.proof.open_views import BOUND
from smartmem_rules.verification.proof.paths import Path, TooManyWays, ways
from smartmem_rules.verification.proof.reads.entries import acts_by_entry
from smartmem_rules.verification.proof.reads.late_scope import Undecided
from smartmem_rules.verification.proof.reads.open_elements import needs_number
from smartmem_rules.verification.proof.reads.open_reads import (
    MOST_WAYS,
    ReadOperands,
    ReadProofs,
    ReadProver,
    prove_reads,
)
from smartmem_rules.verification.proof.reads.sliced_reads import SlicedDefinition, refuse_guessed_types
from smartmem_rules.verification.proof.reads.slices import ReadSlice, slices_of
from smartmem_rules.verification.proof.reads.written_reads import only_values, rank_bound, read_nodes, tensor_names

SHARE = 4
"""A proof of all reads together ends at this part of the ways that each read may have alone."""

FIRST = 16
"""Each slice of a read is tried with this part of the ways before one is tried with all of them."""
FEWEST_NAMED = 2
"""Axes that a list names where three make too many ways: one entry acts on its own axis, beside one other."""


def prove_each_read(base: Definitions, operator: ast.Operator, z3: Any, most: int = MOST_WAYS) -> ReadProofs:
    """Which reads of a definition stay inside, of all together and then of each alone.

    Args:
        most: ways that are looked at for one read, at most.
    """
    together = prove_reads(base, operator, z3, most // SHARE)
    left = together.total - together.proved
    found = ReadProofs(together.total, set(together.reached), dict(together.left), together.ways)
    names = tensor_names(operator)
    try:
        refuse_guessed_types(operator)
    except Unprovable:
        return found
    for equation in operator.equations:
        for node in read_nodes(equation.body, names):
            if node.span not in left:
                continue
            reason = prove_read(base, operator, node, z3, most)
            if reason is None:
                found.reached.add(node.span)
                found.left.pop(node.span, None)
            else:
                found.left[node.span] = reason
    return found


def prove_read(base: Definitions, operator: ast.Operator, target: ast.Subscript, z3: Any, most: int) -> str | None:
    """None where one read of a definition stays inside, else the first reason why that is not shown."""
    equation = next(e for e in operator.equations if any(node is target for node in nodes(e.body)))
    waiting = list(slices_of(operator, equation, target, tensor_names(operator)))
    reasons: list[str] = []
    tries = [(most // FIRST, BOUND), (most, BOUND), (most, FEWEST_NAMED)]
    if acts_by_entry(operator, base.functions):
        tries.insert(0, (most, 1))  # what is shown of one entry is shown of any number of them
    for ways_of_each, named in tries:
        for part in list(waiting):
            try:
                reason = _reason_left(base, operator, part, z3, ways_of_each, named)
            except TooManyWays:
                continue
            waiting.remove(part)
            if reason is None:
                return None
            reasons.append(reason)
    return reasons[0] if reasons else f"more than {most} cases of ranks, attributes and extents"


def _reason_left(
    base: Definitions, operator: ast.Operator, part: ReadSlice, z3: Any, most: int, named: int = BOUND
) -> str | None:
    """Why a slice does not show that its read stays inside; None where it does.

    Raises:
        TooManyWays: there are more ways than `most`.
    """
    span: Span = part.target.span
    proofs = ReadProofs(frozenset([span]))
    prover = ReadProver(z3, proofs, tensor_names(operator))
    unknown = only_values(operator)
    pattern = application_to_variables(operator)
    alone = ast.Rewrite(operator.span, operator.name, "", pattern, pattern, False, (), (), None, "")
    hints = hints_of((), pattern, pattern)

    def run(path: Path) -> None:
        prover.path = path
        known = OpenInstances(base)
        known.path = path
        case = ReadOperands(
            alone, pattern, path, known, rank_bound(operator), hints, overload=operator, most_named=named
        )
        try:
            with counting(BOUND):
                SlicedDefinition(base, operator, case, case.all_outputs(), path, unknown, part).look(prover)
        except (NoInstance, Unsupported) as refusal:
            del refusal
        except (DefinitionError, SymbolicExtentError) as failure:
            if needs_number(failure) and path.is_possible:
                proofs.give_up(f"an open number is needed: {failure}")

    try:
        for _ in ways(run, z3, most):
            if span in proofs.left:
                break
    except (Unprovable, Undecided) as failure:
        return str(failure)
    if span in proofs.left:
        return proofs.left[span]
    return None if span in proofs.reached else "no case of types that are looked at reaches it"
