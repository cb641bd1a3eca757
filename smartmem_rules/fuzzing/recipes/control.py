"""Recipes for control flow: choices, loops, scans and a model's own functions, whose bodies are drawn as models are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.fuzzing.case import Array, value_info
from smartmem_rules.fuzzing.recipes.builder import DRAWN, Builder, constant_node
from smartmem_rules.limits import MOST_VALUES

Grow = Callable[[Builder], None]
"""Draws one more step."""
MOST_STEPS = 4
MOST_UNBOUND = 8
"""Steps of loops that only their data end."""
MOST_DEPTH = 2
MOST_ELEMENTS = 400
"""States and what is scanned are small: every step computes with them again."""


class Body(Builder):
    """A body in the making, whose steps take tensors of the graph around it, too.

    Args:
        given: the body's own inputs, with their values at the first step.
    """

    def __init__(self, around: Builder, given: Mapping[str, Array], takes: bool = True) -> None:
        super().__init__(around.random, around.special, around.dtypes, around.sizes)
        self.around = around
        self.opset = around.opset
        self.functions = around.functions
        around.bodies += 1
        self.prefix = f"{around.prefix}b{around.bodies}_"
        self.given = dict(given)
        outer = [n for n, a in around.tensors.items() if a.size <= MOST_ELEMENTS] if takes else []
        self.tensors = {n: around.tensors[n] for n in around.subset(outer[-4:])}
        self.tensors.update(given)
        self.takes = takes

    @property
    def depth(self) -> int:
        return 1 + (self.around.depth if isinstance(self.around, Body) else 0)

    def input(self, values: Array) -> str:
        """An input of the whole model; where a body takes nothing from outside, a constant."""
        if not self.takes:
            return self.constant(values)
        name = self.around.input(values)
        self.tensors[name] = self.around.array(name)
        return name

    def grow(self, step: Grow, most: int) -> None:
        wanted = self.integer(1, most)
        for _ in range(3 * wanted):
            if len(self.nodes) >= wanted:
                return
            step(self)

    def made(self) -> list[str]:
        return [n for n in self.results() if self.array(n).size <= MOST_ELEMENTS]

    def like(self, array: Array) -> str:
        """A tensor of a given shape and type: a result, another input of the body, or something computed for it."""
        fitting = [n for n in (*self.made(), *self.given) if _alike(self.array(n), array)]
        if fitting and self.chance(0.9):
            return str(self.pick(fitting[-3:]))
        return self.operand(array.shape, array.dtype.name)

    def resulting(self, names: Sequence[str]) -> list[str]:
        """The tensors as results of the body's own nodes, each named once; empty where one of them is refused."""
        results: list[str | None] = []
        for name in names:
            own = any(name in node.output for node in self.nodes)
            results.append(name if own and name not in results else self.one("Identity", [name]))
        return [n for n in results if n] if all(results) else []

    def graph(self, inputs: Sequence[str], outputs: Sequence[str]) -> onnx.GraphProto:
        """The body, with its constants as initializers or as nodes."""
        nodes, constants = self.needed(outputs), self.constants
        as_nodes = {n for n in constants if self.chance(0.3)}
        return helper.make_graph(
            [*(constant_node(n, constants[n]) for n in as_nodes), *nodes],
            self.prefix,
            [value_info(n, self.given[n]) for n in inputs],
            [value_info(n, self.array(n)) for n in outputs],
            [numpy_helper.from_array(a, n) for n, a in constants.items() if n not in as_nodes],
        )


def choice(b: Builder, grow: Grow) -> None:
    """Two branches whose results have the same types, and a condition that is known at import or not."""
    condition = _condition(b)
    if condition is None or _depth(b) >= MOST_DEPTH:
        return
    then, otherwise = Body(b, {}), Body(b, {})
    then.grow(grow, 4)
    results = then.subset(then.made(), 1)[:2] or [then.like(b.array(b.tensor()))]
    otherwise.grow(grow, 4)
    others = otherwise.resulting([otherwise.like(then.array(n)) for n in results])
    results = then.resulting(results)
    if not results or not others:
        return
    branches = {"then_branch": then.graph([], results), "else_branch": otherwise.graph([], others)}
    if b.chance():
        branches = {"then_branch": branches["else_branch"], "else_branch": branches["then_branch"]}
    b.follow(helper.make_node("If", [condition], b.names(len(results)), **branches))


