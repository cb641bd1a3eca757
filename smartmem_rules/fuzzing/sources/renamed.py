"""Gives tensors of a drawn model the names that an import would give its own: those of steps, conditions and parts."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx

from smartmem_rules.fuzzing.case import Case
from smartmem_rules.fuzzing.expected.courses import bodies_of

SHARE = 0.4
"""How many of the tensors get another name."""
_OF_STEPS = (
    "step", "going", "first", "at", "in/0", "in/1", "out/0", "condition", "number", "counted", "live", "part0", "part1",
)  # fmt: skip
"""What belongs to one step of a loop or scan."""
_OF_NODES = (
    "condition", "limit", "entered/live", "entered/number", "steps", "steps/0", "steps/known", "last/0", "part/0",
    "unended/0", "never/step", "0/going", "1/live",
)  # fmt: skip
_OF_RESULTS = ("0", "1", "axis", "members", "narrow", "bits", "one", "extents", "0/then", "0/place", "0/narrow")
_OF_NONE = ("endings", "endings/0", "endings/1")


def renamed(case: Case, random: np.random.Generator) -> Case:
    """The case with other names for some tensors of its bodies, and for some that are neither inputs nor outputs."""
    model = copy.deepcopy(case.model)
    graph = model.graph
    kept = {value.name for value in (*graph.input, *graph.output)}
    taken = {*kept, *_inside(graph)}
    inner = [name for node in graph.node for body in bodies_of(node) for name in _inside(body)]
    around = [name for name in _own(graph) if name not in kept]
    names: dict[str, str] = {}
    for tensors, words in ((inner, [*_OF_STEPS, *_words(graph, "")]), (around, list(_words(graph, "")))):
        for tensor in dict.fromkeys(tensors):
            word = words[int(random.integers(len(words)))] if words else tensor
            if tensor not in names and word not in taken and random.random() < SHARE:
                names[tensor] = word
                taken.add(word)
    _rename(graph, names)
    return replace(case, model=model)


def _own(graph: onnx.GraphProto) -> Iterator[str]:
    """The tensors that a graph holds or computes, and where it is a body those that it is given."""
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (output for node in graph.node for output in node.output if output)


def _inside(graph: onnx.GraphProto) -> Iterator[str]:
    """The same of a graph and all that are in it."""
    yield from _own(graph)
    for node in graph.node:
        for body in bodies_of(node):
            yield from _inside(body)


def _words(graph: onnx.GraphProto, prefix: str) -> Iterator[str]:
    """Names that belong to nodes with bodies, to their steps and to results, outermost ones first."""
    yield from _OF_NONE
    for place, node in enumerate(graph.node):
        yield from (f"{output}/{word}" for output in node.output if output for word in _OF_RESULTS)
        for body in bodies_of(node):
            name = prefix + (node.name or f"{node.op_type}_{place}")
            yield from (f"{name}/{word}" for word in _OF_NODES)
            for step in (0, 1):
                yield from (f"{name}/{step}/{word}" for word in (*_OF_STEPS, *_own(body)))
            yield from _words(body, f"{name}/0/")


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        fields: Sequence[list[str]] = (node.input, node.output)
        for field in fields:
            field[:] = [names.get(name, name) for name in field]
        for body in bodies_of(node):
            _rename(body, names)


__all__ = ["renamed"]
