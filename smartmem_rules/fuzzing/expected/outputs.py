"""What a model's outputs are, and how far a right implementation may be from them, element by element.

The model is computed node by node in double precision.  Then it is computed again several times with every rounding
that an implementation may do replaced by a random one: results of nodes that round, and operands of nodes that sum,
are multiplied by 1 + noise, a few units in the last place of the element type in which they are held.  How far these
runs spread is the model's own conditioning; an element that they move is not known better than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.bounds import Expected, agree, double, expected_of
from smartmem_rules.fuzzing.expected.courses import straightened
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner, NoReference, is_float, wide
from smartmem_rules.fuzzing.expected.precisions import PRECISIONS, Precision, held_in, is_restored
from smartmem_rules.fuzzing.expected.recurrent import Rounding, rounding_by, unrounded
from smartmem_rules.fuzzing.expected.roundings import (
    CANCELLING,
    EXACT,
    INTERPOLATING,
    LINEAR,
    MIXING,
    RECURRENT,
    SHIFTING,
    STASHED,
    SUMMING,
    WITHIN_ONE,
    WITHOUT_SIGN,
)
from smartmem_rules.fuzzing.expected.sums import (
    cancelling_addends,
    exceeding,
    of_either_sign,
    of_infinities,
    perhaps_whole,
    rounded_on_the_way,
    same_sums,
)
from smartmem_rules.fuzzing.expected.unfused import unfused

RUNS = 4
MORE_RUNS = 96
_ULPS = 4.0
_STORED = 0.6
"""How many tensors of narrow types are stored, and not kept in single precision where they are read."""
_FUSED = 0.4
"""Runs with overflow in which what is given, and what is only moved or chosen, is stored in no narrow type."""
_VANISHING = 0.5
"""How many results that are smaller than the rounding of one of their steps are exactly zero."""


class Reference:
    """A model that can be computed, precisely and with noise.

    Args:
        storage: the element type in which an implementation holds single and half precision.
    """

    def __init__(self, model: onnx.ModelProto, feeds: Mapping[str, Array], storage: str = "float32") -> None:
        """Raises:
        NoReference: there is no reference for a node.
        """
        self.model = model = unfused(straightened(model, feeds))
        self.storage = storage
        self.outputs = [o.name for o in model.graph.output]
        self.natives: dict[str, Array | None] = {"": None}
        self.constants = {t.name: np.asarray(numpy_helper.to_array(t)) for t in model.graph.initializer}
        self.natives.update(self.constants)
        self.natives.update(feeds)
        self.starts = dict(self.natives)
        self.runners: list[NodeRunner] = []
        self.precise_ways: list[bool] = []
        self.overflowing: list[bool] = []
        """Nodes whose sums overflow on their way at the node's own element type, and not in double precision."""
        self.storing: np.random.Generator | None = None
        """Draws the tensors of narrow types that are rounded exactly, as they are where they are stored."""
        self.moved_exceed = False
        """Whether what is given or moved becomes infinite where it exceeds the element type of storage."""
        self.single: set[str] = set()
        """Tensors in double precision that the reference computes in single precision only."""
        self.gated: set[str] = set()
        """Results of recurrent operators: each step adds numbers as large as 1, and rounds them so."""
        self.sums: set[str] = set()
        """Results of linear nodes: rules may multiply what follows such a sum first."""
        self.on_the_way: dict[str, Array] = {}
        """By how many units of rounding the additions of a linear node may move its result."""
        with np.errstate(all="ignore"):
            for node in model.graph.node:
                self._prepare(node)

    def _prepare(self, node: onnx.NodeProto) -> None:
        runner = NodeRunner(node, self.model.opset_import, self.constants)
        operands = [self.natives[name] for name in node.input]
        results = runner.native(operands)
        precise = any(map(is_float, [*operands, *results]))
        overflowing = False
        if precise:
            try:
                wider = runner.precise(operands)
                excused = self._overflowing(runner, operands, results, wider)
                overflowing = any(bool(mask.any()) for mask in excused)
                precise = runner.is_own or agree(results, wider, excused)
                if not precise and node.op_type in LINEAR and is_float(results[0]):
                    unit = PRECISIONS[results[0].dtype.name].unit
                    precise = same_sums(runner, [wide(o) for o in operands], double(results[0]), wider[0], unit)
                if node.op_type in LINEAR and is_float(results[0]):
                    self.on_the_way[node.output[0]] = rounded_on_the_way(
                        node, runner.precise, [wide(o) for o in operands]
                    )
            except NoReference:
                if node.op_type in LINEAR and not all(np.isfinite(double(r)).all() for r in results):
                    raise  # without doubles nobody knows whether a sum overflows only on its way
                precise = False
                if node.op_type in LINEAR and is_float(results[0]):
                    self.on_the_way[node.output[0]] = rounded_on_the_way(node, runner.native, operands)
        self.runners.append(runner)
        self.overflowing.append(overflowing and precise)
        self.precise_ways.append(precise)
        self.natives.update(zip([n for n in node.output if n], results, strict=True))
        if runner.evaluated or not precise or node.op_type in STASHED:
            self.single.update(node.output)
        if node.op_type in RECURRENT:
            self.gated.update(node.output)
        if node.op_type in LINEAR:
            self.sums.update(node.output)
        if node.op_type == "Constant":
            self.constants[node.output[0]] = results[0]

    def _overflowing(
        self, runner: NodeRunner, operands: Sequence[Array | None], results: Sequence[Array], wider: Sequence[Array]
    ) -> list[Array]:
        """Elements of each result that overflow on the way of a sum at the node's own type, and not in doubles."""
        if runner.node.op_type not in SUMMING:
            return [np.zeros(one.shape, bool) for one in results]
        masks = [
            (~np.isfinite(double(one)) & np.isfinite(other)) | (np.isnan(double(one)) & np.isinf(other))
            if is_float(one) and one.shape == other.shape
            else np.zeros(one.shape, bool)
            for one, other in zip(results, wider, strict=True)
        ]
        if runner.node.op_type in LINEAR and masks[0].shape == wider[0].shape and is_float(results[0]):
            masks[0] |= exceeding(runner, [wide(o) for o in operands], PRECISIONS[results[0].dtype.name].most)
        return masks

    def native_outputs(self) -> dict[str, Array]:
        """The outputs with every node at its own element types."""
        return {name: _array(self.natives[name]) for name in self.outputs}

    def precision(self, name: str) -> Precision | None:
        """How a tensor's reals are held, None for other types."""
        value = self.natives[name]
        if not is_float(value):
            return None
        assert value is not None
        own = value.dtype.name
        if own == "float64" and name in self.single:
            return PRECISIONS["float32"]
        return held_in(own, self.storage)

    def compute(self, noise: np.random.Generator | None, overflow: bool) -> dict[str, Array]:
        """The outputs in double precision.

        Args:
            noise: draws the roundings; None for none.
            overflow: whether what exceeds its element type becomes infinite, in sums on their way, too.
        """
        values: dict[str, Array | None] = {}
        self.moved_exceed = overflow and (noise is None or noise.random() > _FUSED)
        for name, start in self.starts.items():
            # what is given is stored at once where storage is narrower than the model's type
            rounds = start is not None and is_restored(start.dtype.name, self.storage)
            # whether an input is stored so, too, is the implementation's choice
            exceeds = self.moved_exceed and rounds and (noise is None or noise.random() < 0.5)
            values[name] = self._held(name, wide(start), noise if rounds else None, exceeds)
        ways = zip(self.precise_ways, self.overflowing, strict=True)
        for node, runner, (precise, overflowing) in zip(self.model.graph.node, self.runners, ways, strict=True):
            natively = overflow and overflowing and node.op_type not in LINEAR
            self._step(node, runner, precise and not natively, values, noise, overflow)
        return {name: _array(values[name]) for name in self.outputs}

    def _step(
        self,
        node: onnx.NodeProto,
        runner: NodeRunner,
        precise: bool,
        values: dict[str, Array | None],
        noise: np.random.Generator | None,
        overflow: bool,
    ) -> None:
        names = [n for n in node.output if n]
        operands = [values[name] for name in node.input]
        if not any(is_float(self.natives[n]) for n in (*node.input, *names)):
            same = all(_same(v, self.natives[n]) for v, n in zip(operands, node.input, strict=True))
            results = [_array(self.natives[n]) for n in names] if same else runner.native(operands)
        else:
            if noise is not None and (node.op_type in SUMMING or any(map(self._is_half, node.input))):
                stashed = node.op_type in STASHED
                operands = [self._held(n, v, noise, False, stashed) for n, v in zip(node.input, operands, strict=True)]
            if node.op_type == "Resize":  # its scales say the result's extents, which roundings do not change
                operands = [operands[0], *(wide(self.natives[name]) for name in node.input[1:])]
            if node.op_type == "Pow" and noise is not None:
                operands = [operands[0], perhaps_whole(operands[1], self.precision(node.input[1]), noise)]
            if precise:
                results = runner.precise(operands, self._rounding(node, noise))
                if overflow and node.op_type in LINEAR:
                    results = self._in_any_order(names, results, runner, operands, noise)
            else:
                narrow = [_narrowed(v, self.natives[n]) for v, n in zip(operands, node.input, strict=True)]
                results = [_array(wide(r)) for r in runner.native(narrow)]
        if node.op_type in WITHOUT_SIGN and noise is not None:
            results = [of_either_sign(self._summed(n, r, noise), noise) for n, r in zip(names, results, strict=True)]
        if node.op_type in SHIFTING and noise is not None:
            size = cancelling_addends(node, operands, results[0])
            results = [self._shifted(names[0], results[0], size, noise), *results[1:]]
        if node.op_type in CANCELLING and noise is not None:
            extent = max(_array(operands[0]).shape, default=1) if node.op_type in INTERPOLATING else 1
            apart = node.op_type not in MIXING
            results = [
                self._cancelled(n, r, operands, noise, extent, apart) for n, r in zip(names, results, strict=True)
            ]
            if node.op_type in WITHIN_ONE:
                results = [_within_one(r, noise) for r in results]
        for name, result in zip(names, results, strict=True):
            rounds = noise if node.op_type not in EXACT or self._narrow(name) else None
            values[name] = self._held(name, result, rounds, self.moved_exceed if node.op_type in EXACT else overflow)
            if node.op_type in RECURRENT and noise is not None:  # a saturated gate is exactly 1, or not
                values[name] = perhaps_whole(values[name], self.precision(name), noise)

    def _rounding(self, node: onnx.NodeProto, noise: np.random.Generator | None) -> Rounding:
        """How what a recurrent operator computes on its way is rounded: in single precision, or in doubles."""
        name = next((name for name in node.output if name), "")
        precision = self.precision(name) if node.op_type in RECURRENT else None
        if noise is None or precision is None:
            return unrounded
        return rounding_by(noise, min(precision.unit, PRECISIONS["float32"].unit))

    def _in_any_order(
        self,
        names: Sequence[str],
        results: Sequence[Array],
        runner: NodeRunner,
        operands: Sequence[Array | None],
        noise: np.random.Generator | None,
    ) -> list[Array]:
        """Sums, infinite or NaN where finite addends in some order exceed the element type on their way.

        Behind another linear node infinite addends give either as well: of both nodes' products with constants rules
        make one, in which infinities meet others (docs/numerics.md).
        """
        precision = self.precision(names[0])
        if precision is None:
            return list(results)
        opposed = np.where(np.isinf(results[0]), np.nan, np.copysign(np.inf, results[0]))
        if noise is not None:
            opposed = noise.choice([np.inf, -np.inf, np.nan], results[0].shape)
        beyond = exceeding(runner, operands, precision.most) & ~np.isnan(results[0])
        if not self.sums.isdisjoint(runner.node.input):
            beyond |= of_infinities(runner, operands, results[0])
        return [np.where(beyond, opposed, results[0]), *results[1:]]

    def _summed(self, name: str, result: Array, noise: np.random.Generator) -> Array:
        """A sum with the roundings of its additions, which are done in single precision at least."""
        units, precision = self.on_the_way.get(name), self.precision(name)
        if units is None or precision is None or units.shape != result.shape:
            return result
        step = min(precision.unit, PRECISIONS["float32"].unit) * units
        moved = result + noise.uniform(-1, 1, result.shape) * step
        return _perhaps_nothing(moved, (np.abs(moved) < step) & (result != 0), noise)

    def _cancelled(
        self,
        name: str,
        result: Array,
        operands: Sequence[Array | None],
        noise: np.random.Generator,
        extent: int,
        apart: bool,
    ) -> Array:
        """A result with the roundings of intermediate numbers `extent` times as large as the operands.

        Args:
            apart: whether each element hangs on the operand's element of its place alone.
        """
        precision = self.precision(name)
        reals = [np.abs(o) for o in operands if o is not None and o.dtype == np.float64]
        if precision is None or not reals:
            return result
        reals = [np.where(np.isfinite(o), o, 0) for o in reals]
        first, *others = reals if apart and reals[0].shape == result.shape else [np.max(reals[0], initial=0.0)]
        size = first + sum(np.max(o, initial=0.0) for o in others)  # a bias moves the argument
        step = precision.unit * np.maximum(size * extent, np.abs(result))
        moved = result + noise.uniform(-2, 2, result.shape) * step
        return _perhaps_nothing(moved, np.abs(moved) < step, noise)

    def _shifted(self, name: str, result: Array, size: Array, noise: np.random.Generator) -> Array:
        """A result with the roundings of addends of a size that cancel."""
        precision = self.precision(name)
        if precision is None or size.shape != result.shape:
            return result
        return np.asarray(result + noise.uniform(-2, 2, result.shape) * precision.unit * size)

    def _is_half(self, name: str) -> bool:
        """Whether one reader of a tensor may see it rounded, and another one in single precision."""
        precision = self.precision(name)
        return precision is not None and precision.unit > PRECISIONS["float32"].unit

    def _narrow(self, name: str) -> bool:
        value = self.natives[name]
        return value is not None and is_restored(value.dtype.name, self.storage)

    def _held(
        self,
        name: str,
        value: Array | None,
        noise: np.random.Generator | None,
        overflow: bool,
        stashed: bool = False,
    ) -> Array | None:
        """A value as an implementation may hold it; `stashed`: in single precision at most."""
        precision = self.precision(name)
        if stashed and precision == PRECISIONS["float64"]:
            precision = PRECISIONS["float32"]
        if value is None or precision is None or value.dtype != np.float64:
            return value
        if self.storing is not None and precision.held is not None and self.storing.random() < _STORED:
            value = value.astype(precision.held).astype(np.float64)
        if noise is not None:
            drawn = noise.uniform(-_ULPS, _ULPS, value.shape)
            small = noise.uniform(-1, 1, value.shape) * precision.least * (np.abs(value) < 2 * precision.least)
            moved = np.where(value == 0, value, value * (1 + drawn * precision.unit) + small)
            flushed = np.abs(value) < min(precision.least, PRECISIONS["float32"].least)
            value = _perhaps_nothing(moved, flushed & (value != 0), noise)
        if overflow:
            value = np.where(np.abs(value) > precision.most, np.copysign(np.inf, value), value)
        return value

    def expected(self, seed: int = 0, runs: int = RUNS) -> dict[str, Expected]:
        """The outputs and their bounds."""
        with np.errstate(all="ignore"):
            generator = np.random.default_rng(seed)
            base = self.compute(None, overflow=False)
            others = [self.compute(None, overflow=True)]
            others += [self._stored(np.random.default_rng([seed, k])) for k in range(runs // RUNS)]
            others += [self.compute(generator, overflow=bool(k % 2)) for k in range(runs)]
            return {name: self._with_bounds(name, base[name], [o[name] for o in others]) for name in self.outputs}

    def _stored(self, chosen: np.random.Generator) -> dict[str, Array]:
        """The outputs with some tensors rounded to their element types: no noise makes an exponent an integer."""
        self.storing = chosen
        try:
            return self.compute(None, overflow=True)
        finally:
            self.storing = None

    def _with_bounds(self, name: str, base: Array, others: Sequence[Array]) -> Expected:
        value, gated = _array(self.natives[name]), name in self.gated
        return expected_of(value, base, others, self.precision(name), gated)


def _perhaps_nothing(values: Array, small: Array, noise: np.random.Generator) -> Array:
    """Values of which some small ones are exactly zero: what a zero divides is infinite, and not only large.

    1 + erf(x) and a sum that cancels are multiples of a step or nothing at all, and a denormal exponential may be 0.
    """
    return np.where(small & (noise.random(values.shape) < _VANISHING), 0.0, values)


def _within_one(values: Array, noise: np.random.Generator) -> Array:
    """Results of a function into [-1, 1] that noise has moved; what it has moved out of there may be any of them."""
    return np.where(np.abs(values) > 1, noise.uniform(-1, 1, values.shape), values)


def _array(value: Array | None) -> Array:
    assert value is not None
    return value


def _same(one: Array | None, other: Array | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def _narrowed(value: Array | None, like: Array | None) -> Array | None:
    if value is None or like is None or value.dtype == like.dtype:
        return value
    return value.astype(like.dtype)
