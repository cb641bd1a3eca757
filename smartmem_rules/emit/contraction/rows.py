"""Contractions for CPUs with an epilogue reduction: finished rows are reduced while they are in cache."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.contraction.panel import Panel
from smartmem_rules.emit.rowwise.reduction import emit_row
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Single
from smartmem_rules.plan.kernel.model import INNER, Stored
from smartmem_rules.tensor.atoms import Var


def emit_rows(launch: Single, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """A contraction followed by the stages of its rows; the schedule is that of a panel contraction."""
    kernel, panel = launch.kernel, Panel(launch, target, tensors)
    emission, expressions = panel.emission, panel.emission.expressions
    batch, row = expressions.name(panel.batch), expressions.name(panel.row)
    (right,) = panel.columns()
    left = panel.left()
    panel.inner_rows(right.tiles, right.columns, panel.k_count, left, (right.space, right.pointer), right.words)
    block = panel.schedule.block_rows
    finished = Var("finished", block)
    name = expressions.name(finished)
    with expressions.scope(f"for (int {name} = 0; {name} < row_count; ++{name})"):
        emission.writer.line(f"const int {row} = first_row + {name};")
        emission.writer.line(f"const float* inner_row = inner + {name} * {right.tiles * right.columns};")
        assert kernel.contraction is not None
        expressions.internal[INNER] = emission.scratch_reader("inner_row", [kernel.contraction.n.extent], "float32")
        emit_row(emission, kernel, panel.values(panel.row))
    row_blocks = -(-panel.m_count // block)
    return emission.source(
        "contraction_rows.cl",
        row_blocks * panel.batch.extent,
        row_blocks=row_blocks,
        block_rows=block,
        m=panel.m_count,
        batch=batch,
        vector_bits=panel.vectors["vector_bits"],
    )
