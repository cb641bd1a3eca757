"""Where cases come from, by name; each gives the same case for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from smartmem_rules.fuzzing.case import Case, Mode
from smartmem_rules.fuzzing.recipes import (
    blocks,
    constant_chains,
    control,
    dynamic_integers,
    extents,
    few_bits,
    filtered_windows,
    growing,
    integers,
    math,
    rules,
    selections,
    sequences,
    sums,
    views,
)
from smartmem_rules.fuzzing.recipes.builder import Builder
from smartmem_rules.fuzzing.recipes.values import LARGE, SMALL, Sizes, draw_dtypes, draw_shape
from smartmem_rules.fuzzing.sources.cuttings import cut
from smartmem_rules.fuzzing.sources.decided import decided
from smartmem_rules.fuzzing.sources.modes import draw_mode, texture_mode
from smartmem_rules.fuzzing.sources.renamed import renamed
from smartmem_rules.fuzzing.sources.sides import side
from smartmem_rules.fuzzing.sources.symbolic import opened

Recipe = Callable[[Builder], None]
RECIPES: Mapping[Recipe, int] = {
    math.unary: 10, math.binary: 14, math.compare: 3, math.logic: 3,
    math.where: 4, math.clip: 2, math.cast: 5, math.reduction: 8, math.arg: 2,
    math.softmax: 4, math.cumulative: 1, math.rows_and_columns: 5, math.quantized: 2, math.read_again: 2,
    views.reshape: 8, views.flatten: 1, views.transpose: 8, views.squeeze: 4,
    views.slices: 6, views.concat: 5, views.split: 3, views.shifted: 2,
    views.pad: 4, views.expand: 3, views.tile: 2, views.depth_to_space: 2,
    views.gather: 4, views.scatter: 3, views.triangle: 1, views.one_hot: 1,
    views.top: 2, views.reverse: 1, views.crop: 1, views.eye: 1,
    sums.matmul: 8, sums.gemm: 3, sums.einsum: 2, sums.conv: 6,
    sums.conv_transposed: 2, sums.pool: 4, sums.unpooled: 2, sums.resize: 3, blocks.normalization: 6,
    blocks.attention: 2, sums.integer_products: 2, blocks.fused: 3, blocks.recurrent: 1,
    blocks.grid: 1, blocks.contributed: 1, rules.any_operator: 8,
}  # fmt: skip
"""What a model grows by, with how often."""
EXTENTS: Mapping[Recipe, int] = {
    extents.shape_of: 4, extents.arithmetic: 14, extents.reshape: 8, extents.expand: 4, extents.filled: 3,
    extents.positions: 5, extents.slices: 5, extents.padded: 3, extents.counted: 6, extents.resized: 1,
}  # fmt: skip
"""What a model of computed shapes grows by besides."""
HEAVY = frozenset({
    sums.matmul, sums.gemm, sums.einsum, sums.conv, sums.pool, math.reduction, math.softmax, math.rows_and_columns,
    blocks.normalization, blocks.attention, blocks.fused,
})  # fmt: skip
"""What most of the kernels of large models compute."""
FLOWS = (
    control.choice, control.choice, control.loop, control.loop, growing.growing, control.scan, control.function,
)  # fmt: skip
"""Control flow, of which a model has some where it has any."""
FLOW_SHARE = 0.35
INNER_FLOW_SHARE = 0.1
FEW_BITS_SHARE = 0.35
TABLE_SHARE = 0.1
SELECTED_SHARE = 0.35
CHAIN_SHARE = 0.7
MOST_STEPS = 14
FLOW_STEPS = 8
UNROLLED = 6
"""Steps of drawn loops whose ends depend on data; some take more, and shall raise an error."""
ONE_STEP_SHARE = 0.1
"""How many models with control flow have one step of such loops unrolled."""
NAMED_SHARE = 0.2
"""How many models with control flow, sequences or inputs that decide have tensors named as an import names its own."""
SMALL_STEPS = 3
LARGE_STEPS = 5
SPECIAL_SHARE = 0.15
DRAWN_SIZES_SHARE = 0.3
DEBUG_SHARE = 0.1
"""Of the plans of convolutions that may be filtered."""
OPEN_SHARE = 0.12
COMPUTED_OPEN_SHARE = 0.75
SECOND_SHARE = 0.4
OPENINGS = 4
"""Dimensions that are tried until one can be opened."""


def drawn(seed: int) -> Case:
    """A model of up to 14 steps over all operators, with a mode; one in eight has an open dimension."""
    return _drawn(f"drawn-{seed}", np.random.default_rng(seed), MOST_STEPS)


def small(seed: int) -> Case:
    """A model of up to three steps."""
    return _drawn(f"small-{seed}", np.random.default_rng((seed, 1)), SMALL_STEPS)


def large(seed: int) -> Case:
    """A model of up to five steps, mostly products, windows and rows, as large as those of real models."""
    random = np.random.default_rng((seed, 7))
    recipes = {recipe: share * (4 if recipe in HEAVY else 1) for recipe, share in RECIPES.items()}
    return _grown(f"large-{seed}", random, LARGE_STEPS, recipes, LARGE)


def computed(seed: int) -> Case:
    """A model whose shapes are computed from those of its inputs, most often with one or two open dimensions."""
    random = np.random.default_rng((seed, 4))
    case = _grown(f"computed-{seed}", random, MOST_STEPS, {**RECIPES, **{one: 5 * n for one, n in EXTENTS.items()}})
    if random.random() < COMPUTED_OPEN_SHARE:
        case = opened(case, random)
        if random.random() < SECOND_SHARE and case.mode.dims:
            case = opened(case, random, "m")
    return case


def controlled(seed: int) -> Case:
    """A model with control flow, or with functions of its own."""
    random = np.random.default_rng((seed, 5))
    case = _grown(f"controlled-{seed}", random, FLOW_STEPS, {**RECIPES, _flow: _share(FLOW_SHARE)})
    case = replace(case, mode=replace(case.mode, steps=UNROLLED))
    case = opened(case, random) if random.random() < OPEN_SHARE else case
    case = replace(case, mode=replace(case.mode, steps=1)) if random.random() < ONE_STEP_SHARE else case
    return _named(case, random)


def listed(seed: int) -> Case:
    """A model with sequences and optional values."""
    random = np.random.default_rng((seed, 6))
    case = _grown(f"listed-{seed}", random, FLOW_STEPS, {**RECIPES, _list: _share(FLOW_SHARE)})
    return _named(opened(case, random) if random.random() < OPEN_SHARE else case, random)


def quantised(seed: int) -> Case:
    """A model with weights of few bits."""
    random = np.random.default_rng((seed, 8))
    recipes = {**RECIPES, few_bits.product: _share(FEW_BITS_SHARE), few_bits.table: _share(TABLE_SHARE)}
    case = _grown(f"quantised-{seed}", random, FLOW_STEPS, recipes)
    return opened(case, random) if random.random() < OPEN_SHARE else case


def integer(seed: int) -> Case:
    """A model with chains of operators between quantizers."""
    random = np.random.default_rng((seed, 9))
    case = _grown(f"integer-{seed}", random, SMALL_STEPS, {**RECIPES, integers.chain: _share(CHAIN_SHARE)})
    return opened(case, random) if random.random() < OPEN_SHARE else case


def chained(seed: int) -> Case:
    """A model with constants one after the other, whose elements are so large or small that their order decides.

    Inputs are ordinary: rules that relax reassociation may make another number of an infinite one.
    """
    random = np.random.default_rng((seed, 14))
    recipes: Mapping[Recipe, int] = {constant_chains.chain: 4, math.unary: 1}
    case = _grown(f"chained-{seed}", random, SMALL_STEPS, recipes, special_share=0.0)
    return opened(case, random) if random.random() < OPEN_SHARE else case


def filtered(seed: int) -> Case:
    """A model with one or two convolutions of 3 x 3, planned for a CPU, which filters them in tiles where that pays."""
    random = np.random.default_rng((seed, 15))
    builder = Builder(random, False, ("float32",), LARGE)
    while not builder.results():
        filtered_windows.convolution(builder)
    model, feeds = builder.model()
    sizes = int(random.integers(1, 1 << 30)) if random.random() < DRAWN_SIZES_SHARE else 0
    return Case(f"filtered-{seed}", model, feeds, Mode(debug=bool(random.random() < DEBUG_SHARE), sizes=sizes))


def dynamic(seed: int) -> Case:
    """A model with products whose left factor is quantized when it runs."""
    random = np.random.default_rng((seed, 11))
    share = _share(CHAIN_SHARE) // 5
    own: dict[Recipe, int] = {dynamic_integers.products: 4 * share, dynamic_integers.recurrence: share}
    case = _grown(f"dynamic-{seed}", random, SMALL_STEPS, {**RECIPES, **own})
    return opened(case, random) if random.random() < OPEN_SHARE else case


def specialised(seed: int) -> Case:
    """A model some of whose constants are inputs, so that it is planned when it runs."""
    random = np.random.default_rng((seed, 10))
    flows: Mapping[Recipe, int] = {_flow: _share(FLOW_SHARE / 2), _list: _share(FLOW_SHARE / 3)}
    recipes = {**RECIPES, **{one: 2 * n for one, n in EXTENTS.items()}, **flows}
    case = decided(_grown(f"specialised-{seed}", random, FLOW_STEPS, recipes), random)
    return _named(opened(case, random) if random.random() < OPEN_SHARE else case, random)


def textured(seed: int) -> Case:
    """A model with one or two open dimensions, planned for a GPU whose tensors lie in images."""
    random = np.random.default_rng((seed, 12))
    recipes = {**RECIPES, **EXTENTS} if random.random() < SECOND_SHARE else RECIPES
    case = _grown(f"textured-{seed}", random, FLOW_STEPS, recipes)
    for _ in range(OPENINGS):
        case = opened(case, random)
        if case.mode.dims:
            break
    if random.random() < SECOND_SHARE and case.mode.dims:
        case = opened(case, random, "m")
    return replace(case, mode=replace(texture_mode(random), dims=case.mode.dims))


def counted(seed: int) -> Case:
    """A model of tensors whose extents depend on data, and of operators that have to know them."""
    random = np.random.default_rng((seed, 13))
    recipes = {**RECIPES, **EXTENTS, selections.selected: _share(SELECTED_SHARE)}
    case = _grown(f"counted-{seed}", random, MOST_STEPS, recipes)
    dtype = "float32" if case.mode.dtype == "float16" else case.mode.dtype  # which such plans refuse, as tuned sizes
    case = replace(case, mode=replace(case.mode, dtype=dtype, sizes=0))
    return opened(case, random) if random.random() < OPEN_SHARE else case


def _named(case: Case, random: np.random.Generator) -> Case:
    return renamed(case, random) if random.random() < NAMED_SHARE else case


def _list(builder: Builder) -> None:
    builder.pick(sequences.RECIPES)(builder, _inner_step)


def _flow(builder: Builder) -> None:
    builder.pick(FLOWS)(builder, _inner_step)


def _inner_step(builder: Builder) -> None:
    """One step of a body."""
    recipes = list(RECIPES)
    weights = np.array(list(RECIPES.values()), float)
    flow = builder.chance(INNER_FLOW_SHARE)
    (_flow if flow else recipes[int(builder.random.choice(len(recipes), p=weights / weights.sum()))])(builder)


def _share(share: float) -> int:
    """The weight of a recipe beside those of every model."""
    return round(sum(RECIPES.values()) * share / (1 - share))


def _drawn(name: str, random: np.random.Generator, most_steps: int) -> Case:
    case = _grown(name, random, most_steps, RECIPES)
    return opened(case, random) if random.random() < OPEN_SHARE else case


def _grown(
    name: str,
    random: np.random.Generator,
    most_steps: int,
    weighted: Mapping[Recipe, int],
    sizes: Sizes = SMALL,
    special_share: float = SPECIAL_SHARE,
) -> Case:
    builder = Builder(random, bool(random.random() < special_share), draw_dtypes(random), sizes)
    builder.input(builder.fresh(draw_shape(random, 1, 5, sizes), builder.dtype()))
    recipes, weights = list(weighted), np.array(list(weighted.values()), float)
    steps = int(random.integers(1, most_steps + 1))
    tries = 0
    while (len(builder.nodes) < steps and tries < 5 * steps) or not builder.results():
        tries += 1
        recipes[int(random.choice(len(recipes), p=weights / weights.sum()))](builder)
    model, feeds = builder.model()
    return Case(name, model, feeds, draw_mode(random))


SOURCES: Mapping[str, Callable[[int], Case]] = {
    "drawn": drawn,
    "small": small,
    "large": large,
    "computed": computed,
    "controlled": controlled,
    "listed": listed,
    "quantised": quantised,
    "integer": integer,
    "chained": chained,
    "filtered": filtered,
    "dynamic": dynamic,
    "specialised": specialised,
    "textured": textured,
    "counted": counted,
    "cut": cut,
    "side": side,
}
