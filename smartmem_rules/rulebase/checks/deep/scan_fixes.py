"""Messages about scans that read steps which are not there: before the first, of their own or of a scan below them."""

from __future__ import annotations

from dataclasses import replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.printer import print_expression


def step_not_there(operator: s.Operator, read: s.Subscript, reason: str, example: str) -> Diagnostic | None:
    """The message about a read of a scan that another equation, or its own, cannot make; None where that is another.

    Args:
        operator: as its author wrote it.
        reason: what is read that is not there.
        example: operands at which it is.
    """
    reader = next((one for one in operator.equations if any(node is read for node in nodes(one))), None)
    if reader is None or not reader.scan or not isinstance(read.base, s.Name):
        return None
    note = f"found at {operator.name}{example}: {reason}"
    if reader.tensor == read.base.id:
        return _own_step(reader, read, note)
    return _step_of_another(operator, reader, read, note) if "step" in reason else None


def _own_step(scan: s.EquationSyntax, read: s.Subscript, note: str) -> Diagnostic:
    """A scan that reads a step of its own that is not there: a later one, or one before the first."""
    tensor, step, index = scan.tensor, scan.indices[0].name, read.items[0]
    if isinstance(index, s.Binary) and index.operator == "-":
        message = f"the scan `{tensor}` reads a step before its first: nothing is computed before {step} = 0"
        fix = _first_steps(scan, read, step, index.right)
    else:
        message = f"the scan `{tensor}` reads a step that is not computed by then"
        fix = replacement(f"a scan reads earlier steps: write `{step} - 1`", index.span, f"{step} - 1")
    return Diagnostic(Code.READS_OUTSIDE, "error", message, read.span, note=note, fix=fix)


def _first_steps(scan: s.EquationSyntax, read: s.Subscript, step: str, back: s.Expression) -> Fix:
    """The condition under which there is a step so far back, in place of the one around the read."""
    if not isinstance(back, s.Number) or back.value == 1:
        return advice(f"say what the first step is: `if {step} == 0 then FIRST else ...`")
    wanted = f"{step} < {back.value}"
    for node in nodes(scan.body):
        if not isinstance(node, s.Conditional) or all(inner is not read for inner in nodes(node.otherwise)):
            continue
        if isinstance(node.condition, s.Binary) and node.condition.left == s.Name(s.NOWHERE, step):
            shown = print_expression(node.condition)
            last = f"{step} = {int(back.value) - 1}"
            said = f"`{shown}` lets {last} through, and no step stands {back.value} before it: ask `{wanted}`"
            return replacement(said, node.condition.span, wanted)
    return advice(f"say what the first {back.value} steps are: `if {wanted} then FIRST else ...`")


def _step_of_another(operator: s.Operator, reader: s.EquationSyntax, read: s.Subscript, note: str) -> Diagnostic | None:
    """A scan that reads the step which it computes of a scan that stands below it."""
    assert isinstance(read.base, s.Name)
    name, step = read.base.id, reader.indices[0].name
    below = next((one for one in operator.equations if one.tensor == name and one.scan), None)
    if below is None or below.span[1:3] <= reader.span[1:3] or read.items[0] != s.Name(s.NOWHERE, step):
        return None
    earlier = print_expression(replace(read, items=(_before(read.items[0]), *read.items[1:])))
    message = f"`{reader.tensor}` reads the step of `{name}` that it computes itself, and `{name}` is computed below it"
    said = f"put the scan `{name}` above `{reader.tensor}`, or read the step before, `{earlier}`"
    own = s.Name(s.NOWHERE, below.indices[0].name)
    for node in nodes(below.body):
        if isinstance(node, s.Subscript) and node.base == s.Name(s.NOWHERE, reader.tensor) and node.items[0] == own:
            said = f"each of the two reads this step of the other: read the step before, `{earlier}`"
    return Diagnostic(Code.READS_OUTSIDE, "error", message, read.span, note=note, fix=advice(said))


def _before(index: s.Expression) -> s.Expression:
    return s.Binary(index.span, "-", index, s.Number(index.span, 1))
