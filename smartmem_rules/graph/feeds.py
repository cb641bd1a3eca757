"""Checks the arrays that a graph is run with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smartmem_rules.graph.model import Graph, GraphError
from smartmem_rules.graph.weights import array_type
from smartmem_rules.language.diagnostics import did_you_mean
from smartmem_rules.tensor.primitives import Array


def check_inputs(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The feeds as arrays, in the order of the graph's inputs.

    Raises:
        GraphError: names are missing or unknown, shapes or dtypes differ from the graph's; all of it in one message.
    """
    problems = []
    for name in feeds:
        if name not in graph.inputs:
            near = did_you_mean(name, graph.inputs)
            problems.append(f"there is no input {name!r}; {near or 'the inputs are ' + ', '.join(graph.inputs)}")
    arrays: dict[str, Array] = {}
    for name in graph.inputs:
        wanted = graph.types[name]
        if name not in feeds:
            problems.append(f"the input {name!r} ({wanted}) is missing")
            continue
        array = arrays[name] = np.asarray(feeds[name])
        given = array_type(array)
        if given.shape != wanted.shape:
            problems.append(f"the input {name!r} has shape {list(given.shape)}, not {list(wanted.shape)}")
        if given.dtype != wanted.dtype:
            problems.append(
                f"the input {name!r} is {given.dtype}, not {wanted.dtype}; convert it with .astype({wanted.dtype!r})"
            )
    if problems:
        raise GraphError("\n".join(problems))
    return arrays
