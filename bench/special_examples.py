"""One node of each operator at special values, for bench/special_values.py: which nodes, which values, at which places.

A node is one of ONNX's node tests. Its floats and integers take other element types where the operator's type
variables admit them, and special values are planted into one operand after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
NAN, INF = float("nan"), float("inf")
OPSET = 21
"""Of the nodes, but for operators that came later; ONNX Runtime lacks many of the versions of operators behind it."""
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
_SIZE = 1000
"""Elements of the largest first operand that is taken for an example where there is a smaller one."""


class Kind(StrEnum):
    """A class of special values: a column of the table."""

    ORDINARY = "ordinary numbers"
    NAN = "NaN"
    INFINITY = "infinities"
    ZERO = "signed zeros"
    DENORMAL = "denormals"
    LARGE = "large, out of range"
    TIE = "halves, equal values"
    END = "ends of integers"
    DIVISION = "integers 0, -1, 1"


@dataclass(frozen=True)
class Planted:
    """Special values in one operand.

    Attributes:
        values: what is planted.
        everywhere: whether all elements are such values, in turn, or ordinary ones stand between them.
        beside: the elements of the other operands that take special values; ordinary ones where there is none.
    """

    kind: Kind
    values: tuple[float, ...]
    everywhere: bool = False
    beside: tuple[float, ...] = ()


@dataclass(frozen=True)
class Example:
    """One node with its ordinary operands.

    Attributes:
        operator: its name.
        variant: what the row of the table says beside the operator's name, such as the type that a `Cast` gives.
        node: the node; its operands are named `i0`, `i1`, ...
        opset: of the model.
        operands: ordinary values; None where an operand is left out.
        planted: places of the operands that take special values.
        dtype: of these operands.
    """

    operator: str
    variant: str
    node: onnx.NodeProto
    opset: int
    operands: tuple[Array | None, ...]
    planted: tuple[int, ...]
    dtype: str

    def model(self) -> onnx.ModelProto:
        """The model of the node; operands that take no special values are constants."""
        graph = helper.make_graph([self.node], "special", [], [])
        for place, operand in enumerate(self.operands):
            if operand is None:
                continue
            if place in self.planted:
                dtype = helper.np_dtype_to_tensor_dtype(operand.dtype)
                graph.input.append(helper.make_tensor_value_info(f"i{place}", dtype, operand.shape))
            else:
                graph.initializer.append(numpy_helper.from_array(operand, f"i{place}"))
        graph.output.extend(helper.make_empty_tensor_value_info(name) for name in self.node.output if name)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model)

    def feeds(self, place: int, planted: Planted) -> dict[str, Array]:
        """The model's inputs with special values in one operand."""
        feeds = {f"i{p}": operand for p in self.planted if (operand := self.operands[p]) is not None}
        if planted.beside:
            others = Planted(planted.kind, planted.beside, True)
            feeds = {name: with_values(operand, others) for name, operand in feeds.items()}
        feeds[f"i{place}"] = with_values(feeds[f"i{place}"], planted)
        return feeds

    def runs(self) -> Iterator[tuple[int, Planted]]:
        """Ordinary values once, and all special ones in each operand that takes them."""
        for place in self.planted:
            is_first, alone = place == self.planted[0], len(self.planted) == 1
            for planted in planted_values(self.dtype):
                if planted.beside and (alone or not is_first or self.operator not in PAIRS):
                    continue
                if planted.values or is_first:
                    yield place, planted


