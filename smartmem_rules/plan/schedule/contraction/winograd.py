"""Winograd's minimal filtering: which contractions it applies to, and their transformed weights.

A tile of t x t outputs of an r x r window needs p x p products for each channel instead of t*t*r*r, p = t + r - 1:
    Y = A^T [ (G g G^T) . (B^T d B) ] A
(A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016). The matrices stand in
schedule.smr; the weights g are transformed when the plan is made.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.schedule import Matrix, Winograd
from smartmem_rules.plan.kernel.model import Contraction
from smartmem_rules.plan.kernel.packing import room
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Const,
    Expr,
    compare,
    free_variables,
    logic,
    select,
    substitute_variables,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.substitution import unravel

_THREADS = 2
_IN_CACHE = 1 << 12
"""Windows that are transformed at once: their points, in double precision, fit into a core's cache."""


@dataclass(frozen=True)
class Transform:
    """The matrices of F(outputs x outputs, taps x taps).

    Attributes:
        input, weights, output: B^T of p x p, G of p x taps, A^T of outputs x p.
    """

    input: Matrix
    weights: Matrix
    output: Matrix

    @property
    def outputs(self) -> int:
        return len(self.output)

    @property
    def taps(self) -> int:
        return len(self.weights[0])

    @property
    def points(self) -> int:
        """Products along one axis of a tile."""
        return len(self.input)

    def growth(self) -> float:
        """How much larger the worst rounding error of an output is than that of the direct sum of its products.

        Direct, an output is a sum of taps^2 products for each channel. Transformed, the same sum goes through
        |A^T| (|G| |g| |G^T| . |B^T| |d| |B|) |A|, which bounds what rounding acts on.
        """
        g, b = (np.abs(np.asarray(matrix, np.float64)).sum(axis=1) for matrix in (self.weights, self.input))
        along = np.abs(np.asarray(self.output, np.float64)) @ (g * b)
        return float((along.max() / self.taps) ** 2)


@dataclass(frozen=True, kw_only=True)
class Windows:
    """A convolution with windows of taps x taps and stride 1.

    Attributes:
        images: row variables before y and x; there are several only where tiles end with the image.
        y, x: the outputs' place in an image; they are the last two of the contraction's rows.
        channel: the reduction variable besides the window's.
        source: the left factor at (`y` + ky, `x` + kx), in terms of `down` and `across`.
    """

    images: tuple[Var, ...]
    y: Var
    x: Var
    ky: Var
    kx: Var
    channel: Var
    down: Var
    across: Var
    source: Expr

    def strips(self, transform: Transform) -> int:
        """Rows of tiles of all images."""
        return math.prod(v.extent for v in self.images) * -(-self.y.extent // transform.outputs)

    def across_tiles(self, transform: Transform) -> int:
        """Tiles side by side in an image."""
        return -(-self.x.extent // transform.outputs)

    def grain(self, transform: Transform) -> int:
        """Rows of the contraction that a row of tiles covers."""
        return transform.outputs * self.x.extent

    def by_taps(self, c: Contraction) -> Contraction:
        """The contraction with all channels of a tap of the window side by side."""
        own = (self.ky, self.kx, self.channel)
        return replace(c, k=(*(v for v in c.k if v not in own), *own))

    def element(self, transform: Transform, strip: Index, tile: Index, u: Index, v: Index) -> Expr:
        """The left factor at place (u, v) of a tile; zero where a tile hangs over what windows read."""
        heights = (*(image.extent for image in self.images), -(-self.y.extent // transform.outputs))
        *images, row = unravel(strip, heights)
        down, across = add(scale(row, transform.outputs), u), add(scale(tile, transform.outputs), v)
        values: dict[Var, Index] = {self.down: down, self.across: across}
        values.update(zip(self.images, images, strict=True))
        inside = logic(
            "and",
            (
                compare("<", down, Index(self.y.extent + transform.taps - 1)),
                compare("<", across, Index(self.x.extent + transform.taps - 1)),
            ),
        )
        return select(inside, substitute_variables(self.source, values), Const(0.0, self.source.dtype))


def match_windows(c: Contraction, transform: Transform, lanes: int) -> Windows | None:
    """The windows of a contraction, None where it is no such convolution.

    Args:
        lanes: the channels have to fill vectors of so many.
    """
    every = (*c.batch, *c.m, c.n, *c.k)
    if c.stages or c.scores is not None or len(c.m) < 2 or any(is_symbolic(v.extent) for v in every):
        return None
    *images, y, x = c.m
    window = [v for v in c.k if v.extent == transform.taps]
    rest = [v for v in c.k if v.extent > 1]
    if len(rest) != 3 or len(window) < 2 or (images and y.extent % transform.outputs):
        return None
    taps = transform.taps
    down, across = Var("down", y.extent + taps - 1), Var("across", x.extent + taps - 1)
    for ky in window:
        for kx in (v for v in window if v is not ky):
            source = _along(_along(c.a, y, ky, down), x, kx, across)
            channel = next(v for v in rest if v is not ky and v is not kx)
            if source is not None and channel.extent % lanes == 0:
                return Windows(
                    images=tuple(images),
                    y=y,
                    x=x,
                    ky=ky,
                    kx=kx,
                    channel=channel,
                    down=down,
                    across=across,
                    source=source,
                )
    return None


def _along(a: Expr | None, row: Var, tap: Var, place: Var) -> Expr | None:
    """The expression in terms of row + tap, None where it depends on them otherwise."""
    if a is None:
        return None
    moved = substitute_variables(a, {row: add(variable(place), scale(variable(tap), -1))})
    return None if {row, tap} & free_variables(moved) else moved


def transformed_weights(values: np.ndarray, transform: Transform, columns: int) -> np.ndarray:
    """The weights G g G^T, computed in double precision, as the template reads them.

    Args:
        values: of shape [batch, n, channels, taps, taps].

    Returns:
        float32 of [batch, tiles of columns, points * points, channels, columns], in memory as `room` gives it.
    """
    batch, n, channels = values.shape[:3]
    points, tiles = transform.points, -(-n // columns)
    shape = (batch, tiles, points**2, channels, columns)
    made = room(math.prod(shape), np.dtype(np.float32)).reshape(shape)
    made[:, -1, ..., n - (tiles - 1) * columns :] = 0
    g = np.asarray(transform.weights, np.float64)
    step = max(1, _IN_CACHE // columns)

    def fill(tile: int) -> None:
        for first in range(0, channels, step):
            some = values[:, tile * columns : (tile + 1) * columns, first : first + step]
            own, place = some.transpose(0, 3, 4, 2, 1).astype(np.float64), made[:, tile, :, first : first + step]
            for one, result in zip(own, place, strict=True):  # one: [taps, taps, channels, columns]
                rows = (g @ one.reshape(transform.taps, -1)).reshape(points, transform.taps, -1)
                result[..., : some.shape[1]] = (g @ rows).reshape(points**2, *one.shape[2:])

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(fill, range(tiles)))
    return made


def transform_of(schedule: Winograd) -> Transform:
    """The transform of a schedule block's rows."""
    weights = tuple(tuple(value / schedule.weights_over for value in row) for row in schedule.weights)
    return Transform(schedule.input, weights, schedule.output)
