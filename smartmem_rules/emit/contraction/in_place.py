"""Right factors that are no constants and that the few rows of a batch read where they lie.

A register tile of all rows reads each element of such a factor once, so that copying it into panels of columns first
takes longer than the products themselves: keys and values of an attention over one token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Compare, Expr, Select, reads, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import largest, surely_at_most

if TYPE_CHECKING:
    from smartmem_rules.emit.contraction.panel import Panel

Piece = tuple[int, int, Expr]
"""Where a variable begins and ends, and what an expression is there."""


def pieces_along(body: Expr, var: Var) -> list[Piece]:
    """Ranges of a variable in which the expression does not choose by it: what is joined of two tensors has two."""
    if isinstance(body, Select) and isinstance(body.condition, Compare):
        condition = body.condition
        last = condition.right.constant
        compares = condition.operator == "<" and condition.left.loop == var and condition.right.is_constant
        if compares and surely_at_most(0, last) and surely_at_most(last, var.extent):
            return [(0, last, body.then), (last, var.extent, body.otherwise)]
    return [(0, var.extent, body)]


def scores_in_place(panel: Panel, factor: Expr, n: Var, k: tuple[Var, ...], left: tuple[str, str], padded: int) -> bool:
    """Write products of all rows with those of the factor into the scratch array `inner`, if each lies in one piece.

    Args:
        left: address space and pointer to a row of the left factor.
        padded: elements of a row of the array.
    """
    found = _pieces(panel, factor, n, k, k[-1]) if len(k) == 1 else None
    lanes, expressions, writer = panel.lanes, panel.emission.expressions, panel.emission.writer
    most = panel.emission.target.device.text.in_place_vectors
    if found is None or is_symbolic(k[0].extent) or k[0].extent % lanes or k[0].extent > most * lanes:
        return False
    space, pointer = left
    rows, vectors = range(panel.m_count), range(k[0].extent // lanes)
    writer.line(f"float inner[{len(rows) * largest(padded)}];")
    for i in rows:
        writer.line(f"{space}const float* left{i} = {pointer.replace('ROW', str(i))};")
        for j in vectors:
            vector = f"*({space}const smr_float{lanes}*)(left{i} + {j * lanes})"
            writer.line(f"const float{lanes} left{i}_{j} = {vector};")
    lane, name = Var("lane", lanes), expressions.name(n)
    for first, last, body in found:
        with expressions.scope(f"for (int {name} = {first}; {name} < {last}; ++{name})"):
            places = (add(Index(j * lanes), variable(lane)) for j in vectors)
            values = [expressions.value(substitute_variables(body, {k[0]: at}), lane).text for at in places]
            for i in rows:
                writer.line(f"float{lanes} sum{i}_{lanes} = left{i}_0 * {values[0]};")
                for j in vectors[1:]:
                    writer.line(f"sum{i}_{lanes} += left{i}_{j} * {values[j]};")
                writer.line(f"inner[{i} * {padded} + {name}] = {_sum_of_lanes(writer, f'sum{i}', lanes)};")
    return True


def sums_in_place(panel: Panel, factor: Expr, n: Var, k: tuple[Var, ...]) -> str | None:
    """The sums of a register tile, as C over its rows `a0` and on; None where columns do not lie side by side."""
    columns, lanes, emission = panel.schedule.columns, panel.lanes, panel.emission
    found = _pieces(panel, factor, n, k, n) if len(k) == 1 else None
    if found is None or is_symbolic(n.extent) or n.extent % columns:
        return None
    expressions = emission.expressions
    body, own = emission.writer, Writer()
    emission.writer = expressions.writer = own
    tile, lane, step = Var("tile_in_place", n.extent // columns), Var("lane", lanes), expressions.name(k[0])
    expressions.bind_name(tile, "tile")
    vectors = range(columns // lanes)
    for first, last, piece in found:
        with expressions.scope(f"for (int {step} = {first}; {step} < {last}; ++{step})"):
            for j in vectors:
                place = add(add(scale(variable(tile), columns), Index(j * lanes)), variable(lane))
                value = expressions.value(substitute_variables(piece, {n: place}), lane)
                for i in range(panel.schedule.rows):
                    own.line(f"c{i}_{j} += a{i}[{step}] * {value.text};")
    emission.writer = expressions.writer = body
    return own.text()


def _pieces(panel: Panel, factor: Expr, n: Var, k: tuple[Var, ...], along: Var) -> list[Piece] | None:
    """The factor over ranges of its other variable; None where it is not vectors of floats in buffers along one."""
    expressions, accesses = panel.emission.expressions, panel.emission.accesses
    if panel.schedule.tail or panel.schedule.block_rows < panel.m_count:
        return None
    body = substitute_variables(factor, panel.values(None))
    for read in reads(body):
        access = accesses.get(read.tensor)
        if access is None or access.is_image or access.stored.storage != "float32":
            return None
    found = pieces_along(body, k[0] if along == n else n)
    return found if all(expressions.is_contiguous(piece, along) for _, _, piece in found) else None


def _sum_of_lanes(writer: Writer, name: str, lanes: int) -> str:
    """Halves of the vector are added until two elements are left."""
    while lanes > 2:
        whole, lanes = f"{name}_{lanes}", lanes // 2
        writer.line(f"const float{lanes} {name}_{lanes} = {whole}.lo + {whole}.hi;")
    return f"{name}_2.s0 + {name}_2.s1"