def _condition(b: Builder) -> str | None:
    way = b.integer(0, 4)
    if way == 0:
        return b.constant(np.asarray(b.chance()))
    if way == 1:
        size = b.one("Size", [b.tensor()])
        return size and b.one(b.pick(("Less", "Greater")), [size, b.ints(b.pick((1, 8, 64)))])
    if way == 2:
        x = b.tensor(("bool",), 0, 2, lambda a: a.size == 1)
        return x if b.array(x).size == 1 else None
    return b.input(np.asarray(b.chance()).reshape(() if way == 3 else (1,)))


def loop(b: Builder, grow: Grow) -> None:
    """States that go from step to step, with results of each step, and an end that is known or found on the way."""
    if _depth(b) >= MOST_DEPTH:
        return
    states = [b.tensor(None, 0, 4, _is_small) for _ in range(b.integer(0, 2))]
    if any(not _is_small(b.array(n)) for n in states):
        return
    steps = b.integer(0, MOST_STEPS)
    mark = f"{b.prefix}l{b.bodies}_"
    number, going = f"{mark}number", f"{mark}going"
    own = [f"{mark}state{k}" for k in range(len(states))]
    given = {number: np.asarray(0, np.int64), going: np.asarray(True)}
    body = Body(b, {**given, **{o: b.array(s) for o, s in zip(own, states, strict=True)}})
    if steps and b.chance():
        _part(body, number, steps)
    body.grow(grow, 5)
    after = [body.like(b.array(s)) for s in states]
    scans = [n for n in body.subset(body.made()[-4:]) if n not in (number, going)][:2]
    if not after and not scans:
        return
    limit, goes_on = _end(body, number, going, steps)
    if goes_on is None:
        return
    results = body.resulting([goes_on, *after, *scans])
    if not results:
        return
    graph = body.graph([number, going, *own], results)
    first = b.pick(("", b.constant(np.asarray(True)), b.input(np.asarray(True)) if b.chance(0.2) else ""))
    made = b.follow(helper.make_node("Loop", [limit, first, *states], b.names(len(after) + len(scans)), body=graph))
    if made and scans and b.chance(0.2):  # how many steps there were, and nothing else of them
        b.one(b.pick(("Shape", "Size")), [b.pick(made[len(after) :])])


def _part(body: Body, number: str, steps: int) -> None:
    """The piece of a tensor that is the step's own."""
    fitting = [(n, k) for n, a in body.tensors.items() for k, e in enumerate(a.shape) if e >= steps]
    if fitting:
        name, axis = body.pick(fitting)
        body.one("Gather", [name, number], axis=axis)


def _end(body: Body, number: str, going: str, steps: int) -> tuple[str, str | None]:
    """The number of steps as the loop gets it, and what a step says about the next one."""
    b = body.around
    most = _steps_of_data(b, steps) if b.chance(0.2) else None
    most = most or b.constant(np.asarray(steps, np.int64).reshape(b.pick(((), (1,)))))
    way = b.integer(0, 5)
    if way == 0:
        return most, going
    if way == 1:
        return most, body.constant(np.asarray(b.chance(0.8)))
    if way == 2:  # a condition that counts
        return b.pick((most, "")), body.one("Less", [number, body.ints(b.integer(0, MOST_STEPS))])
    if way == 3:  # inputs say where to end
        flags = b.input(b.random.random(max(1, steps)) < 0.75)
        body.tensors[flags] = b.array(flags)
        return most, body.one("Gather", [flags, number])
    if way == 4:  # so do these, and nothing says how many steps there are at most
        answers = np.append(b.random.random(b.integer(0, MOST_UNBOUND)) < 0.8, False)
        flags = b.input(answers)
        body.tensors[flags] = b.array(flags)
        return b.pick(("", b.constant(np.asarray(1 << 40)))), body.one("Gather", [flags, number])
    counters = [n for n in body.given if body.array(n).dtype.name in ("int32", "int64") and n != number]
    if not counters:
        return most, going
    counter = body.one("Reshape", [body.pick(counters), body.ints([-1])])
    total = counter and body.reduced("ReduceSum", counter, [0], keep=False)
    return most, total and body.one("Less", [total, body.constant(20, body.array(total).dtype)])


def _steps_of_data(b: Builder, steps: int) -> str | None:
    """A number of steps that is computed from more numbers than may decide a plan."""
    return b.reduced("ReduceMax", b.input(b.random.integers(0, steps + 1, MOST_VALUES + 1)), [0], keep=False)


