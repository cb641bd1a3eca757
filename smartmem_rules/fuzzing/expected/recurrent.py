"""RNN, GRU and LSTM in double precision, by ONNX's definitions.

ONNX Runtime has no kernels for doubles, and ONNX's evaluator knows no lengths and only one direction at a time. What a
recurrence makes of roundings can be told only where each step is more precise than the implementation that is judged.

With noise each step rounds as an implementation may: sums by the sizes of what is added, gates by their own size.
Products that cancel leave an argument of a gate whose error has nothing to do with its size, nor with the operands'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.conditions import attribute

States = tuple[Array, ...]
"""The hidden state and, of an LSTM, the cell's: each [batch, hidden]."""
Step = Callable[[Array, States], States]
Rounding = Callable[[Array, Array], Array]
"""A number as it may be rounded, by its value and by the size of what is rounded on the way to it."""
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}
_FORMS = frozenset({"direction", "hidden_size", "layout", "clip", "linear_before_reset", "input_forget"})
"""Attributes that are known here; with others (activations of one's own) the node is computed elsewhere."""
_ULPS = 4.0
_UNUSED = frozenset({"activation_alpha", "activation_beta"})
"""Parameters of activations; those that a node without names of activations has, sigmoid and tanh, take none."""


def unrounded(value: Array, _: Array) -> Array:
    """A number as it is."""
    return value


def rounding_by(noise: np.random.Generator, unit: float) -> Rounding:
    """Numbers with drawn roundings of a few units, each unit relative to the size of what is rounded."""
    return lambda value, size: value + noise.uniform(-_ULPS, _ULPS, value.shape) * unit * size


def recurrent(
    node: onnx.NodeProto, operands: Sequence[Array | None], rounded: Rounding = unrounded
) -> list[Array] | None:
    """The results that the node names, in double precision; None where it has attributes that are not known here."""
    named = {a.name for a in node.attribute}
    if not (named if "activations" in named else named - _UNUSED) <= _FORMS:
        return None
    all_operands = [*operands, *[None] * (8 - len(operands))]
    x, weights, recurrence, bias, lengths, hidden, cell, peepholes = all_operands[:8]
    assert x is not None and weights is not None and recurrence is not None  # noqa: PT018
    of_integers = node.op_type == "DynamicQuantizeLSTM"
    if of_integers:
        x, weights, recurrence = _snapped(x), _scaled(weights, *operands[8:10]), _scaled(recurrence, *operands[10:12])
    batch_first = bool(attribute(node, "layout", 0))
    if batch_first:
        x, hidden, cell = (None if o is None else np.swapaxes(o, 0, 1) for o in (x, hidden, cell))
        assert x is not None
    (steps, batch, _), (directions, _, size) = x.shape, recurrence.shape
    if lengths is None:
        lengths = np.full(batch, steps)
    given = (hidden, cell) if _GATES[node.op_type] == 4 else (hidden,)
    all_states, ends = np.zeros((steps, directions, batch, size)), []
    for place in range(directions):
        biases, holes = (None if o is None else o[place] for o in (bias, peepholes))
        step = _STEPS[node.op_type](node, size, weights[place], recurrence[place], biases, holes, rounded)
        if of_integers:
            step = _of_snapped(step)
        start = tuple(np.zeros((batch, size)) if o is None else o[place] for o in given)
        backwards = place == 1 or attribute(node, "direction") == b"reverse"
        ends.append(_run(step, x, lengths, start, backwards, all_states[:, place]))
    results = [all_states, *(np.stack(states) for states in zip(*ends, strict=True))]
    if batch_first:
        results = [results[0].transpose(2, 0, 1, 3), *(np.swapaxes(one, 0, 1) for one in results[1:])]
    return [one for one, name in zip(results, node.output, strict=False) if name]


def _run(step: Step, x: Array, lengths: Array, start: States, backwards: bool, into: Array) -> States:
    """Take all steps of one direction; what lies behind a sequence's length stays zero, and its state as it was.

    A sequence of no steps ends with zeros, whatever its first state is, as in ONNX Runtime.
    """
    states = tuple(np.where((lengths > 0)[:, None], state, 0.0) for state in start)
    for number in range(x.shape[0]):
        places = np.maximum(lengths - 1 - number, 0) if backwards else np.full(len(lengths), number)
        runs = (number < lengths)[:, None]
        rows = np.arange(len(lengths))
        made = step(x[places, rows], states)
        states = tuple(np.where(runs, new, old) for new, old in zip(made, states, strict=True))
        into[places[runs[:, 0]], rows[runs[:, 0]]] = states[0][runs[:, 0]]
    return states


