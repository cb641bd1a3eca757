"""Makes inputs of a model's small constants: their values decide shapes, axes and steps when the model runs."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from onnx import numpy_helper

from smartmem_rules.fuzzing.case import Array, Case, value_info

SHARE = 0.6
"""How many of the constants become inputs."""
MOST_ELEMENTS = 64
_KINDS = "iub"


def decided(case: Case, random: np.random.Generator) -> Case:
    """The case with inputs in place of some of its integer constants, and of bounds and values that stand alone."""
    model = copy.deepcopy(case.model)
    feeds: dict[str, Array] = dict(case.feeds)
    listed = {value.name for value in model.graph.output}
    for tensor in list(model.graph.initializer):
        array = np.asarray(numpy_helper.to_array(tensor))
        small = array.size == 1 or (array.dtype.kind in _KINDS and array.size <= MOST_ELEMENTS)
        if small and tensor.name not in listed and random.random() < SHARE:
            model.graph.initializer.remove(tensor)
            model.graph.input.append(value_info(tensor.name, array))
            feeds[tensor.name] = array
    # sizes of kernels are drawn for a plan that is known before the run
    return replace(case, model=model, feeds=feeds, mode=replace(case.mode, sizes=0))
