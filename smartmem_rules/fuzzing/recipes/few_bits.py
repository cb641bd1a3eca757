"""Recipes for weights of 2, 4 and 8 bits: packed by ONNX Runtime's operators, or written with DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np

from smartmem_rules.fuzzing.recipes.builder import MICROSOFT, Builder

_DEPTHS = (16, 17, 32, 33, 48, 64, 100, 128, 160, 257)
_COLUMNS = (1, 2, 3, 5, 7, 8, 16, 17, 24, 40)
_ROWS = (1, 1, 2, 3, 5, 9)
_BLOCKED = 21
"""The opset from which on scales may belong to blocks."""
_NARROW = ("float8_e4m3fn", "float8_e5m2")
_NARROW_SINCE = 19


def product(b: Builder) -> None:
    """A product by constant weights of few bits."""
    x = _left(b)
    (packed if b.chance() else written)(b, x, b.shape(x)[-1])


def _left(b: Builder) -> str:
    """Any tensor whose last axis has elements, or one that is wide enough for several blocks."""
    if b.chance(0.3):
        x = b.tensor(("float32",), 1, 4, lambda a: a.size > 0)
        return x if b.array(x).ndim > 1 else b.operand((1, *b.shape(x)), "float32")
    lead = [(b.pick(_ROWS),), (2, b.pick(_ROWS)), (1, 2, b.pick(_ROWS))]
    return b.operand((*b.pick(lead), b.pick(_DEPTHS)), "float32")


def packed(b: Builder, x: str, depth: int) -> None:
    """MatMulNBits, with each of its forms of scales and zero points."""
    bits, block, columns = b.pick((2, 4, 4, 4, 8)), b.pick((16, 32, 32, 64, 128)), b.pick(_COLUMNS)
    count = -(-depth // block)
    weights = b.constant(b.random.integers(0, 256, (columns, count, block * bits // 8)), np.uint8)
    flat = b.chance(0.3)
    operands = [x, weights, b.constant(_scales(b, (columns * count,) if flat else (columns, count)), np.float32)]
    way = b.integer(0, 3)
    if way == 1:
        held = -(-count * bits // 8)
        values = b.random.integers(0, 256, (columns * held,) if flat else (columns, held))
        operands.append(b.constant(values, np.uint8))
    elif way == 2 and bits == 4:
        zeros = b.random.integers(0, 16, (columns, count)) + b.pick((0.0, 0.5))
        operands.append(b.constant(zeros.reshape(-1) if flat else zeros, np.float32))
    given: dict[str, Any] = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    if b.chance(0.25):
        operands += [""] * (5 - len(operands))
        operands.append(b.weight((columns,), "float32"))
    b.one("MatMulNBits", operands, MICROSOFT, **given)


def written(b: Builder, x: str, depth: int) -> None:
    """Integers or floats of 8 bits behind DequantizeLinear, by tensor, by column, by row or by block, and a product."""
    columns, kind = b.pick(_COLUMNS), b.pick(("int8", "uint8", *(_NARROW if b.opset >= _NARROW_SINCE else ())))
    turned = b.chance()
    shape = (columns, depth) if turned else (depth, columns)
    inner = 1 if turned else 0
    low, high = (0, 256) if kind == "uint8" else (-128, 128)
    given: dict[str, Any] = {}
    each: tuple[int, ...] = ()
    way = b.integer(0, 3)
    if way == 1:
        given["axis"], each = 1 - inner, (columns,)
    elif way == 2:
        given["axis"], each = inner, (depth,)
    elif way == 3 and b.opset >= _BLOCKED:
        divisors = [d for d in (4, 8, 16, 20, 32, 64) if depth % d == 0]
        if divisors:
            block = b.pick(divisors)
            given |= {"axis": inner, "block_size": block}
            each = (columns, depth // block) if turned else (depth // block, columns)
    operands = [
        b.constant(b.random.integers(low, high, shape), kind),
        b.constant(_scales(b, each, of_blocks=len(each) == 2), np.float32),
    ]
    if b.chance(0.7):
        zeros = np.zeros(each) if kind in _NARROW else b.random.integers(low, high, each)
        operands.append(b.constant(zeros, kind))
    weights = b.one("DequantizeLinear", operands, **given)
    if weights is None:
        return
    if turned and len(b.shape(x)) == 2 and b.chance(0.7):
        b.one("Gemm", [x, weights], transB=1)
        return
    right = b.one("Transpose", [weights], perm=[1, 0]) if turned else weights
    if right is not None:
        b.one("MatMul", [x, right])


def table(b: Builder) -> None:
    """Rows of a table of few bits."""
    bits, block, rows = b.pick((4, 8)), b.pick((16, 32, 64)), b.integer(1, 9)
    width = block * b.integer(1, 3)
    count = width // block
    operands = [
        b.constant(b.random.integers(0, 256, (rows, width * bits // 8)), np.uint8),
        b.constant(b.random.integers(0, rows, (b.integer(1, 3), b.integer(1, 4))), b.pick((np.int64, np.int32))),
        b.constant(_scales(b, (rows, count)), np.float32),
    ]
    if b.chance():
        operands.append(b.constant(b.random.integers(0, 256, (rows, -(-count * bits // 8))), np.uint8))
    found = b.one(
        "GatherBlockQuantized", operands, MICROSOFT, bits=bits, block_size=block, gather_axis=0, quantize_axis=1
    )
    if found is not None and b.chance():
        b.one("MatMul", [found, b.weight((width, b.pick(_COLUMNS)), "float32")])


def _scales(b: Builder, shape: tuple[int, ...], of_blocks: bool = True) -> np.ndarray:
    """Positive numbers, now and then one that is negative or denormal, or zero where blocks have scales.

    Zero is refused elsewhere.
    """
    scales = np.asarray(b.random.uniform(0.01, 0.5, shape))
    if scales.size and b.chance(0.2):
        scales.reshape(-1)[b.integer(0, scales.size - 1)] = b.pick((-0.25, 0.0 if of_blocks else 1e-38, 1e-40))
    return scales
