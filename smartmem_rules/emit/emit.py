"""Launches to OpenCL C, one function for each form of kernel."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.emit.c.program import Target
from smartmem_rules.emit.composed import emit_composed
from smartmem_rules.emit.contraction.group import emit_group
from smartmem_rules.emit.contraction.panel import emit_panel
from smartmem_rules.emit.contraction.rows import emit_rows
from smartmem_rules.emit.contraction.tile import emit_tile
from smartmem_rules.emit.contraction.winograd import emit_winograd
from smartmem_rules.emit.rowwise.pointwise import emit_pointwise
from smartmem_rules.emit.rowwise.reduction import emit_reduction
from smartmem_rules.emit.rowwise.scan import emit_scan
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Stored

FORMS = {"pointwise": emit_pointwise, "reduction": emit_reduction, "scan": emit_scan}
CONTRACTIONS = {
    "panel": emit_panel,
    "rows": emit_rows,
    "winograd": emit_winograd,
    "tile": emit_tile,
    "group": emit_group,
}


def emit(launch: Launch, target: Target, tensors: Mapping[str, Stored]) -> Source:
    """The OpenCL C text of a launch, and how to enqueue it."""
    if not isinstance(launch, Single):
        return emit_composed(launch, target, tensors, emit)
    kernel = launch.kernel
    if kernel.form == "contraction":
        return CONTRACTIONS[kernel.template](launch, target, tensors)
    return FORMS[kernel.form](launch, target, tensors)
