"""Definitions that read nothing but constants: their readers compute them, so that weights stay as models have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from smartmem_rules.plan.fusion.equations.program import Definition, Program
from smartmem_rules.tensor.expr import Const, Equation, Expr, Read, Reduce, substitute_reads, tensors_read, walk
from smartmem_rules.tensor.inlining import inline


def with_known_inside(program: Program) -> Program:
    """The program whose readers of constants that an operator unpacks, scales or shifts do that themselves.

    A factor of a contraction is then an expression over constants, which is packed when the plan is made. What is read
    as an index stays a tensor of its own, and so do outputs, and values that are compared with others.
    """
    known: dict[str, Definition] = {}
    changed: list[Definition] = []
    for definition in program.definitions:
        # a recurrence would compute them at every step
        inside = {} if definition.equation.scan else {t: known[t] for t in definition.reads if t in known}
        definition = _over(definition, inside, program) if inside else definition
        changed.append(definition)
        if definition.tensor not in program.compared and _is_known(definition.equation, program.packable):
            known[definition.tensor] = definition
    if not known:
        return program
    needed = {t for d in changed for t in d.reads if d.tensor not in known} | set(program.outputs)
    for definition in reversed(changed):
        if definition.tensor in needed:
            needed.update(definition.reads)
    kept = [d for d in changed if d.tensor not in known or d.tensor in needed]
    return replace(program, definitions=kept)


def _is_known(equation: Equation, constants: Mapping[str, object]) -> bool:
    """Whether every element follows from a few elements of constants."""
    if equation.scan:
        return False
    nodes = list(walk(equation.body))
    reads = [node for node in nodes if isinstance(node, Read)]
    if any(isinstance(node, Reduce) for node in nodes) or not (reads or isinstance(equation.body, Const)):
        return False
    return all(tensor in constants for tensor in tensors_read(equation.body))


def _over(definition: Definition, known: Mapping[str, Definition], program: Program) -> Definition:
    """The definition that computes what is known itself."""

    def read(node: Read) -> Expr:
        inner = known.get(node.tensor)
        return node if inner is None else inline(inner.equation, node.indices, program.names)

    equation = replace(definition.equation, body=substitute_reads(definition.equation.body, read))
    origin = dict.fromkeys(node for one in (definition, *known.values()) for node in one.origin)
    return replace(definition, equation=equation, origin=tuple(origin))
