"""What the weights of a model would take with fewer bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import onnx

from smartmem_rules.graph.loading import load_model
from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.plan.kernel.storage import item_bytes
from smartmem_rules.quantization.options import Options, QuantizeError
from smartmem_rules.quantization.products import Product, find_products

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.rulebase.base import RuleBase
    from smartmem_rules.runtime.target import Target

NAMES = ("int8", "int4")
"""What `smartmem quantize --weights` is advised to make, the most bits first."""
_SCALE = 4
"""Bytes of the scale of a block."""


def packed_widths(base: RuleBase, target: Target) -> tuple[int, ...]:
    """Columns of the panels in which a target packs weights of few bits.

    None where it has no kernels that unpack them: they are unpacked when the plan is made then.
    """
    if not any(one.template == "words" and one.kind == target.profile.kind for one in base.schedules.values()):
        return ()
    panels = (one for one in base.schedules.values() if isinstance(one, Panel))
    return tuple(count * target.profile.compute.lanes for panel in panels for count in panel.vectors)


def with_fewer_bits(
    source: ModelSource, weights: Iterable[int], dtype: str, widths: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The bytes of a plan's constants, piece by piece and at most, by what `smartmem quantize` makes the weights.

    Products of one left factor count as one piece, for they may be packed together. Empty where there is nothing that
    could be quantized.

    Args:
        weights: the bytes of the constants now.
        dtype: in which the plan stores floats.
        widths: columns of panels; behind the last column they are filled up.
    """
    if not widths:
        return {}
    now = sum(weights)
    model, _ = load_model(source)
    found = {}
    for name in NAMES:
        options = Options(weights=name)
        try:
            products = find_products(model.graph, options).products
        except QuantizeError:
            continue
        elements = {product.weight: product.depth * product.columns for product in products}
        rest = now - sum(elements.values()) * item_bytes(dtype)
        found[name] = (max(0, rest), *_pieces(model.graph, products, options, widths))
    return found


def _pieces(
    graph: onnx.GraphProto, products: tuple[Product, ...], options: Options, widths: Sequence[int]
) -> Iterable[int]:
    """What the quantized factors of each left factor take."""
    pieces: dict[str, int] = {}
    for product in products:
        left = graph.node[product.place].input[product.operand]
        pieces[left] = pieces.get(left, 0) + _bytes(product, options, widths)
    return pieces.values()


def _bytes(product: Product, options: Options, widths: Sequence[int]) -> int:
    columns = max(-(-product.columns // width) * width for width in widths)
    blocks = -(-product.depth // options.block)
    return columns * blocks * (options.block * options.code.bits // 8 + _SCALE)
