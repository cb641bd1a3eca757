"""What one read of a definition depends on: the way to it through its equation, names, lets and requirements.

A proof about one read may leave out whatever the read does not depend on: it then speaks of more instances than the
definition has. docs/verification.md says how proofs of reads use this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.expressions import conjuncts
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.instantiate import names_in, size_of
from smartmem_rules.verification.instances.roles import nodes

MOST_SINGLE = 4
"""Requirements about the operands of a read that are also held one by one, where there are no more of them."""


@dataclass(frozen=True, kw_only=True)
class ReadSlice:
    """One read without `else`, and what is looked at to prove it.

    Attributes:
        read: the outermost read of which it is a part.
        trail: the identities of the nodes that lead to it.
        names: those that its indices and the conditions before it use.
        lets: those of these that are lets, with the lets that those use.
        requires: the parts of requirements that are held.
        has_conditions: whether what holds where it is read is looked at.
        is_opaque: whether lets that choose, or ask a function, are any numbers or lists of numbers.
    """

    equation: ast.EquationSyntax
    target: ast.Subscript
    read: ast.Subscript
    trail: frozenset[int]
    names: frozenset[str]
    lets: frozenset[str]
    requires: tuple[ast.Expression, ...] = ()
    is_opaque: bool = False
    has_conditions: bool = True


def slices_of(
    operator: ast.Operator, equation: ast.EquationSyntax, target: ast.Subscript, tensors: frozenset[str]
) -> Iterator[ReadSlice]:
    """The slices of one read, those with the fewest requirements first."""
    trail = _trail(equation.body, target)
    assert trail is not None
    read = next(node for node in trail if isinstance(node, ast.Subscript) and reads_tensor(node, tensors))
    # what stands in the place of a missing element is computed where the element is missing, not to read it
    while read.default is not None and any(node is read.default for node in trail):
        later = trail[[node is read for node in trail].index(True) + 1 :]
        read = next(node for node in later if isinstance(node, ast.Subscript) and reads_tensor(node, tensors))
    for has_conditions in (False, True) if _has_conditions(trail) else (True,):
        yield from _with_requirements(operator, equation, target, read, trail, has_conditions)


def _with_requirements(
    operator: ast.Operator,
    equation: ast.EquationSyntax,
    target: ast.Subscript,
    read: ast.Subscript,
    trail: list[ast.Syntax],
    has_conditions: bool,
) -> Iterator[ReadSlice]:
    direct = _direct_names(operator, equation, read, trail, has_conditions)
    asked = {name for node in nodes(read) if isinstance(node, ast.Name) for name in _signature(operator, node.id)}
    closed = with_lets(operator, direct | asked)
    parts = [part for requirement in operator.requires for part in conjuncts(requirement)]
    near = tuple(
        part for part in parts if names_in(part) & (asked | {n.id for n in nodes(read.base) if isinstance(n, ast.Name)})
    )
    about = tuple(part for part in parts if with_lets(operator, names_in(part)) & closed)
    no_more = tuple(part for part in parts if with_lets(operator, names_in(part)) - _bound_in(part) <= closed)
    found = ReadSlice(
        equation=equation,
        target=target,
        read=read,
        trail=frozenset(map(id, trail)),
        names=frozenset(direct),
        lets=frozenset(closed & {let.name for let in operator.lets}),
        has_conditions=has_conditions,
    )
    within = tuple(part for part in parts if names_in(part) <= direct | asked | _bound_in(part))
    single = [(one,) for one in near] if len(near) <= MOST_SINGLE else []
    choices = [(), *single, near, within, no_more, about, tuple(parts)] if has_conditions else [(), near]
    for requires in dict.fromkeys(choices):
        yield replace(found, requires=requires)
        yield replace(found, requires=requires, is_opaque=True)


def axes_of(equation: ast.EquationSyntax, output: ast.Output) -> list[tuple[ast.Binder, ast.Expression]] | None:
    """What each loop of an output's equation runs over; None where loops and extents do not stand side by side."""
    items = output.type.shape
    if equation.scan or output.index is not None or len(items) != len(equation.indices):
        return None
    axes = list(zip(equation.indices, items, strict=True))
    alike = all((b.kind == "loops") == isinstance(i, ast.Splat) and size_of(i) is None for b, i in axes)
    return axes if alike else None


