"""The layouts that a tensor may have: which axis fills the lanes, which ones make x and y, in an image or a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from smartmem_rules.language.blocks.device import ImageLimits
from smartmem_rules.language.blocks.level import LayoutWeights
from smartmem_rules.plan.kernel.model import Kernel, Layout, Store, Stored
from smartmem_rules.plan.layout.accesses import writable_lane
from smartmem_rules.tensor.ranges import largest, several


def with_innermost(rank: int, *axes: int) -> tuple[int, ...]:
    """All axes in order, but for those given, which come last."""
    return (*(a for a in range(rank) if a not in axes), *axes)


def fits(layout: Layout, shape: tuple[int, ...], limits: ImageLimits) -> bool:
    """Whether an image of the layout stays inside the limits for all extents, padding included."""
    width, height = map(largest, layout.image_size(shape))
    return 0 < width <= limits.width and 0 < height <= limits.height


def image_layout(
    shape: tuple[int, ...], order: tuple[int, ...], limits: ImageLimits, most: int | None = None, inner: int = 0
) -> Layout | None:
    """A texture layout of the order, with as many axes in y as the limits admit.

    Args:
        order: the axis of the lanes last, -1 for one element a texel.
        most: the axes that y may have; all where None.
        inner: the axes that lie inside the lanes' texels in x.
    """
    top = len(order) - 1 - inner
    for rows in range(top if most is None else min(most, top), -1, -1):
        layout = Layout("image", order, rows, inner)
        if fits(layout, shape, limits):
            return layout
    return None


def can_be_image(stored: Stored) -> bool:
    """Whether the tensor's elements can be texels: integers and doubles lie in buffers."""
    return stored.type.dtype.startswith("float") and stored.type.dtype != "float64" and bool(stored.type.shape)


def candidates(
    stored: Stored,
    writer: tuple[Kernel, Store] | None,
    reduced: Sequence[int],
    kinds: Sequence[str],
    costs: LayoutWeights,
    limits: ImageLimits,
) -> list[Layout]:
    """The layouts of a tensor that is free to choose one, row-major before others.

    Args:
        writer: the kernel that writes it, which must be able to compute whole texels.
        reduced: the axes along which its readers reduce it, the first reader's first.
        kinds: where it may lie: image, buffer or both; it lies in a buffer where no image of it is possible.
    """
    shape = stored.type.shape
    found: dict[Layout, None] = {}
    if "image" in kinds and can_be_image(stored):
        found.update(dict.fromkeys(_images(shape, writer, reduced, costs.image_axes, limits)))
    if not found or "buffer" in kinds:
        found.update(dict.fromkeys(_buffers(shape, reduced, costs.buffer_axes)))
    elif writer is not None and len(writer[0].stores) > 1:
        # beside outputs whose texels lie along another axis, and of which no kernel can write the last ones
        found[Layout("buffer", tuple(range(len(shape))))] = None
    return list(found)


def _images(
    shape: tuple[int, ...],
    writer: tuple[Kernel, Store] | None,
    reduced: Sequence[int],
    axes: int,
    limits: ImageLimits,
) -> Iterator[Layout]:
    rank = len(shape)
    lanes = [a for a in _long(shape) if writer is None or writable_lane(*writer, a)]
    for lane in lanes:
        orders: list[tuple[tuple[int, ...], int | None, int]] = [(with_innermost(rank, lane), None, 0)]
        seconds = [*reduced] if axes > 1 else []
        if rank > 2:
            orders.append((with_innermost(rank, lane), rank - 2, 0))
            # outputs follow operands that are reduced along their last axis, such as the columns of a window
            seconds += [rank - 1] if axes > 1 else []
        own = [a for a in dict.fromkeys(seconds) if a != lane and several(shape[a])]
        orders += [(with_innermost(rank, second, lane), None, 1) for second in own]
        made = (image_layout(shape, order, limits, most, inner) for order, most, inner in orders)
        yield from (layout for layout in made if layout is not None)
    single = image_layout(shape, (*range(rank), -1), limits)
    if single is not None and (not lanes or (writer is not None and len(writer[0].stores) > 1)):
        yield single


def _buffers(shape: tuple[int, ...], reduced: Iterable[int], axes: int) -> Iterator[Layout]:
    rank = len(shape)
    for last in _long(shape):
        yield Layout("buffer", with_innermost(rank, last))
        if axes > 1:
            for second in dict.fromkeys(reduced):
                if second != last and several(shape[second]):
                    yield Layout("buffer", with_innermost(rank, second, last))


def _long(shape: tuple[int, ...]) -> list[int]:
    """The axes along which there are several elements, the last one first; the last where there is none."""
    return [a for a in reversed(range(len(shape))) if several(shape[a])] or [len(shape) - 1]
