"""What rules of several patterns may match: tensors of the model that share one with few readers.

The tensors that such a rule rewrites are tensors of the model, so that what the rule makes is no new match of it, and
the tensor that joins the patterns has few readers: the matches grow with the model, not with its square.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from smartmem_rules.egraph.patterns import Left
from smartmem_rules.graph.model import Graph
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.roots import roots_of
from smartmem_rules.rulebase.patterns import joined_by

OF_MODEL = "of_model"
MATCHES = 4096
"""The matches that a rule of several patterns may have at one shared tensor."""


def most_readers(patterns: int) -> int:
    """How many readers the tensor may have that several patterns share: so many that `MATCHES` are not exceeded."""
    return max(patterns, max(count for count in range(1, MATCHES) if count**patterns <= MATCHES))


def shared(patterns: int) -> str:
    """The relation of the tensors that so many patterns may share."""
    return f"shared_by_{patterns}"


def joint_facts(side: ast.Pattern, left: Left) -> list[str]:
    """The facts that hold a rule of several patterns to what it may match, before those that find the patterns."""
    variables = [root.variable for root in left.roots.values()]
    if len(variables) == 1:
        return []
    names, _ = joined_by(roots_of(side))
    joints = [left.variables[name] for name in names if name in left.variables]
    joints += [members[0] for name in names if (members := left.members.get(name.removeprefix("*")))]
    facts = [f"({shared(len(variables))} {joint})" for joint in dict.fromkeys(joints)]
    facts += [f"({OF_MODEL} {variable})" for variable in variables]
    return facts + [f"(!= {one} {other})" for place, one in enumerate(variables) for other in variables[:place]]


def joint_tables(graph: Graph, sizes: Collection[int], constants: dict[str, int]) -> dict[str, Sequence[str]]:
    """The tensors of a model in the relations of `joint_facts`.

    Args:
        sizes: how many patterns the rules have.
        constants: the number of each constant; equal ones are one tensor.
    """
    readers: dict[object, int] = defaultdict(int)
    for node in graph.nodes:
        for operand in node.operands:
            if operand is not None:
                readers[constants.get(operand, operand)] += 1
    tables: dict[str, Sequence[str]] = {OF_MODEL: [name for node in graph.nodes for name in node.outputs if name]}
    names = [*graph.inputs, *graph.constants, *tables[OF_MODEL]]
    for size in sizes:
        tables[shared(size)] = [name for name in names if 1 < readers[constants.get(name, name)] <= most_readers(size)]
    return tables


class Dependence:
    """Which tensors of a model are computed from which."""

    def __init__(self, graph: Graph) -> None:
        self._readers = graph.consumers()
        self._places = {name: place for place, node in enumerate(graph.nodes) for name in node.outputs}

    def needs(self, tensor: str, other: str) -> bool:
        """Whether a tensor is computed from another one, or is that one."""
        last = self._places.get(tensor, -1)
        seen, pending = {other}, [other]
        while pending:
            name = pending.pop()
            if name == tensor:
                return True
            for node in self._readers.get(name, ()):
                for output in node.outputs:
                    if output not in seen and self._places.get(output, last + 1) <= last:
                        seen.add(output)
                        pending.append(output)
        return False
