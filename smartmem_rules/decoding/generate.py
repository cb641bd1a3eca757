"""Tokens of a model in one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smartmem_rules.decoding.choosing import Sampling
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.generator import BLOCK, BOUND, TOKENS, Generator
from smartmem_rules.decoding.model.parts import OWN
from smartmem_rules.decoding.model.reading import interface_within
from smartmem_rules.decoding.model.unchanging import dims_of
from smartmem_rules.decoding.prompts import count_of

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource


def generate(
    model: ModelSource | Generator,
    prompts: Sequence[int] | Sequence[Sequence[int]],
    tokens: int = TOKENS,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    stop: Collection[int] = (),
    bound: int = BOUND,
    block: int = BLOCK,
    cache: str = OWN,
    inputs: Mapping[str, object] | None = None,
    with_past: ModelSource | None = None,
    **options: Any,
) -> list[list[int]]:
    """The new tokens of each sequence; `api.generate` documents the arguments."""
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    if not isinstance(model, Generator):
        if inputs and "dims" not in options:
            options["dims"] = dims_within(model, inputs, with_past)
        model = Generator(model, count_of(prompts), bound, block, cache=cache, with_past=with_past, **options)
    elif with_past is not None:
        raise GenerateError("a generator has its two models already; give with_past where it is made")
    return model.generate(prompts, tokens, sampling, stop, inputs)


def dims_within(
    model: ModelSource, inputs: Mapping[str, object], with_past: ModelSource | None = None
) -> dict[str, int]:
    """The open extents of a model's further inputs that arrays have.

    Raises:
        GenerateError: the model has no cache.
        GraphError: the model is damaged.
    """
    return dims_of(interface_within(model, with_past).further, inputs)