def scan(b: Builder, grow: Grow) -> None:
    """A body along an axis of one or two tensors, forwards or backwards."""
    if _depth(b) >= MOST_DEPTH:
        return
    x = b.tensor(None, 1, 4, lambda a: 0 < a.size <= MOST_ELEMENTS and min(a.shape) <= MOST_STEPS)
    axes = [k for k, e in enumerate(b.shape(x)) if 0 < e <= MOST_STEPS]
    if not axes:
        return
    sources = [(x, int(b.pick(axes)))]
    steps = b.shape(x)[sources[0][1]]
    others = [(n, k) for n, a in b.tensors.items() if _is_small(a) for k, e in enumerate(a.shape) if e == steps]
    if others and b.chance(0.4):
        sources.append(b.pick(others))
    states = [b.tensor(None, 0, 3, _is_small) for _ in range(b.integer(0, 2))]
    if any(not _is_small(b.array(n)) for n in states):
        return
    mark = f"{b.prefix}s{b.bodies}_"
    own = [f"{mark}state{k}" for k in range(len(states))]
    parts = [f"{mark}part{k}" for k in range(len(sources))]
    backward = [b.integer(0, 1) for _ in sources]
    given = {o: b.array(s) for o, s in zip(own, states, strict=True)}
    given |= {
        p: np.take(b.array(s), steps - 1 if back else 0, axis)
        for p, (s, axis), back in zip(parts, sources, backward, strict=True)
    }
    body = Body(b, given)
    body.grow(grow, 5)
    after = [body.like(b.array(s)) for s in states]
    scans = body.subset(body.made()[-4:], 1)[:2] or [parts[0]]
    results = body.resulting([*after, *scans])
    if not results:
        return
    attributes: dict[str, Any] = {
        "scan_input_axes": [axis - b.array(s).ndim if b.chance(0.2) else axis for s, axis in sources],
        "scan_input_directions": backward,
        "scan_output_axes": [b.integer(0, body.array(n).ndim) for n in results[len(after) :]],
        "scan_output_directions": [b.integer(0, 1) for _ in scans],
    }
    chosen = {name: value for name, value in attributes.items() if b.chance(0.8) or any(value)}
    graph = body.graph([*own, *parts], results)
    operands = [*states, *(s for s, _ in sources)]
    names = b.names(len(results))
    b.follow(helper.make_node("Scan", operands, names, body=graph, num_scan_inputs=len(sources), **chosen))


def function(b: Builder, grow: Grow) -> None:
    """A function of the model's own, called with other tensors than it was drawn with, where some have their types."""
    if isinstance(b, Body):
        return
    operands = [b.tensor(None, 0, 4) for _ in range(b.integer(1, 2))]
    mark = f"f{len(b.functions)}_"
    formal = [f"{mark}in{k}" for k in range(len(operands))]
    body = Body(b, {f: b.array(o) for f, o in zip(formal, operands, strict=True)}, takes=False)
    body.grow(grow, 5)
    results = body.resulting(body.subset(body.made()[-3:], 1)[:2] or [formal[0]])
    if not results:
        return
    nodes = [*(constant_node(n, a) for n, a in body.constants.items()), *body.needed(results)]
    given = _referring(b, nodes)
    made = helper.make_function(
        DRAWN, f"Drawn{len(b.functions)}", formal, results, nodes, b.imports(), attributes=list(given)
    )
    b.functions.append(made)
    for _ in range(b.integer(1, 2)):
        called = [_another(b, o) for o in operands]
        b.follow(helper.make_node(made.name, called, b.names(len(results)), domain=DRAWN, **given))


def _referring(b: Builder, nodes: Sequence[onnx.NodeProto]) -> dict[str, Any]:
    """Attributes of a function's nodes that become the function's own; their values for the calls."""
    given: dict[str, Any] = {}
    kinds = (onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT, onnx.AttributeProto.INTS)
    for node in nodes:
        for one in node.attribute:
            if one.type in kinds and b.chance(0.3):
                name = f"own{len(given)}"
                given[name] = helper.get_attribute_value(one)
                one.CopyFrom(onnx.AttributeProto(name=one.name, type=one.type, ref_attr_name=name))
    return given


def _another(b: Builder, name: str) -> str:
    alike = [n for n, a in b.tensors.items() if _alike(a, b.array(name))]
    return str(b.pick([name, *alike]))


def _depth(b: Builder) -> int:
    return b.depth if isinstance(b, Body) else 0


def _is_small(array: Array) -> bool:
    return math.prod(array.shape) <= MOST_ELEMENTS


def _alike(one: Array, other: Array) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype)
