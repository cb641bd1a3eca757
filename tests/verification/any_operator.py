"""Models of all operators of the rule base, each drawn from its signature, beside those of `tests.plan`."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.roles import operator_roles
from smartmem_rules.verification.operators import (
    OPSET,
    NoReference,
    onnx_node,
    reference_outputs,
    run_time_formals,
    single,
)
from smartmem_rules.verification.semantics.terms import Application, leaves
from tests.plan.models import Array, Model
from tests.plan.random_graphs import KINDS, Builder

DTYPES = ("float32", "int32", "int64", "bool", "uint8")
LARGEST = 30.0
GAPS = ("RNN", "GRU", "LSTM")
"""ONNX's evaluator leaves their direction and clip out; `tests/operators/test_recurrent.py` compares them."""
TRIES = 60
OTHERS = tuple(k for k in KINDS if k not in ("reduction", "layer_norm"))
"""Steps that hold in the newest opset, too."""
drawn: Counter[str] = Counter()
"""How often each operator was drawn, for `python -m tests.verification.any_operator`."""


@cache
def rule_base() -> RuleBase:
    return load_rules()


@cache
def candidates() -> list[ast.Operator]:
    """The overloads that are ONNX's own today, in a fixed order: for all others its evaluator has no values."""
    operators = rule_base().operators
    return [o for name in sorted(operators) for o in operators[name] if _is_own(o) and run_time_formals(o)]


def _is_own(overload: ast.Operator) -> bool:
    binding = overload.onnx
    return not overload.internal and (binding is None or (binding.domain == "ai.onnx" and binding.until is None))


@cache
def names() -> list[str]:
    return sorted({o.name for o in candidates()})


class WideBuilder(Builder):
    """A graph that also grows by operators drawn from their signatures."""

    def any_operator(self) -> None:
        """One operator at operands that it takes; its results go on as bounded floats."""
        for _ in range(TRIES):
            name = self.pick(names())
            overload = self.pick([o for o in candidates() if o.name == name])
            if self._drawn(overload):
                return

    def _drawn(self, overload: ast.Operator) -> bool:
        search = single(overload, Instances(rule_base()), self.integer(0, 2**30), variadic=self.integer(1, 3))
        search.probes = False
        for number, case in enumerate(search.cases(6)):
            if case is not None and isinstance(case.left, Application) and self._append(overload, case.left):
                drawn[overload.name] += 1
                return True
            if number >= 5:
                return False
        return False

    def _append(self, overload: ast.Operator, term: Application) -> bool:
        found = leaves(term)
        if (
            overload.name in GAPS
            or not _flags_are_flags(overload, term)
            or any(leaf.type.dtype not in DTYPES for leaf in found.values())
        ):
            return False
        values = {name: self._values(leaf.type.shape, leaf.type.dtype) for name, leaf in found.items()}
        operands = [values[o.name] for o in term.operands if o is not None]  # type: ignore[union-attr]
        try:
            onnx.defs.get_schema(overload.name)
            one = onnx_node(overload, operands, term.attributes, len(term.instance.outputs))
            results = reference_outputs(overload, operands, term.attributes, len(term.instance.outputs))
        except (NoReference, onnx.defs.SchemaError):
            return False
        shapes = [o.shape for o in term.instance.outputs]
        if [r.shape for r in results] != shapes or not all(_bounded(r) for r in results):
            return False  # where numpy and the standard part ways, or nothing can be compared
        names = {
            name: self.constant(v) if name in one.constants or not self.integer(0, 3) else self._operand(v)
            for name, v in one.feeds.items()
        }
        outputs = [self.name() for _ in results]
        node = onnx.NodeProto()
        node.CopyFrom(one.node)
        del node.input[:], node.output[:]
        node.input.extend(names.get(n, n) for n in one.node.input)
        node.output.extend(outputs)
        self.nodes.append(node)
        for output, result in zip(outputs, results, strict=True):
            if result.dtype != np.float32:
                output = self.add("Cast", [output], result.shape, to=TensorProto.FLOAT)
            self.add("Tanh", [output], result.shape)
        return True

    def _operand(self, values: Array) -> str:
        """A new input, or a tensor of the graph in another shape where any will do."""
        return self.input(values.shape, values)

    def _values(self, shape: tuple[int, ...], dtype: str) -> Array:
        """Values that half precision holds exactly, so that no comparison depends on how they are stored."""
        if dtype == "float32":
            return np.asarray(self.random.integers(1, 17, shape) / 8 * self.pick((1, 1, -1)), np.float32)
        if dtype == "bool":
            return np.asarray(self.random.integers(0, 2, shape), bool)
        return np.asarray(self.random.integers(0, self.pick((1, 2, 5)), shape), dtype)


def _flags_are_flags(overload: ast.Operator, term: Application) -> bool:
    """Whether integers that a definition compares with 0 or 1 only are one of these: others mean nothing."""
    roles = operator_roles(overload, rule_base().functions)
    compared = {a.name: roles[a.name].literals for a in overload.attributes if a.kind == "int"}
    flags = [name for name, literals in compared.items() if literals and literals <= {0, 1}]
    return term.instance.operator is overload and all(term.attributes.get(name, 0) in (0, 1) for name in flags)


def _bounded(values: Array) -> bool:
    if values.dtype.kind not in "fiub" or values.size == 0 or values.dtype == np.float64:
        return False
    wide = values.astype(np.float64)
    return bool(np.all(np.isfinite(wide)) and np.max(np.abs(wide)) <= LARGEST)


@st.composite
def wide_models(draw: st.DrawFn, most_steps: int = 12) -> Model:
    """Models of up to `most_steps` drawn operators and as many others, with up to four outputs."""
    steps = draw(st.integers(2, most_steps))
    builder = WideBuilder(np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    builder.input(builder.shape(1, 4))
    for _ in range(steps):
        if builder.integer(0, 2):
            builder.any_operator()
        else:
            getattr(builder, f"_{builder.pick(OTHERS)}")()
    if not builder.nodes:
        builder._unary()
    return finish(builder)


def finish(builder: Builder) -> Model:
    """The model that was built; what nothing reads is an output, too."""
    made = [name for node in builder.nodes for name in node.output if name in builder.shapes]
    read = {name for node in builder.nodes for name in node.input}
    outputs = [name for name in made if name not in read][-6:] or made[-1:]
    outputs = list(dict.fromkeys([*outputs, str(builder.pick(made))]))
    described = [helper.make_tensor_value_info(n, TensorProto.FLOAT, builder.shapes[n]) for n in outputs]
    graph = helper.make_graph(builder.nodes, "drawn", builder.inputs, described, builder.constants)
    opset = max([OPSET, *(onnx.defs.get_schema(node.op_type).since_version for node in builder.nodes)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(proto)
    return Model(proto, builder.feeds)


def never_drawn(draws: int, seed: int) -> list[str]:
    """The operators of the rule base that so many draws did not give."""
    drawn.clear()
    builder: Any = WideBuilder(np.random.default_rng(seed))
    random.seed(seed)
    builder.input((2, 3))
    for _ in range(draws):
        builder.any_operator()
    return [name for name in names() if not drawn[name]]


if __name__ == "__main__":
    missing = never_drawn(1500, 1)
    print(f"{len(names()) - len(missing)} of {len(names())} operators drawn; never: {', '.join(missing)}")
