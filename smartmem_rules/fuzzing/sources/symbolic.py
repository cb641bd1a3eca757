"""Opens a dimension of a drawn model: one plan for a range of extents."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.fuzzing.case import Array, Case
from smartmem_rules.fuzzing.expected.courses import bodies_of
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.fuzzing.expected.outputs import Reference

MOST = 20
EMPTY = 0.3
"""The share of ranges that begin at 0."""


def opened(case: Case, random: np.random.Generator, dimension: str = "n") -> Case:
    """The case with one more open dimension, fed with another extent; the case itself where nothing can be opened.

    All first axes of one extent are opened together, or all axes of that extent of one input.
    """
    shapes = {i.name: i.type.tensor_type.shape.dim for i in case.model.graph.input}
    fixed = {name: [a for a, e in enumerate(dims) if e.dim_value] for name, dims in shapes.items()}
    candidates = [(name, axis) for name in case.feeds for axis in fixed[name]]
    if not candidates:
        return case
    name, axis = candidates[int(random.integers(len(candidates)))]
    extent = case.feeds[name].shape[axis]
    axes = {other: [axis] for other, a in case.feeds.items() if axis in fixed[other] and a.shape[axis] == extent}
    if random.random() < 0.4:
        axes = {name: [k for k in fixed[name] if case.feeds[name].shape[k] == extent]}
    empty = random.random() < EMPTY
    low, high = 0 if empty else max(1, extent // 2), min(MOST, extent * 2 + 1)
    if low >= high or not extent:
        return case
    # 0 is an extent of its own, which a draw from the range would seldom give
    actual = 0 if empty and random.random() < 0.5 else int(random.integers(low, high + 1))
    trials = [_fed(case, axes, one, dimension) for one in dict.fromkeys((low, actual, high))]
    for trial in trials:
        try:
            Reference(trial.model, trial.feeds)
        except NoReference:
            return case
    chosen = trials[1] if len(trials) > 1 and actual != low else trials[0]
    return replace(chosen, mode=replace(case.mode, dims={**case.mode.dims, dimension: (low, high)}))


def _fed(case: Case, axes: dict[str, list[int]], extent: int, dimension: str) -> Case:
    """The case at an extent, its inputs repeated or cut."""
    model = copy.deepcopy(case.model)
    feeds: dict[str, Array] = {}
    for described in model.graph.input:
        array = case.feeds[described.name]
        for axis in axes.get(described.name, ()):
            array = np.take(array, np.arange(extent) % array.shape[axis], axis)
        feeds[described.name] = np.array(array, order="C")
        shape: list[str | int | None] = [e.dim_param or e.dim_value for e in described.type.tensor_type.shape.dim]
        for axis in axes.get(described.name, ()):
            shape[axis] = dimension
        described.CopyFrom(_described(described, shape))
    for described in [*model.graph.output, *_described_by_bodies(model.graph)]:
        if described.type.HasField("tensor_type"):
            rank = len(described.type.tensor_type.shape.dim)
            described.CopyFrom(_described(described, [None] * rank))
    return replace(case, model=model, feeds=feeds)


def _described_by_bodies(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """What the bodies in a graph say of their inputs and outputs; a loop of no steps takes a result's shape from it."""
    for node in graph.node:
        for body in bodies_of(node):
            yield from (*body.input, *body.output)
            yield from _described_by_bodies(body)


def _described(old: onnx.ValueInfoProto, shape: list[str | int | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(old.name, old.type.tensor_type.elem_type, shape)
