"""What `smartmem generate` says: the tokens, the times, the memory."""

from __future__ import annotations

from dataclasses import asdict

from smartmem_rules.decoding.generator import Generator
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """What a prompt was continued with.

    Attributes:
        text: of the new tokens; None without a tokenizer.
        ended: whether a stop token ended it.
    """

    prompt: list[int]
    tokens: list[int]
    text: str | None
    ended: bool


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What lies on the device, in bytes, and how much of it the tokens take.

    Attributes:
        weights: of both plans, those that they share once.
        intermediates: of both plans, inputs and outputs included, but for the cache.
        cache_per_token: what one more token of every sequence takes.
        cache: what the cache took at the end.
        cache_type: `model` or `int8`.
        bound, block: tokens of each sequence that the cache holds at most, and by how many it grows.
        in_place: whether new rows are written behind those that are there; else each step writes all rows anew.
    """

    weights: int
    intermediates: int
    cache_per_token: int
    cache: int
    cache_type: str
    bound: int
    block: int
    in_place: bool


@dataclass(frozen=True, kw_only=True)
class GenerationReport:
    """What was generated.

    Attributes:
        prefill_ms: until the first token, with the kernels built.
        token_ms: for each further token of every sequence, in the mean; None where there was none.
        tokens_per_s: of all sequences together, without the first ones.
    """

    model: str
    device: str
    sequences: list[Continuation]
    prefill_ms: float
    token_ms: float | None
    tokens_per_s: float | None
    memory: Memory

    def data(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


def memory_of(generator: Generator) -> Memory:
    """The memory of the plans that were made and of the cache."""
    held: dict[int, int] = {}
    intermediates = 0
    for executor in generator.plans.executors:
        memory = executor.built.memory
        held.update((id(piece), stored_bytes(executor.plan.tensors[name])) for name, piece in memory.shared.items())
        elsewhere = {*memory.shared, *memory.outside, *executor.plan.placement}
        intermediates += sum(slot.bytes for slot in executor.plan.slots)
        intermediates += sum(stored_bytes(t) for t in executor.plan.tensors.values() if t.name not in elsewhere)
    return Memory(
        weights=sum(held.values()),
        intermediates=intermediates,
        cache_per_token=generator.cache.bytes_per_token,
        cache=generator.cache.bytes,
        cache_type=generator.plans.cache,
        bound=generator.sizes.bound,
        block=generator.sizes.block,
        in_place=generator.plans.facts.growth.in_place,
    )
