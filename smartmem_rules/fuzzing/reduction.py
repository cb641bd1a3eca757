"""Makes a failing case small: fewer outputs, fewer nodes, smaller extents, simpler attributes, values and modes.

Every step is kept where the smaller case still fails in the same way.  A tensor of the model can become an input with
the value that it has, so that all that comes before it goes away.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.fuzzing.case import Array, Case, Mode, value_info
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.fuzzing.expected.outputs import Reference

Fails = Callable[[Case], bool]
MOST_TRIES = 150


class Reducer:
    """Reduces one case.

    Args:
        fails: whether a case still fails as the first one did.
        tries: how many cases may be tried.
    """

    def __init__(self, fails: Fails, tries: int = MOST_TRIES) -> None:
        self.fails = fails
        self.tries = tries

    def reduce(self, case: Case) -> Case:
        """The smallest case that was found."""
        previous = None
        while previous != _size(case) and self.tries > 0:
            previous = _size(case)
            for smaller in (_modes, _outputs, _cut_inputs, _nodes, _values, _attributes, _extents):
                case = self._repeat(case, smaller)
        return case

    def _repeat(self, case: Case, smaller: Callable[[Case], Iterator[Case]]) -> Case:
        found = True
        while found and self.tries > 0:
            found = False
            for candidate in smaller(case):
                if self.tries <= 0:
                    break
                self.tries -= 1
                if self.fails(candidate):
                    case, found = candidate, True
                    break
        return case


def _size(case: Case) -> tuple[int, ...]:
    graph = case.model.graph
    elements = sum(a.size for a in case.feeds.values()) + sum(math.prod(t.dims) for t in graph.initializer)
    attributes = sum(len(n.attribute) for n in graph.node)
    return len(graph.node), len(graph.output), elements, attributes, len(str(case.mode))


def rebuilt(
    case: Case,
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    values: Mapping[str, Array],
    more_feeds: Mapping[str, Array] | None = None,
) -> Case | None:
    """The case with other nodes and outputs; what they need from the rest becomes inputs. None where it is no model.

    Args:
        values: the arrays of all tensors, for their types.
    """
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed & set(node.output):
            kept.append(node)
            needed |= {n for n in node.input if n}
    kept.reverse()
    made = {n for node in kept for n in node.output}
    constants = [t for t in case.model.graph.initializer if t.name in needed and t.name not in (more_feeds or {})]
    known = made | {t.name for t in constants}
    feeds = {n: np.asarray(values[n]) for n in needed if n not in known and n in values}
    if any(n not in values for n in needed) or not kept:
        return None
    # inputs keep their order
    order = {i.name: k for k, i in enumerate(case.model.graph.input)}
    feeds = dict(sorted(feeds.items(), key=lambda item: order.get(item[0], len(order))))
    described = {i.name: i for i in case.model.graph.input} if case.mode.dims else {}
    graph = helper.make_graph(
        kept,
        "reduced",
        [described.get(n) or value_info(n, a) for n, a in feeds.items()],
        [value_info(n, values[n]) for n in outputs],
        constants,
    )
    model = helper.make_model(graph, opset_imports=case.model.opset_import, ir_version=case.model.ir_version)
    return Case(case.name, model, feeds, case.mode)


def all_values(case: Case) -> dict[str, Array]:
    """The arrays of all tensors of a case; empty where no reference computes it."""
    try:
        reference = Reference(case.model, case.feeds)
    except NoReference:
        return {}
    return {n: a for n, a in reference.natives.items() if n and a is not None}


def _modes(case: Case) -> Iterator[Case]:
    mode = case.mode
    for changed in (
        replace(mode, debug=False), replace(mode, sizes=0), replace(mode, units=""), replace(mode, cores=0),
        replace(mode, weights=0),
        replace(mode, device="auto"), replace(mode, dtype="float32"),
        replace(mode, memory="auto"), replace(mode, memory="buffer"), replace(mode, level="none"),
        replace(mode, level="eliminate"), replace(mode, level="smartmem"),
    ):  # fmt: skip
        if _rank(changed) < _rank(mode):
            yield replace(case, mode=changed)


def _rank(mode: Mode) -> tuple[int, ...]:
    levels = ("smartmem", "none", "dnnfusion", "eliminate", "layout")
    return (
        int(mode.debug), int(mode.sizes > 0), int(mode.units != ""), int(mode.cores > 0), int(mode.device != "auto"),
        int(mode.weights > 0), int(mode.dtype != "float32"),
        ("auto", "buffer", "image").index(mode.memory), levels.index(mode.level),
    )  # fmt: skip


def _outputs(case: Case) -> Iterator[Case]:
    values = all_values(case)
    names = [o.name for o in case.model.graph.output]
    if len(names) < 2 or not values:
        return
    nodes = list(case.model.graph.node)
    for some in [[n] for n in names] + [[o for o in names if o != n] for n in names]:
        made = rebuilt(case, nodes, some, values)
        if made is not None:
            yield made


def _cut_inputs(case: Case) -> Iterator[Case]:
    """Without the first half, or any one of the nodes: their results become inputs."""
    values = all_values(case)
    nodes = list(case.model.graph.node)
    outputs = [o.name for o in case.model.graph.output]
    if not values or len(nodes) < 2:
        return
    cuts = [nodes[place:] for place in (len(nodes) // 2, len(nodes) // 4) if place]
    cuts += [[m for m in nodes if m is not n] for n in nodes]
    for rest in cuts:
        left = [o for o in outputs if any(o in n.output for n in rest)]
        made = rebuilt(case, rest, left, values) if left else None
        if made is not None:
            yield made


def _nodes(case: Case) -> Iterator[Case]:
    """With an earlier tensor in the place of a later one of the same type, or as the output."""
    values = all_values(case)
    nodes = list(case.model.graph.node)
    if not values or len(nodes) < 2:
        return
    outputs = [o.name for o in case.model.graph.output]
    for node in reversed(nodes):
        for name in node.output:
            for operand in node.input:
                if operand and name and _alike(values.get(operand), values.get(name)):
                    rest = [_renamed(n, name, operand) for n in nodes if n is not node]
                    renamed = [operand if o == name else o for o in outputs]
                    if len(set(renamed)) == len(renamed) and any(set(renamed) & set(n.output) for n in rest):
                        renamed = [o for o in renamed if any(o in n.output for n in rest)]
                        made = rebuilt(case, rest, renamed, values)
                        if made is not None:
                            yield made
    operands = list(dict.fromkeys(n for n in nodes[-1].input if any(n in m.output for m in nodes)))
    made = rebuilt(case, nodes, operands, values) if operands else None
    if made is not None:
        yield made


def _alike(one: Array | None, other: Array | None) -> bool:
    return one is not None and other is not None and (one.shape, one.dtype) == (other.shape, other.dtype)


def _renamed(node: onnx.NodeProto, old: str, new: str) -> onnx.NodeProto:
    changed = copy.deepcopy(node)
    for k, name in enumerate(changed.input):
        if name == old:
            changed.input[k] = new
    return changed


def _values(case: Case) -> Iterator[Case]:
    """With simple numbers in the inputs, and constants that become inputs."""
    for name, array in case.feeds.items():
        if array.dtype.kind == "f" and array.size:
            plain = (np.arange(array.size) % 7 + 1).reshape(array.shape).astype(array.dtype)
            if not np.array_equal(plain, array):
                yield replace(case, feeds={**case.feeds, name: plain})
                # only what is not a usual number changes
                mild = np.where(np.isfinite(array) & (np.abs(array) < 100), array, 1).astype(array.dtype)
                if not np.array_equal(mild, array, equal_nan=True):
                    yield replace(case, feeds={**case.feeds, name: mild})


def _attributes(case: Case) -> Iterator[Case]:
    for place, node in enumerate(case.model.graph.node):
        for attribute in node.attribute:
            changed = copy.deepcopy(case.model)
            target = changed.graph.node[place]
            for k, one in enumerate(target.attribute):
                if one.name == attribute.name:
                    del target.attribute[k]
                    break
            values = _recomputed(changed, case)
            if values:
                yield values


def _extents(case: Case) -> Iterator[Case]:
    """With one extent of the inputs and constants smaller, wherever it stands."""
    if case.mode.dims:
        return
    extents = {e for a in case.feeds.values() for e in a.shape}
    extents |= {e for t in case.model.graph.initializer for e in t.dims}
    for extent in sorted(extents, reverse=True):
        for smaller in dict.fromkeys((1, 2, extent // 2, extent - 1)):
            if 0 < smaller < extent:
                made = _with_extent(case, extent, smaller)
                if made is not None:
                    yield made


def _with_extent(case: Case, old: int, new: int) -> Case | None:
    def cut(array: Array) -> Array:
        return np.array(array[tuple(slice(0, new if e == old else e) for e in array.shape)], order="C")

    feeds = {n: cut(a) for n, a in case.feeds.items()}
    model = copy.deepcopy(case.model)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        changed = cut(array)
        if array.dtype == np.int64 and array.ndim == 1:  # a shape: its numbers are extents
            changed = np.where(array == old, new, array)
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(changed), tensor.name))
    return _recomputed(model, replace(case, feeds=feeds))


def _recomputed(model: onnx.ModelProto, case: Case) -> Case | None:
    """The case with a changed model, whose types follow from its inputs; None where it is no model."""
    model = copy.deepcopy(model)
    for described in model.graph.input:
        described.CopyFrom(value_info(described.name, case.feeds[described.name]))
    values = all_values(replace(case, model=model))
    if not values or any(a.size == 0 for n, a in values.items() if n not in case.feeds):
        return None
    for described in model.graph.output:
        described.CopyFrom(value_info(described.name, values[described.name]))
    return replace(case, model=model)
