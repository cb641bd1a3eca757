"""A graph that grows operator by operator; every operator is computed as soon as it is drawn.

What neither ONNX's checker nor ONNX Runtime nor ONNX's evaluator takes is not appended, so recipes may propose
anything; what is appended has known shapes, types and values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.fuzzing.case import Array, value_info
from smartmem_rules.fuzzing.expected.courses import Course, bodies_of, captured
from smartmem_rules.fuzzing.expected.node_runner import NodeRunner, NoReference
from smartmem_rules.fuzzing.recipes.values import SMALL, Sizes, draw_shape, draw_values

MOST_RANK = 8
OPSETS = (13, 14, 16, 17, 18, 19, 20, 21, 22, 23)
MICROSOFT = "com.microsoft"
DRAWN = "drawn"
"""The domain of a model's own functions."""


class Builder:
    """A model in the making.

    Attributes:
        tensors: the arrays of all tensors that are no constants, inputs and results, by name.
        lists: the arrays that each sequence holds.
        optionals: what each optional value holds.
        prefix: begins the names of all tensors, so that no body names one as another graph does.
        special: whether inputs hold NaN, infinities, denormals and large numbers beside ordinary ones.
    """

    def __init__(self, random: np.random.Generator, special: bool, dtypes: Sequence[str], sizes: Sizes = SMALL) -> None:
        self.random = random
        self.special = special
        self.dtypes = dtypes
        self.sizes = sizes
        self.opset = int(random.choice(OPSETS))
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.lists: dict[str, list[Array]] = {}
        self.optionals: dict[str, Array | None] = {}
        self.inputs: list[str] = []
        self.functions: list[onnx.FunctionProto] = []
        self.prefix = ""
        self.bodies = 0
        self.refused = 0

    # --- choices ---

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def subset(self, options: Sequence[Any], least: int = 0) -> list[Any]:
        chosen = [o for o in options if self.chance()]
        while len(chosen) < min(least, len(options)):
            chosen.append(self.pick([o for o in options if o not in chosen]))
        return chosen

    # --- tensors ---

    def array(self, name: str) -> Array:
        return self.tensors[name] if name in self.tensors else self.constants[name]

    def shape(self, name: str) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array(name).shape
        return shape

    def input(self, values: Array) -> str:
        name = f"{self.prefix}x{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = np.asarray(values)
        return name

    def constant(self, values: Any, dtype: Any = None) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype)
        return name

    def ints(self, values: Sequence[int] | int) -> str:
        return self.constant(values, np.int64)

    def fresh(self, shape: tuple[int, ...], dtype: str) -> Array:
        return draw_values(self.random, shape, dtype, self.special)

    def dtype(self) -> str:
        return str(self.pick(self.dtypes))

    def tensor(
        self,
        dtypes: Sequence[str] | None = None,
        low: int = 0,
        high: int = MOST_RANK,
        where: Callable[[Array], bool] | None = None,
    ) -> str:
        """A tensor of the graph that fits, a late one most likely, now and then a new input.

        Args:
            dtypes: the element types that fit; any by default.
            low, high: the ranks that fit.
        """
        fitting = [
            n for n, a in self.tensors.items()
            if (dtypes is None or a.dtype.name in dtypes) and low <= a.ndim <= high and (where is None or where(a))
        ]  # fmt: skip
        if fitting and not self.chance(0.12):
            return str(fitting[-1] if self.chance(0.4) else self.pick(fitting))
        dtype = self.pick([d for d in self.dtypes if dtypes is None or d in dtypes] or list(dtypes or ()))
        return self.input(self.fresh(draw_shape(self.random, low, high, self.sizes), dtype))

    def operand(self, shape: tuple[int, ...], dtype: str) -> str:
        """A tensor of a given shape: one of the graph, a view of one, a constant or an input."""
        same = [n for n, a in self.tensors.items() if a.shape == shape and a.dtype.name == dtype]
        if same and self.chance(0.5):
            return str(self.pick(same))
        if self.chance(0.35):
            viewed = self.viewed(shape, dtype)
            if viewed is not None:
                return viewed
        return self.weight(shape, dtype)

    def weight(self, shape: tuple[int, ...], dtype: str) -> str:
        values = self.fresh(shape, dtype)
        return self.constant(values) if self.chance(0.65) else self.input(values)

    def viewed(self, shape: tuple[int, ...], dtype: str) -> str | None:
        """A tensor of the graph cut, repeated and reshaped to a shape; None where there is none."""
        wanted = math.prod(shape)
        names = [n for n, a in self.tensors.items() if a.dtype.name == dtype and a.size]
        if not names or not wanted:
            return None
        name: str | None = str(self.pick(names))
        if self.chance() and name is not None and self.array(name).ndim > 1:
            name = self.one("Transpose", [name], perm=self.random.permutation(self.array(name).ndim).tolist())
        name = name and self.one("Reshape", [name, self.ints([-1])])
        have = self.array(name).size if name else 0
        if name and have < wanted:
            name = self.one("Tile", [name, self.ints([-(-wanted // have)])])
            have = self.array(name).size if name else 0
        if name and have > wanted:
            start = self.integer(0, have - wanted)
            name = self.one("Slice", [name, self.ints([start]), self.ints([start + wanted]), self.ints([0])])
        return self.one("Reshape", [name, self.ints(list(shape))]) if name else None

    def beside(self, name: str) -> str:
        """An operand that is broadcast against a tensor, or against which that is: a row, a column, a statistic."""
        array = self.array(name)
        shape, dtype = array.shape, array.dtype.name
        way = self.integer(0, 9)
        if way < 3 and array.ndim and array.size:
            made = self._statistic(name)
            if made is not None:
                return made
        if way == 3:
            return name
        if way == 4:
            compatible = [n for n, a in self.tensors.items() if a.dtype.name == dtype and _broadcasts(a.shape, shape)]
            if compatible:
                return str(self.pick(compatible))
        if way == 5 and array.ndim < 5:
            wider = [self.pick((1, 2, 3)) for _ in range(self.integer(1, 2))]
            shape = (*wider, *shape)
        cut = shape[self.integer(0, len(shape)) :] if self.chance() else shape
        return self.operand(tuple(1 if self.chance(0.35) else e for e in cut), dtype)

    def _statistic(self, name: str) -> str | None:
        """A reduction of a tensor, perhaps turned: its rows' result is then read along its columns."""
        rank = self.array(name).ndim
        axes = self.subset(range(rank), 1)
        operator = self.pick(("ReduceSum", "ReduceMax", "ReduceMean", "ReduceMin"))
        made = self.reduced(operator, name, axes, keep=self.chance(0.7))
        if made is not None and self.array(made).ndim and self.chance(0.3):
            ones = [a for a, e in enumerate(self.shape(made)) if e == 1]
            made = self.one("Squeeze", [made, self.ints(self.subset(ones, 1))]) if ones else made
        return made

    def reduced(self, operator: str, name: str, axes: Sequence[int], keep: bool) -> str | None:
        """A reduction, written as the opset wants it; now and then an axis is named twice, once from the end."""
        axes = list(axes)
        if axes and self.chance(0.05):
            axes.append(self.pick(axes) - self.array(name).ndim)
        if operator == "ReduceSum" or self.opset >= 18:
            return self.one(operator, [name, self.ints(axes)], keepdims=int(keep))
        return self.one(operator, [name], axes=axes, keepdims=int(keep))

    # --- operators ---

    def one(self, operator: str, operands: Sequence[str], domain: str = "", **attributes: Any) -> str | None:
        """Append an operator of one result; None where it is refused."""
        made = self.add(operator, operands, 1, domain, **attributes)
        return made[0] if made else None

    def add(
        self, operator: str, operands: Sequence[str], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Append an operator; empty where it is refused."""
        if any(o is None for o in operands):
            return []
        names = self.names(outputs)
        try:
            node = helper.make_node(operator, list(operands), names, domain=domain, **attributes)
            results = self._computed(node)
        except (NoReference, TypeError, ValueError):
            self.refused += 1
            return []
        return self._appended(node, dict(zip(names, results, strict=True)))

    def names(self, outputs: int) -> list[str]:
        """What the results of the next node are called."""
        first = f"{self.prefix}t{len(self.nodes)}"
        return [f"{first}_{k}" for k in range(outputs)] if outputs > 1 else [first]

    def follow(self, node: onnx.NodeProto) -> list[str]:
        """Append a node with bodies or sequences, or a function's call; empty where a step on its way is refused."""
        functions = {(f.domain, f.name): f for f in self.functions}
        course = Course(self.imports(), functions, {**self.constants, **self.tensors}, self.constants)
        course.values.update({n: a for n, a in self.optionals.items() if a is not None})
        course.lists.absent.update(n for n, a in self.optionals.items() if a is None)
        for name, members in self.lists.items():
            course.lists.members[name] = [f"{name}/{k}" for k in range(len(members))]
            course.values.update(zip(course.lists.members[name], members, strict=True))
        names: dict[str, str] = {}
        try:
            with np.errstate(all="ignore"):
                course.walk([node], names, "")
        except NoReference:
            self.refused += 1
            return []
        if node.op_type == "Optional":
            self.optionals[node.output[0]] = course.values.get(names[node.output[0]])
            return self._appended(node, {})
        lists = {n: course.lists.members[names[n]] for n in node.output if names.get(n) in course.lists.members}
        tensors = {n: course.array(names.get(n, n)) for n in node.output if n not in lists}
        if lists and any(
            sum(course.array(m).size for m in members) > self.sizes.elements for members in lists.values()
        ):
            self.refused += 1
            return []
        self.lists.update({n: [course.array(m) for m in members] for n, members in lists.items()})
        return self._appended(node, tensors)

    def _appended(self, node: onnx.NodeProto, results: Mapping[str, Array]) -> list[str]:
        if any(r.size > self.sizes.elements or r.ndim > MOST_RANK or r.dtype.kind in "OSU" for r in results.values()):
            self.refused += 1
            return []
        self.nodes.append(node)
        self.tensors.update(results)
        return list(node.output)

    def _computed(self, node: onnx.NodeProto) -> list[Array]:
        if node.domain == "":
            self._check_types(node)
        operands = [self.array(n) if n else None for n in node.input]
        with np.errstate(all="ignore"):
            return NodeRunner(node, self.imports(), self.constants).native(operands)

    def _check_types(self, node: onnx.NodeProto) -> None:
        """Raises NoReference where the element types are none of the operator's."""
        described = [value_info(n, self.array(n)) for n in dict.fromkeys(node.input) if n]
        integers = [
            numpy_helper.from_array(self.constants[n], n)
            for n in dict.fromkeys(node.input)
            if n in self.constants and self.constants[n].dtype == np.int64
        ]
        graph = helper.make_graph(
            [node], "one", described, [onnx.ValueInfoProto(name=n) for n in node.output], integers
        )
        try:
            onnx.defs.get_schema(node.op_type, self.opset, node.domain)
            model = helper.make_model(graph, opset_imports=self.imports(), ir_version=10)
            onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        except Exception as refusal:  # the checker raises several kinds of errors
            raise NoReference(str(refusal)) from refusal

    def imports(self) -> list[onnx.OperatorSetIdProto]:
        """The operator sets that nodes may be of."""
        return [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]

    # --- the end ---

    def model(self) -> tuple[onnx.ModelProto, dict[str, Array]]:
        """The model with what nothing reads as outputs and some other tensors, and its inputs."""
        made = self.results()
        read = {n for node in self.nodes for n in _reads(node)}
        outputs = [n for n in made if n not in read]
        if len(outputs) > 6:
            outputs = outputs[-6:]
        outputs += self.subset([n for n in made if n not in outputs][-3:])
        used = {n for node in self.nodes for n in _reads(node)}
        if self.inputs and self.chance(0.05):
            outputs.append(str(self.pick(self.inputs)))  # an input that is an output as well
        nodes = self.needed(outputs)
        used = {n for node in nodes for n in _reads(node)} | set(outputs)
        constants = {n: a for n, a in self.constants.items() if n in used}
        as_nodes = {n for n in constants if self.chance(0.1)}
        written = [constant_node(n, constants[n]) for n in as_nodes]
        graph = helper.make_graph(
            [*written, *nodes],
            "drawn",
            [value_info(n, self.tensors[n]) for n in self.inputs if n in used],
            [value_info(n, self.tensors[n]) for n in dict.fromkeys(outputs)],
            [numpy_helper.from_array(a, n) for n, a in constants.items() if n not in as_nodes],
        )
        opsets = [o for o in self.imports() if o.domain in ("", *_domains(nodes, self.functions))]
        opsets += [helper.make_opsetid(DRAWN, 1)] if self.functions else []
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=10, producer_name="smartmem fuzz", functions=self.functions
        )
        return model, {n: self.tensors[n] for n in self.inputs if n in used}

    def results(self) -> list[str]:
        """The tensors that nodes give."""
        return [n for node in self.nodes for n in node.output if n in self.tensors]

    def needed(self, outputs: Sequence[str]) -> list[onnx.NodeProto]:
        needed, nodes = set(outputs), []
        for node in reversed(self.nodes):
            if needed & set(node.output):
                nodes.append(node)
                needed |= set(_reads(node))
        return nodes[::-1]


def _reads(node: onnx.NodeProto) -> list[str]:
    return [*node.input, *captured(node)]


def _domains(nodes: Iterable[onnx.NodeProto], functions: Sequence[onnx.FunctionProto]) -> set[str]:
    """The domains of nodes, of those in their bodies, and of those in functions."""
    inner = [g for node in nodes for g in bodies_of(node)]
    found = {node.domain for node in nodes}
    found.update(*(_domains(g.node, ()) for g in inner), *(_domains(f.node, ()) for f in functions))
    return found


def constant_node(name: str, value: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], other[::-1], strict=False))


FLOAT_TYPES = ("float32", "float16", "float64")
SIGNED_TYPES = ("int8", "int16", "int32", "int64")
UNSIGNED_TYPES = ("uint8", "uint16", "uint32", "uint64")
NUMBER_TYPES = (*FLOAT_TYPES, *SIGNED_TYPES, *UNSIGNED_TYPES)
ONNX_TYPES = {
    "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8, "int16": TensorProto.INT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8, "uint16": TensorProto.UINT16, "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64, "bool": TensorProto.BOOL,
}  # fmt: skip
