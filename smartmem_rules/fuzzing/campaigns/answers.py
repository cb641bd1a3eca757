"""What a worker does for one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import helper

from smartmem_rules.fuzzing.case import Case, load_case
from smartmem_rules.fuzzing.judge import RIGHT, judge
from smartmem_rules.fuzzing.recipes.values import draw_values
from smartmem_rules.fuzzing.requests import Answered, Request
from smartmem_rules.fuzzing.sources.modes import draw_mode

OPEN_EXTENT = 2


def answer(request: Request, made: Callable[[], None]) -> Answered:
    """Judge the case of a request: `{"file": PATH}`, with `"seed"` for a drawn mode, or `{"source": NAME, "seed": N}`.

    With `"save": FOLDER` the case is written there and not judged; with `"hunt"` equal forms of it are given to other
    systems.

    Args:
        made: called as soon as there is a case.
    """
    case = case_of(request)
    made()
    operators = sorted({node.op_type for node in case.model.graph.node})
    if "save" in request:
        case.save(Path(request["save"]))
        return {"verdict": {"kind": RIGHT}}
    if "hunt" in request:
        from smartmem_rules.fuzzing.equal.hunting import answer_hunt  # start-up time

        return answer_hunt(case, request)
    verdict = judge(case)
    return {"verdict": verdict.data(), "operators": operators, "mode": str(case.mode), "name": case.name}


def with_inputs(case: Case) -> Case:
    """The case with drawn values of the inputs that have none; dimensions that are open count as 2."""
    random, feeds = np.random.default_rng(0), dict(case.feeds)
    constants = {tensor.name for tensor in case.model.graph.initializer}
    for value in case.model.graph.input:
        if value.name not in feeds and value.name not in constants:
            tensor = value.type.tensor_type
            shape = tuple(d.dim_value or OPEN_EXTENT for d in tensor.shape.dim)
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
            feeds[value.name] = draw_values(random, shape, dtype, special=False)
    return replace(case, feeds=feeds)


def case_of(request: Request) -> Case:
    """The case that a request names."""
    if "file" in request:
        case = with_inputs(load_case(Path(request["file"])))
        return replace(case, mode=draw_mode(np.random.default_rng(request["seed"]))) if "seed" in request else case
    from smartmem_rules.fuzzing.sources.by_name import SOURCES  # start-up time

    return SOURCES[request["source"]](int(request["seed"]))