def with_values(operand: Array, planted: Planted) -> Array:
    """The operand with the special values at its first place and at others, ordinary elements between them."""
    made, count = operand.copy().reshape(-1), len(planted.values)
    if not count:
        return operand
    step = 1 if planted.everywhere else max(2, made.size // (2 * count))
    with np.errstate(all="ignore"):
        values = np.array(planted.values, np.float64 if _is_float(operand.dtype) else object).astype(operand.dtype)
    places = range(0, made.size, step)
    for number, place in enumerate(places if planted.everywhere else list(places)[:count]):
        made[place] = values[number % count]
    return made.reshape(operand.shape)


def planted_values(dtype: str) -> list[Planted]:
    """The special values of an element type."""
    return _of_integers(dtype) if dtype in INTEGERS else _of_floats(dtype)


def _of_floats(dtype: str) -> list[Planted]:
    facts: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    least, most = float(facts.smallest_subnormal), float(facts.max)
    small = float(facts.smallest_normal) / 4
    return [
        Planted(Kind.ORDINARY, ()),
        Planted(Kind.NAN, (NAN,)),
        Planted(Kind.NAN, (NAN,), True),
        Planted(Kind.INFINITY, (INF,)),
        Planted(Kind.INFINITY, (-INF,)),
        Planted(Kind.INFINITY, (INF, -INF)),
        Planted(Kind.INFINITY, (-INF,), True),
        Planted(Kind.INFINITY, (INF, -INF), True, (INF,)),
        Planted(Kind.ZERO, (0.0, -0.0)),
        Planted(Kind.ZERO, (-0.0,), True),
        Planted(Kind.ZERO, (0.0, -0.0, NAN), True, (0.0,)),
        Planted(Kind.DENORMAL, (small, -small, least)),
        Planted(Kind.DENORMAL, (small, -3 * least), True),
        Planted(Kind.LARGE, (most, -most / 2)),
        Planted(Kind.LARGE, (300.7, -300.7, 4e4, 3e9, -3e9, 1e20)),
        Planted(Kind.LARGE, (most,), True),
        Planted(Kind.TIE, (0.5, 1.5, -0.5, 2.5, -1.5, -2.5), True),
        Planted(Kind.TIE, (2.0,), True),
    ]


def _of_integers(dtype: str) -> list[Planted]:
    facts = np.iinfo(dtype)
    low, high = int(facts.min), int(facts.max)
    signed = low < 0
    return [
        Planted(Kind.ORDINARY, ()),
        Planted(Kind.END, (high, low)),
        Planted(Kind.END, (high,), True),
        Planted(Kind.END, (low,), True),
        Planted(Kind.END, (facts.bits - 1, facts.bits, facts.bits + 1)),
        Planted(Kind.DIVISION, (0,)),
        Planted(Kind.DIVISION, (0,), True),
        *([Planted(Kind.DIVISION, (-1,), True), Planted(Kind.DIVISION, (-7, 7, -1, 1))] if signed else []),
        *([Planted(Kind.DIVISION, (low, 0), True, (-1,))] if signed else []),
        Planted(Kind.TIE, (2,), True),
    ]


PAIRS = ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "PRelu", "Mean", "Sum", "Equal", "Greater", "Less")
"""Operators of pairs of elements, which are given special ones in both operands as well."""
UNPLANTED: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Dropout": (1, 2),
    "OneHot": (0, 1),
    "Range": (0, 1, 2),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
}
"""Operands that say how much is computed, and none of what."""
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "ArgMax": ("test_argmax_default_axis_example", "test_argmax_default_axis_example_select_last_index"),
    "ArgMin": ("test_argmin_default_axis_example", "test_argmin_default_axis_example_select_last_index"),
    "Attention": ("test_attention_4d",),
    "BatchNormalization": ("test_batchnorm_example",),
    "BitShift": ("test_bitshift_left_uint8", "test_bitshift_right_uint8"),
    "Clip": ("test_clip_example", "test_clip_default_inbounds", "test_clip_default_min"),
    "Conv": ("test_conv_with_strides_padding",),
    "ConvInteger": ("test_convinteger_without_padding",),
    "Dropout": ("test_dropout_default",),
    "Gemm": ("test_gemm_default_vector_bias", "test_gemm_alpha"),
    "MaxPool": ("test_maxpool_1d_default", "test_maxpool_with_argmax_2d_precomputed_pads"),
    "MaxUnpool": ("test_maxunpool_export_without_output_shape",),
    "Mod": ("test_mod_mixed_sign_int32", "test_mod_mixed_sign_float32"),
    "Pow": ("test_pow", "test_pow_types_int32_float32", "test_pow_types_int64_int64"),
    "Resize": ("test_resize_downsample_scales_linear", "test_resize_upsample_scales_cubic"),
    "ScatterElements": ("test_scatter_elements_with_axis", "test_scatter_elements_with_reduction_max"),
    "TopK": ("test_top_k", "test_top_k_smallest"),
}
"""Node tests that are taken, where the smallest one shows too little."""
ONE_TYPE = ("BitCast",)
"""Operators whose attributes fix the element type of their operand."""
OUT: Mapping[str, str] = {
    **dict.fromkeys(("And", "Or", "Xor", "Not"), "takes truth values"),
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        "draws numbers",
    ),
    **dict.fromkeys(("Shape", "Size", "EyeLike", "ConstantOfShape"), "takes no number"),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"), "takes lengths alone"),
    **dict.fromkeys(("OptionalGetElement", "OptionalHasElement"), "takes what may be absent"),
    "Range": "its numbers say how many elements there are",
    "TfIdfVectorizer": "counts words",
    "SimplifiedLayerNormalization": "ONNX does not have it",
    **dict.fromkeys(("GlobalLpPool", "MaxRoiPool"), "ONNX has no node test of it"),
    "CastLike": "is `Cast` to the type of another tensor",
}
"""Operators without a row."""


def examples(operator: str, cases: Mapping[str, Any]) -> list[Example]:
    """The nodes of an operator in each element type that its special operands may have.

    Args:
        cases: ONNX's node tests by name, those of one node.
    """
    if operator == "Cast":
        return [cast for source in ("float32", "float64", "int64") for cast in _casts(source)]
    chosen = VARIANTS.get(operator) or (_smallest(operator, cases),)
    found: list[Example] = []
    for name in chosen:
        variant = "" if len(chosen) == 1 else name.removeprefix("test_")
        first = _example(operator, variant, cases[name])
        if first.planted:
            found += [retyped(first, dtype) for dtype in _admitted(first)]
    if not found:
        raise SystemExit(f"{operator}: no operand takes special values, and `OUT` gives no reason")
    return found


