"""Recipes for contractions, windows and resampling."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import numpy as np

from smartmem_rules.fuzzing.recipes.builder import FLOAT_TYPES, Builder
from smartmem_rules.fuzzing.recipes.values import SMALL

EQUATIONS = (
    "ij,jk->ik", "bij,bkj->bik", "bhid,bhjd->bhij", "ij->ji", "ii->i", "i,j->ij", "...ij,...jk->...ik", "bij->b",
    "bnqd,bnkd->bqnk", "ij,ij->i",
)  # fmt: skip


def matmul(b: Builder) -> None:
    x = b.tensor(FLOAT_TYPES, 1, 5)
    shape, dtype = b.shape(x), b.array(x).dtype.name
    columns = int(b.pick(b.sizes.columns))
    way = b.integer(0, 5)
    if way == 0 and len(shape) >= 2:
        rank = len(shape)
        turned = b.one("Transpose", [x], perm=[*range(rank - 2), rank - 1, rank - 2])
        if turned:
            b.one("MatMul", [x, turned] if b.chance() else [turned, x])
    elif way == 1 and len(shape) >= 2:
        batch = tuple(1 if b.chance(0.4) else e for e in shape[:-2])
        b.one("MatMul", [x, b.operand((*batch, shape[-1], columns), dtype)])
    elif way == 2 and len(shape) >= 2:
        b.one("MatMul", [b.operand((columns, shape[-2]), dtype), x])
    elif way == 3:
        b.one("MatMul", [x, b.operand((shape[-1],), dtype)])
    else:
        b.one("MatMul", [x, b.operand((shape[-1], columns), dtype)])


def gemm(b: Builder) -> None:
    x = b.tensor(FLOAT_TYPES, 2, 2)
    dtype = b.array(x).dtype.name
    first, second = b.integer(0, 1), b.integer(0, 1)
    rows, inner = b.shape(x)[::-1] if first else b.shape(x)
    columns = int(b.pick(b.sizes.columns))
    w = b.operand((columns, inner) if second else (inner, columns), dtype)
    third = [b.operand(b.pick(((columns,), (rows, columns), (1,), (rows, 1), ())), dtype)] if b.chance(0.7) else []
    scales: dict[str, Any] = {"alpha": float(b.pick((1.0, 0.5, 2.0))), "beta": float(b.pick((1.0, 0.25, 0.0)))}
    b.one("Gemm", [x, w, *third], transA=first, transB=second, **scales)


def einsum(b: Builder) -> None:
    equation = b.pick(EQUATIONS)
    dtype = b.pick(("float32", "float32", "float64"))
    terms = equation.split("->")[0].replace("...", "b").split(",")
    extents = {letter: int(b.pick(b.sizes.terms)) for letter in "bhijkdnq"}
    b.one("Einsum", [b.operand(tuple(extents[c] for c in t), dtype) for t in terms], equation=equation)


class Window(TypedDict):
    """Attributes of a window."""

    kernel_shape: list[int]
    strides: NotRequired[list[int]]
    dilations: NotRequired[list[int]]
    pads: NotRequired[list[int]]
    auto_pad: NotRequired[str]
    output_padding: NotRequired[list[int]]
    ceil_mode: NotRequired[int]
    count_include_pad: NotRequired[int]


def window(b: Builder, spatial: tuple[int, ...], dilated: bool) -> Window:
    """Attributes of a window over some spatial extents."""
    kernel = [b.integer(1, min(b.sizes.window, max(1, e))) for e in spatial]
    given: Window = {"kernel_shape": kernel}
    if b.chance(0.6):
        given["strides"] = [b.integer(1, 3) for _ in spatial]
    if dilated and b.chance(0.4):
        given["dilations"] = [b.integer(1, 3) for _ in spatial]
    if b.chance(0.6):
        given["pads"] = [b.integer(0, k - 1) for k in (*kernel, *kernel)]
    elif b.chance(0.3):
        given["auto_pad"] = b.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    return given


def conv(b: Builder) -> None:
    x = b.tensor(("float32", "float32", "float16", "float64"), 3, 5)
    shape, dtype = b.shape(x), b.array(x).dtype.name
    channels = shape[1]
    if 0 in shape:
        return
    given = window(b, shape[2:], True)
    group = int(b.pick([g for g in (1, 1, 2, 3, 4, channels) if channels % g == 0]))
    each = int(b.pick(b.sizes.channels))
    w = b.operand((group * each, channels // group, *given["kernel_shape"]), dtype)
    bias = [b.operand((group * each,), dtype)] if b.chance() else []
    b.one("Conv", [x, w, *bias], group=group, **given)


def conv_transposed(b: Builder) -> None:
    x = b.tensor(("float32", "float16", "float64"), 3, 4, lambda a: a.size <= SMALL.elements)
    shape, dtype = b.shape(x), b.array(x).dtype.name
    if 0 in shape or b.array(x).size > SMALL.elements:  # in double precision ONNX's evaluator alone computes it, slowly
        return
    given = window(b, shape[2:], True)
    group = int(b.pick([g for g in (1, 1, 2, shape[1]) if shape[1] % g == 0]))
    if "auto_pad" not in given and "strides" in given and b.chance(0.4):
        given["output_padding"] = [b.integer(0, s - 1) for s in given["strides"]]
    each = b.integer(1, 4)
    w = b.operand((shape[1], each, *given["kernel_shape"]), dtype)
    b.one("ConvTranspose", [x, w, *([b.operand((group * each,), dtype)] if b.chance() else [])], group=group, **given)


def pool(b: Builder) -> None:
    x = b.tensor(("float32", "float32", "float16", "float64"), 3, 5)
    shape = b.shape(x)
    if 0 in shape:
        return
    operator = b.pick(
        ("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    )
    if operator.startswith("Global"):
        b.one(operator, [x])
        return
    given = window(b, shape[2:], operator == "MaxPool" or b.opset >= 19)
    if operator != "LpPool" and "auto_pad" not in given and b.chance(0.4):
        given["ceil_mode"] = 1
    if operator == "AveragePool":
        given["count_include_pad"] = b.integer(0, 1)
    outputs = 2 if operator == "MaxPool" and b.chance(0.15) else 1
    b.add(operator, [x], outputs, **given)


def unpooled(b: Builder) -> None:
    """The greatest elements of windows, put back where they were; windows that overlap name a place several times."""
    x = b.tensor(("float32",), 3, 5)
    spatial = b.shape(x)[2:]
    if 0 in b.shape(x):
        return
    kernel = [b.integer(1, min(b.sizes.window, e)) for e in spatial]
    apart = b.chance()
    strides = list(kernel) if apart else [b.integer(1, max(1, k - 1)) for k in kernel]
    given: Window = {"kernel_shape": kernel, "strides": strides}
    if b.chance(0.4):
        given["pads"] = [b.integer(0, k - 1) for k in (*kernel, *kernel)]
    made = b.add("MaxPool", [x], 2, **given)
    if not made:
        return
    greatest, places = made
    if b.chance(0.4):
        # of each element alone: what stands at one place stays equal
        greatest = b.one(b.pick(("Relu", "Neg", "Abs", "Sigmoid")), [greatest]) or greatest
    b.one("MaxUnpool", [greatest, places], **given)


def resize(b: Builder) -> None:
    x = b.tensor(("float32", "float32", "uint8", "int8", "float16"), 2, 5)
    shape = b.shape(x)
    if 0 in shape:
        return
    mode = b.pick(("nearest", "nearest", "linear", "cubic"))
    given: dict[str, Any] = {"mode": mode}
    ways = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    given["coordinate_transformation_mode"] = b.pick(ways)
    if mode == "nearest":
        given["nearest_mode"] = b.pick(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if b.chance(0.25):
        _resized_to(b, x, given)
        return
    spatial = b.integer(1, min(2, len(shape) - 1)) if mode == "cubic" else b.integer(1, min(3, len(shape)))
    # scales that divide: rounding decides nowhere which pixel is the nearest
    scales: tuple[float, ...] = (1.0, 2.0, 0.5, 3.0, 4.0, 0.25)
    if mode != "nearest" and given["coordinate_transformation_mode"] != "align_corners":
        scales += (1.9, 1.1, 0.7, 2.3, 19 / 7, 1.5, 2.5)
    factors = [b.pick(scales) if k >= len(shape) - spatial else 1.0 for k in range(len(shape))]
    if b.chance() and all(float(e * f).is_integer() for e, f in zip(shape, factors, strict=True)):
        b.one("Resize", [x, "", "", b.ints([int(e * f) for e, f in zip(shape, factors, strict=True)])], **given)
    else:
        b.one("Resize", [x, "", b.constant(factors, np.float32)], **given)


def _resized_to(b: Builder, x: str, given: dict[str, Any]) -> None:
    """The last axes resized to any extents, by what few exporters write: regions, filters, axes, kept centres."""
    shape = b.shape(x)
    count = 2 if len(shape) > 2 else 1
    sizes = [b.integer(1, 2 * e + 2) for e in shape[-count:]]
    if b.opset >= 18 and given["mode"] != "nearest" and b.chance(0.4):
        given["antialias"] = 1
    if given["mode"] == "cubic":
        given["cubic_coeff_a"] = b.pick((-0.75, -0.5))
        given["exclude_outside"] = b.integer(0, 1)
    region = ""
    way = b.pick(("", "half_pixel_symmetric", "tf_crop_and_resize"))
    if way == "half_pixel_symmetric" and b.opset >= 19:
        given["coordinate_transformation_mode"] = way
    elif way == "tf_crop_and_resize" and not given.get("antialias") and not given.get("exclude_outside"):
        given.update(coordinate_transformation_mode=way, extrapolation_value=float(b.pick((0.0, 2.5))))
        bounds = [(0.0, 1.0)] * (len(shape) - count) + [b.pick(((0.1, 0.8), (0.25, 0.75), (-0.5, 1.25)))] * count
        region = b.constant([*(low for low, _ in bounds), *(high for _, high in bounds)], np.float32)
    if b.opset >= 18 and not region and b.chance(0.3):
        given["axes"] = list(range(len(shape) - count, len(shape)))
        if b.chance(0.3):
            given["keep_aspect_ratio_policy"] = b.pick(("not_larger", "not_smaller"))
        b.one("Resize", [x, "", "", b.ints(sizes)], **given)
    else:
        b.one("Resize", [x, region, "", b.ints([*shape[:-count], *sizes])], **given)


def integer_products(b: Builder) -> None:
    kinds = b.pick(("uint8", "int8")), b.pick(("uint8", "int8"))
    operator = b.pick(("MatMulInteger", "ConvInteger", "QLinearMatMul", "DynamicQuantizeLinear"))
    if operator == "DynamicQuantizeLinear":
        b.add(operator, [b.tensor(("float32",), 1, 8, lambda a: a.size > 0)], 3)
        return
    zeros = [b.constant(b.integer(0, 5), k) for k in kinds]
    if operator == "ConvInteger":
        x = b.operand((1, b.integer(1, 3), 7, b.pick((5, 9))), "uint8")
        w = b.weight((4, b.shape(x)[1], 3, 3), "uint8")
        given: Window = {**window(b, b.shape(x)[2:], True), "kernel_shape": [3, 3]}
        b.one(operator, [x, w, *([b.constant(2, "uint8")] if b.chance() else [])], **given)
        return
    inner = int(b.pick(b.sizes.columns))
    batch = tuple(b.pick((1, 2, 3)) for _ in range(b.integer(0, 2)))
    x, w = (
        b.operand((*batch, b.pick(b.sizes.columns), inner), kinds[0]),
        b.operand((inner, b.pick(b.sizes.columns)), kinds[1]),
    )
    if operator == "MatMulInteger":
        b.one(operator, [x, w, *(zeros if b.chance(0.7) else [])])
        return
    first, second, third = (b.constant(v, np.float32) for v in (0.1, 0.2, 0.3))
    last = b.constant(b.integer(0, 9), kinds[0])
    b.one(operator, [x, first, zeros[0], w, second, zeros[1], third, last])
