"""A right factor of bytes that is no constant, packed as the register block reads it (`codegen/byte_block.cl`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from smartmem_rules.emit.c.kernel import Emission
from smartmem_rules.plan.kernel.byte_factors import PER_WORD, byte_factor
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Const, Expr, substitute_variables
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import surely_below
from smartmem_rules.tensor.substitution import ravel, substitute


def pack_bytes(
    emission: Emission, factor: Expr, n: Var, k: tuple[Var, ...], columns: int, batch: Mapping[Var, Index]
) -> bool:
    """Write the arrays `columns`, `column_sums` and `column_zeros`; whether there are zeros other than 0.

    Args:
        columns: of a tile.
        batch: values of the batch variables.
    """
    found = byte_factor(substitute_variables(factor, batch), k)
    assert found is not None
    expressions, writer, lanes = emission.expressions, emission.writer, columns
    depth, tiles = math.prod(v.extent for v in k), -(-n.extent // columns)
    words = -(-depth // PER_WORD)
    writer.line(f"char columns[{tiles * words * columns * PER_WORD}];")
    writer.line(f"int column_sums[{tiles * columns}], column_zeros[{tiles * columns}];")
    if depth % PER_WORD or n.extent % columns:
        writer.line(f"for (int i = 0; i < {tiles * words * columns * PER_WORD}; ++i) columns[i] = 0;")
    shift = "" if found.signed else " - 128"

    def element(body: Expr, at: Mapping[Var, Index], lane: Var | None) -> None:
        value = expressions.value(substitute_variables(body, at), lane)
        step = ravel(tuple(at.get(v, variable(v)) for v in k), tuple(v.extent for v in k))
        column = at.get(n, variable(n))
        word = add(scale(step // PER_WORD, columns), column % columns)
        place = add(scale(add(scale(column // columns, words * columns), word), PER_WORD), step % PER_WORD)
        if lane is None:
            writer.line(f"columns[{expressions.index(place)}] = (char)({value.text}{shift});")
            return
        vector = expressions.temporary()
        text = expressions.spread(value, body.dtype, lane.extent)
        writer.line(f"const char{lane.extent} {vector} = convert_char{lane.extent}({text}{shift});")
        for i in range(lane.extent):
            at_lane = expressions.index(substitute(place, {lane: Index(i)}))
            writer.line(f"columns[{at_lane}] = {vector}.s{i:x};")

    along_k = (
        not surely_below(k[-1].extent, emission.width)
        and not expressions.is_contiguous(found.elements, n)
        and expressions.is_contiguous(found.elements, k[-1])
    )
    emission.over((n, *k) if along_k else (*k, n), found.elements, element)
    writer.line(f"for (int n = 0; n < {tiles * columns}; ++n) column_sums[n] = column_zeros[n] = 0;")
    zeros = not (found.signed and found.zero == Const(0, "int32"))
    if zeros:
        name = expressions.name(n)
        with expressions.scope(f"for (int {name} = 0; {name} < {n.extent}; ++{name})"):
            zero = expressions.value(found.zero).text
            writer.line(f"column_zeros[{name}] = ({zero}){shift};")
    with expressions.scope(f"for (int tile = 0; tile < {tiles}; ++tile)"):
        writer.line(f"const char* bytes = columns + tile * {words * columns * PER_WORD};")
        writer.line(f"int* sums = column_sums + tile * {columns};")
        head = f"for (int i = 0; i < {words * columns}; ++i) sums[i % {lanes}]"
        added = " + ".join(f"bytes[4 * i + {place}]" for place in range(PER_WORD))
        writer.line(f"{head} += {added};")
    if zeros:
        writer.line(f"for (int n = 0; n < {tiles * columns}; ++n) column_sums[n] -= {depth} * column_zeros[n];")
    return zeros
