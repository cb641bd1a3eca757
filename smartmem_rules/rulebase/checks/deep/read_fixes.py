"""How to mend a read that leaves its tensor: another index, range, extent or requirement, each tried before it is told.

A read may be mended in several ways; which one its author means is told by its form. `x[N - i]` counts from the end, a
sum over `k < K + 1` runs too far, `x[i + k]` is a window, for which the result is too long. What is proposed was put
into the definition, which then reads inside at all operands that were drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smartmem_rules.analysis.tries import tried
from smartmem_rules.analysis.violations import smallest_violation
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, replacement
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.rebuilding import rebuilt
from smartmem_rules.rulebase.checks.deep.read_groups import grouped
from smartmem_rules.rulebase.checks.deep.read_ways import ELEMENT, LeavingRead, Mend, strided
from smartmem_rules.rulebase.checks.scope import head
from smartmem_rules.tensor.instantiate import Definitions


def read_mended(base: Definitions, written: s.Operator, made: s.Operator, read: s.Subscript, reason: str) -> Fix | None:
    """How to mend a read; None where no way is known that was seen to help.

    Args:
        base: the definitions that this one uses.
        written: the operator as its author wrote it.
        made: the same with predicates and constants written out.
        read: the read, in `written`.
        reason: which element is read that is not there.
    """
    told = ELEMENT.search(reason)
    axis = told[2] if told is not None else None

    def helps(mend: Mend) -> bool:
        candidate = mend(made)
        trial = tried(base, candidate, 1)
        if trial.failure is not None or (not trial.probes and not ELEMENT.search(trial.reason)):
            return False
        violation = smallest_violation(base, candidate)
        if violation is None:
            return bool(trial.probes)
        if str(read.span) not in violation.message:
            return True
        again = ELEMENT.search(violation.message)
        return again is not None and len(read.items) > 1 and again[2] != axis

    aligned = _aligned(written, read)
    if aligned is not None and helps(aligned[1]):
        return replacement(f"the shapes are joined by broadcasting: write `{aligned[0]}`", aligned[2], aligned[0])
    undone = _undone(read)
    if undone is not None and helps(undone[1]):
        was, now = ("permute", "unpermute") if undone[0].startswith("un") else ("unpermute", "permute")
        said = (
            f"the axes of `{print_expression(read.base)}` are those of the result before `{was}`: write `{undone[0]}`"
        )
        return replacement(said, head(undone[2], was), now)
    for place, extent in _places(written, read, reason):
        found = LeavingRead.of(written, read, reason, place, extent)
        fix = (
            found.fix(helps)
            if found is not None
            else strided(written, read, place, extent, helps) or grouped(written, read, place, extent, helps)
        )
        if fix is not None:
            return fix
    return None


def _aligned(operator: s.Operator, read: s.Subscript) -> tuple[str, Mend, s.Span] | None:
    """A read of all indices of a result whose shape operands are broadcast to: `~i` for `*i`."""
    equation = next((one for one in operator.equations if any(node is read for node in nodes(one))), None)
    output = next((one for one in operator.outputs if equation is not None and one.name == equation.tensor), None)
    joined = output is not None and any(
        isinstance(node, s.Call) and node.function == "broadcast" for node in nodes(output.type.shape)
    )
    item = read.items[0] if read.items else None
    if not joined or not isinstance(item, s.Splat) or not isinstance(item.operand, s.Name):
        return None
    new = f"~{item.operand.id}"
    spread = s.Broadcast(item.span, item.operand)

    def change(node: s.Syntax) -> s.Syntax | None:
        return spread if node == item and node.span == item.span else None

    return new, lambda one: rebuilt(one, change), item.span


def _undone(read: s.Subscript) -> tuple[str, Mend, s.Span] | None:
    """A read of permuted indices: the other order is that of a result whose shape is permuted."""
    for item in read.items:
        match item:
            case s.Splat(operand=s.Call(function="permute" | "unpermute" as word) as call):
                new = replace(call, function="unpermute" if word == "permute" else "permute")

                def change(node: s.Syntax, old: s.Call = call, new: s.Call = new) -> s.Syntax | None:
                    return new if node == old and node.span == old.span else None

                return print_expression(new), lambda one: rebuilt(one, change), call.span
            case _:
                pass
    return None


def _places(operator: s.Operator, read: s.Subscript, reason: str) -> Iterator[tuple[int, s.Expression]]:
    """The indices of a read that may be the one that leaves its axis, each with the extent of that axis."""
    told = ELEMENT.search(reason)
    kind = next((i.type for i in operator.inputs if isinstance(read.base, s.Name) and i.name == read.base.id), None)
    if told is None or kind is None:
        return
    pairs = list(enumerate(zip(read.items, kind.shape, strict=False)))
    spread = next(
        (n for n, pair in pairs if any(isinstance(one, s.Splat | s.Broadcast | s.Slice) for one in pair)), None
    )
    if spread is None:
        yield from ((n, extent) for n, (_, extent) in pairs if n == int(told[2] or 0))
        return
    before = int(told[2] or 0) if len(read.items) > 1 else 0
    yield from ((n, extent) for n, (_, extent) in pairs[:spread] if n == before)
    if before < spread:
        return
    for back in range(1, min(len(read.items), len(kind.shape)) - spread):
        if any(isinstance(one, s.Splat | s.Broadcast | s.Slice) for one in (read.items[-back], kind.shape[-back])):
            return
        yield len(read.items) - back, kind.shape[-back]