def reads_tensor(node: ast.Subscript, tensors: frozenset[str]) -> bool:
    """Whether a subscript reads an operand or a tensor of the definition, or a member of a list of them."""
    base: ast.Expression = node
    while isinstance(base, ast.Subscript):
        base = base.base
    return isinstance(base, ast.Name) and base.id in tensors


def with_lets(operator: ast.Operator, names: set[str] | frozenset[str]) -> set[str]:
    """Names, and those that the lets among them use."""
    found = set(names)
    for let in reversed(operator.lets):
        if let.name in found:
            found |= names_in(let.value)
    return found


def _has_conditions(trail: list[ast.Syntax]) -> bool:
    """Whether a read stands under conditions, and in none of them."""
    conditions = [node.condition for node in trail if isinstance(node, ast.Conditional)]
    conditions += [node.condition for node in trail if isinstance(node, ast.Reduction) and node.condition is not None]
    return bool(conditions) and not any(one is node for one in conditions for node in trail)


def _bound_in(part: ast.Expression) -> set[str]:
    """The names that a requirement binds itself."""
    return {b.name for node in nodes(part) if isinstance(node, ast.Comprehension) for b in node.binders}


def _trail(root: ast.Syntax, target: ast.Syntax) -> list[ast.Syntax] | None:
    """The nodes from a root to a target, both included."""
    if root is target:
        return [root]
    for child in _children(root):
        found = _trail(child, target)
        if found is not None:
            return [root, *found]
    return None


def _children(node: ast.Syntax) -> Iterator[ast.Syntax]:
    for name in type(node).__dataclass_fields__:
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ast.Syntax):
                yield part


def _direct_names(
    operator: ast.Operator,
    equation: ast.EquationSyntax,
    read: ast.Subscript,
    trail: list[ast.Syntax],
    has_conditions: bool,
) -> set[str]:
    """Names in the read, in the conditions and loops around it, and in the extents of its equation."""
    found = names_in((read.base, *read.items))
    for node in trail:
        match node:
            case ast.Conditional(condition=condition) if has_conditions:
                found |= names_in(condition)
            case ast.Reduction(binders=binders, condition=condition):
                found |= names_in(condition) if condition is not None and has_conditions else set()
                # a loop whose variable nothing uses is left out; one that unrolls builds its body for each member
                used = [b for b in binders if b.kind == "unrolled" or b.name in names_in(trail[-1]) or b.name in found]
                found |= set().union(*(names_in(b.bound) | {b.name} for b in used)) if used else set()
            case _:
                pass
    inner = {b.name for node in trail if isinstance(node, ast.Reduction) for b in node.binders}
    for binder in equation.indices:
        if binder.bound is not None and binder.name in found:
            found |= names_in(binder.bound)
    for output in operator.outputs:
        if output.name == equation.tensor:
            axes = axes_of(equation, output)
            items = [i for b, i in axes if b.name in found] if axes is not None else output.type.shape
            found |= set().union(*(names_in(item) for item in items))
    tensors = {node.id for node in nodes(read) if isinstance(node, ast.Name)} - inner
    for other in operator.equations:
        if other.tensor in tensors:
            found |= set().union(*(names_in(b.bound) for b in other.indices if b.bound is not None), set())
    for output in operator.outputs:
        if output.name in tensors:
            found |= set().union(*(names_in(item) for item in output.type.shape), set())
    return found


def _signature(operator: ast.Operator, tensor: str) -> Iterator[str]:
    """The names of the extents of an operand."""
    for formal in operator.inputs:
        if formal.name == tensor and formal.type is not None:
            yield tensor
            for item in formal.type.shape:
                yield from names_in(item)