def _smallest(operator: str, cases: Mapping[str, Any]) -> str:
    """The test with the most operands of those whose first operand has some elements, not too many."""
    named = [(name, case) for name, case in cases.items() if case.model.graph.node[0].op_type == operator]
    if not named:
        raise SystemExit(f"{operator}: ONNX has no node test of it, and `OUT` gives no reason")

    def order(name: str, case: Any) -> tuple[bool, bool, int, int, str]:
        given = [_array(value) for value in case.data_sets[0][0]] or [np.zeros(0)]
        sizes = [array.size for array in given]
        numbers = given[0].dtype.name in (*FLOATS, *INTEGERS)
        return (not numbers, not 6 <= max(sizes) <= _SIZE, -len(sizes), sum(sizes), name)

    return min(named, key=lambda pair: order(*pair))[0]


def _array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _example(operator: str, variant: str, case: Any) -> Example:
    node = copy.deepcopy(case.model.graph.node[0])
    given = {
        value.name: _array(array) for value, array in zip(case.model.graph.input, case.data_sets[0][0], strict=True)
    }
    operands = tuple(given[name] if name else None for name in node.input)
    node.input[:] = [f"i{place}" if operand is not None else "" for place, operand in enumerate(operands)]
    example = Example(operator, variant, node, _opset(operator, node, case.model), operands, (), "")
    places = _special_places(example)
    first = operands[places[0]] if places else None
    return replace(example, planted=places, dtype="" if first is None else first.dtype.name)


def _opset(operator: str, node: onnx.NodeProto, model: onnx.ModelProto) -> int:
    own = int(next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")))
    try:
        onnx.checker.check_node(node, _context(OPSET))
        return min(own, OPSET)
    except onnx.checker.ValidationError:
        return own


def _context(opset: int) -> Any:
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = 10, {"": opset}
    return context


def formal(example: Example, place: int) -> Any:
    """What the operator's schema says of an operand."""
    schema = onnx.defs.get_schema(example.operator, max_inclusive_version=example.opset)
    return schema.inputs[min(place, len(schema.inputs) - 1)]


def _types(example: Example, variable: str) -> set[str]:
    """The names of the types of a type variable, or of the one type that an operand has."""
    schema = onnx.defs.get_schema(example.operator, max_inclusive_version=example.opset)
    listed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(variable, [variable])
    names = {one.removeprefix("tensor(").removesuffix(")") for one in listed}
    return {{"float": "float32", "double": "float64"}.get(name, name) for name in names}


def _special_places(example: Example) -> tuple[int, ...]:
    """The places of the operands that take special values: those of the first type variable that has numbers."""
    skipped = UNPLANTED.get(example.operator, ())
    for place, operand in enumerate(example.operands):
        if operand is None or place in skipped:
            continue
        variable = formal(example, place).type_str
        types = _types(example, variable)
        if not types & {*FLOATS, *INTEGERS} or types <= {"int32", "int64"}:
            continue  # truth values, places and extents
        return tuple(
            other
            for other, array in enumerate(example.operands)
            if array is not None and other not in skipped and formal(example, other).type_str == variable
        )
    return ()


def _admitted(example: Example) -> list[str]:
    """The element types that the special operands may have."""
    if example.operator in ONE_TYPE:
        return [example.dtype]
    types = _types(example, formal(example, example.planted[0]).type_str)
    wanted = [name for name in (*FLOATS, *INTEGERS) if name in types]
    if example.operator == "Mod":
        floats = any(a.name == "fmod" and a.i for a in example.node.attribute)
        wanted = [name for name in wanted if (name in FLOATS) == floats]
    return wanted


def retyped(example: Example, dtype: str) -> Example:
    """The example with its special operands in another element type, and floats beside them where they may have it."""
    operands = list(example.operands)
    for place, operand in enumerate(operands):
        if operand is None:
            continue
        beside = operand.dtype.name in FLOATS and dtype in FLOATS
        if place in example.planted or (beside and dtype in _types(example, formal(example, place).type_str)):
            operands[place] = _in_type(operand, dtype)
    return replace(example, operands=tuple(operands), dtype=dtype)


def _in_type(operand: Array, dtype: str) -> Array:
    made: Array = operand
    if dtype in INTEGERS and made.dtype.name in FLOATS:
        made = np.asarray(np.rint(made * (1 if np.abs(made).max(initial=0) >= 3 else 4)))
    if dtype.startswith("u"):
        made = np.asarray(np.abs(made.astype(np.float64)))
    return np.asarray(made.astype(dtype))


def _casts(source: str) -> Sequence[Example]:
    """Casts to each type whose numbers have a meaning of their own."""
    targets = (*(name for name in (*FLOATS, *INTEGERS) if name != source), "bool")
    made = []
    for target in targets:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(target if target != "bfloat16" else ml_dtypes.bfloat16))
        node = helper.make_node("Cast", ["i0"], ["y"], to=to)
        ordinary = np.arange(-6, 6).astype(source)
        made.append(Example("Cast", f"to {target}", node, OPSET, (ordinary,), (0,), source))
    return made


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.name in FLOATS
