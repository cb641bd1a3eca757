"""What a worker does for one request."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_rules.fuzzing.case import Case, load_case
from smartmem_rules.fuzzing.judge import judge
from smartmem_rules.fuzzing.modes import draw_mode


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Judge the case of a request: `{"file": PATH}`, with `"seed"` for a drawn mode, or `{"source": NAME, "seed": N}`.

    With `"save": FOLDER` the case is written there and not judged.
    """
    case = case_of(request)
    operators = sorted({node.op_type for node in case.model.graph.node})
    if "save" in request:
        case.save(Path(request["save"]))
        return {"verdict": {"kind": "right"}}
    verdict = judge(case)
    return {"verdict": asdict(verdict), "operators": operators, "mode": str(case.mode), "name": case.name}


def case_of(request: dict[str, Any]) -> Case:
    """The case that a request names."""
    if "file" in request:
        case = load_case(Path(request["file"]))
        return replace(case, mode=draw_mode(np.random.default_rng(request["seed"]))) if "seed" in request else case
    from smartmem_rules.fuzzing.sources import SOURCES  # start-up time

    return SOURCES[request["source"]](int(request["seed"]))