def _scaled(weights: Array, scale: Array | None, zero: Array | None) -> Array:
    """Integers [directions, depth, gates] as the numbers that they stand for [directions, gates, depth]."""
    assert scale is not None and zero is not None  # noqa: PT018
    one, other = (o.reshape(len(weights), 1, -1).astype(np.float64) for o in (scale, zero))
    return np.swapaxes((weights - other) * one, 1, 2)


def _snapped(values: Array) -> Array:
    """The numbers that remain of values which are quantized by their range."""
    low, high = min(values.min(initial=0.0), 0.0), max(values.max(initial=0.0), 0.0)
    step = 1.0 if high == low else (high - low) / 255
    zero = np.rint(np.clip(-low / step, 0, 255))
    return np.asarray((np.clip(np.rint(values / step) + zero, 0, 255) - zero) * step)


def _of_snapped(step: Step) -> Step:
    """A step whose products read the quantized state; peepholes read the cell as it is."""
    return lambda x, states: step(x, (_snapped(states[0]), *states[1:]))


def _logistic(x: Array) -> Array:
    return np.asarray(np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))))


def _sums(node: onnx.NodeProto, size: int, bias: Array | None) -> tuple[list[Array], list[Array], Callable[[Any], Any]]:
    """The biases of each gate beside the input and beside the state, and what bounds a gate's argument."""
    gates = _GATES[node.op_type]
    both = np.zeros(2 * gates * size) if bias is None else bias
    of_input, of_state = np.split(both, 2)
    limit = attribute(node, "clip", np.inf)
    assert isinstance(limit, float)
    bounded = (lambda v: np.clip(v, -limit, limit)) if limit >= 0 else lambda v: v
    return np.split(of_input, gates), np.split(of_state, gates), bounded


class _Gates:
    """The arguments of gates: sums of products with the input and with the state, and biases."""

    def __init__(
        self, node: onnx.NodeProto, size: int, w: Array, r: Array, bias: Array | None, rounded: Rounding
    ) -> None:
        number = _GATES[node.op_type]
        self.of_input, self.of_state, self.bounded = _sums(node, size, bias)
        self._ws, self._rs, self._rounded = np.split(w, number), np.split(r, number), rounded

    def input(self, place: int, x: Array) -> Array:
        return self._product(x, self._ws[place]) + self.of_input[place]

    def state(self, place: int, h: Array) -> Array:
        return self._product(h, self._rs[place]) + self.of_state[place]

    def _product(self, x: Array, w: Array) -> Array:
        return self._rounded(x @ w.T, np.abs(x) @ np.abs(w).T)

    def logistic(self, argument: Array) -> Array:
        return self._own(_logistic(self.bounded(argument)))

    def tanh(self, argument: Array) -> Array:
        return self._own(np.tanh(self.bounded(argument)))

    def sum(self, one: Array, other: Array) -> Array:
        return self._rounded(one + other, np.abs(one) + np.abs(other))

    def _own(self, value: Array) -> Array:
        return self._rounded(value, np.abs(value))


def _rnn(
    node: onnx.NodeProto, size: int, w: Array, r: Array, bias: Array | None, _: Array | None, rounded: Rounding
) -> Step:
    gates = _Gates(node, size, w, r, bias, rounded)
    return lambda x, states: (gates.tanh(gates.input(0, x) + gates.state(0, states[0])),)


def _gru(
    node: onnx.NodeProto, size: int, w: Array, r: Array, bias: Array | None, _: Array | None, rounded: Rounding
) -> Step:
    gates = _Gates(node, size, w, r, bias, rounded)
    outside = bool(attribute(node, "linear_before_reset", 0))

    def step(x: Array, states: States) -> States:
        (h,) = states
        update, reset = (gates.logistic(gates.input(place, x) + gates.state(place, h)) for place in (0, 1))
        past = reset * gates.state(2, h) if outside else gates.state(2, reset * h)
        return (gates.sum((1 - update) * gates.tanh(gates.input(2, x) + past), update * h),)

    return step


def _lstm(
    node: onnx.NodeProto, size: int, w: Array, r: Array, bias: Array | None, peepholes: Array | None, rounded: Rounding
) -> Step:
    gates = _Gates(node, size, w, r, bias, rounded)
    pi, po, pf = np.split(np.zeros(3 * size) if peepholes is None else peepholes, 3)
    coupled = bool(attribute(node, "input_forget", 0))

    def step(x: Array, states: States) -> States:
        h, c = states
        i, o, f, g = (gates.input(place, x) + gates.state(place, h) for place in range(4))
        entering = gates.logistic(gates.sum(i, pi * c))
        kept = 1 - entering if coupled else gates.logistic(gates.sum(f, pf * c))
        cell = gates.sum(kept * c, entering * gates.tanh(g))
        return gates.logistic(gates.sum(o, po * cell)) * rounded(np.tanh(cell), np.abs(np.tanh(cell))), cell

    return step


_STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm, "DynamicQuantizeLSTM": _lstm}
