"""Generates tokens: a prompt fills the cache, then each token of every sequence gives the next one."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from smartmem_rules.decoding.cache import Cache, Sizes
from smartmem_rules.decoding.choosing import ALL, GREATEST, Array, Sampling, Selection, drawn
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.graphs import (
    COUNTS,
    LAST,
    MASK_BEFORE,
    MASK_NEW,
    PAST,
    PLACES,
    SEQUENCE,
    TOKEN,
    VALUES,
    Step,
)
from smartmem_rules.decoding.growth import COUNTED
from smartmem_rules.decoding.interface import MASK, POSITIONS
from smartmem_rules.decoding.parts import OWN, TYPES
from smartmem_rules.decoding.plans import Plans, plans_of
from smartmem_rules.decoding.prompts import Prompts, several_of, stop_tokens
from smartmem_rules.decoding.unchanging import checked_inputs
from smartmem_rules.decoding.unchanging_memory import UnchangingMemory
from smartmem_rules.runtime.contexts.context import ExecutionContext
from smartmem_rules.stages import Progress

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource

BOUND, BLOCK = 1024, 256
"""Tokens that the cache holds at most, and by how many it grows, where the caller does not say."""
TOKENS = 128
"""How many are generated where the caller does not say."""


@dataclass(kw_only=True)
class _Progress:
    """How far the sequences of one call are.

    Attributes:
        counts: for each place of the cache whether it counts, [sequences, bound], int64.
        lengths: how many tokens each sequence has.
        ended: which of them came to a stop token.
    """

    counts: Array
    lengths: Array
    ended: Array
    generators: list[np.random.Generator] = field(default_factory=list)


class Generator:
    """A model with plans for prompts and for the tokens behind them, and a cache on the device.

    One call at a time uses it; a call that fails or is left leaves it ready for the next one.
    """

    def __init__(
        self,
        model: ModelSource,
        sequences: int = 1,
        bound: int = BOUND,
        block: int = BLOCK,
        progress: Progress | None = None,
        cache: str = OWN,
        dims: Mapping[str, int] | None = None,
        **options: Any,
    ) -> None:
        """Read the model and find out how it uses its cache; plans are made when they are first needed.

        Args:
            model: a path, the bytes of an ONNX file or a ModelProto, with `past_key_values.*` and `present.*`.
            sequences: how many are generated at once.
            bound: tokens of each sequence that the cache never exceeds, the prompt's included.
            block: tokens by which it grows.
            progress: called with a stage's name, the steps done and the steps to do.
            cache: `model` keeps keys and values in the model's own type, `int8` as integers with a scale for each
                position, sequence and head (`decoding.parts`).
            dims: of the open extents of further inputs (an encoder's states), which stay the same over the steps.
            options: `rules`, `device`, `level`, `dtype`, `disable` and `limits` of `optimize`.

        Raises:
            GenerateError: the model has no cache, or a number is out of its range.
            GraphError: the model is damaged or uses something that no rule covers.
            DeviceError: there is no such device.
        """
        for name, value in (("sequences", sequences), ("bound", bound), ("block", block)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise GenerateError(f"{name} cannot be {value!r}; give a number from 1 on")
        if bound < 2:
            raise GenerateError("a cache of 1 token holds no prompt with a token behind it; give a bound from 2 on")
        if cache not in TYPES:
            raise GenerateError(f"there is no cache of type {cache!r}; give {' or '.join(TYPES)}")
        self.plans: Plans = plans_of(model, sequences, bound, cache, dims or {}, options, progress)
        self.sizes = Sizes(sequences=sequences, block=block, bound=bound)
        in_place = self.plans.facts.growth.in_place
        self.cache = Cache(self.plans.parts, self.sizes, self.plans.device, self.plans.home.context, not in_place)
        self._rows = self.cache.new_rows() if in_place else {}
        self._given = UnchangingMemory(self.plans.facts.given, self.plans.home.context)
        self._busy = threading.Lock()

    def prepare(self, sampling: Sampling | None = None) -> None:
        """Make all plans and compile all of their kernels now, by two tokens; raises what `optimize` does."""
        inputs = {one.name: np.zeros(one.shape, one.numpy_dtype) for one in self.plans.facts.further}
        for _ in self.stream([[0]] * self.sizes.sequences, 2, sampling, inputs=inputs):
            pass

    def stream(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]],
        tokens: int | None = TOKENS,
        sampling: Sampling | None = None,
        stop: Collection[int] = (),
        inputs: Mapping[str, Any] | None = None,
    ) -> Iterator[tuple[int | None, ...]]:
        """The next token of every sequence, step by step.

        Args:
            prompts: the token numbers of the sequence, or those of each of several.
            tokens: how many at most; None until the cache is full, which is an error then.
            sampling: how tokens are chosen; by default the one with the greatest logit.
            stop: tokens that end a sequence; they are given as well, and after them None.
            inputs: an array for each further input of the model, of its shape and element type.

        Raises:
            GenerateError: a prompt or an option cannot be used; nothing has run.
            CacheFullError: the cache holds as many tokens as its bound says.
            TooLargeError: the device has too little memory; the message says what would fit, and nothing has run.
            PlanError, BuildError, RunError: a plan cannot be made, or the device refuses it.
        """
        chosen = sampling or Sampling()
        ends = stop_tokens(stop, self.plans.facts.vocabulary)
        given = checked_inputs(self.plans.facts.further, inputs)
        return self._steps(self.checked(prompts, tokens, chosen, inputs), tokens, chosen, ends, given)

    def generate(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]],
        tokens: int = TOKENS,
        sampling: Sampling | None = None,
        stop: Collection[int] = (),
        inputs: Mapping[str, Any] | None = None,
    ) -> list[list[int]]:
        """The new tokens of each sequence, a stop token at the end included; see `stream`."""
        found: list[list[int]] = [[] for _ in range(self.sizes.sequences)]
        for step in self.stream(prompts, tokens, sampling, stop, inputs):
            for own, token in zip(found, step, strict=True):
                if token is not None:
                    own.append(token)
        return found

    # --- what is given ---

    def checked(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]],
        tokens: int | None,
        sampling: Sampling,
        inputs: Mapping[str, Any] | None = None,
    ) -> Prompts:
        """The prompts, if they can be continued so with further inputs; raises GenerateError, and nothing runs."""
        checked_inputs(self.plans.facts.further, inputs)
        self._selection(sampling)
        read = self._prompts(prompts)
        if tokens is not None:
            self._check_room(read, tokens)
        return read

    def _selection(self, sampling: Sampling) -> Selection:
        sampling.check()
        vocabulary = self.plans.facts.vocabulary
        if vocabulary is not None and sampling.top_k > vocabulary:
            raise GenerateError(f"top_k is {sampling.top_k}, and the model has {vocabulary} tokens; give fewer")
        return sampling.selection(vocabulary)

    def _prompts(self, given: Sequence[int] | Sequence[Sequence[int]]) -> Prompts:
        several = several_of(given)
        if len(several) != self.sizes.sequences:
            raise GenerateError(
                f"{len(several)} prompts are given to a generator of {self.sizes.sequences} sequences; give as many, "
                "or make it with another number of sequences"
            )
        for number, prompt in enumerate(several):
            self._check_prompt(f"prompt {number}" if len(several) > 1 else "the prompt", prompt)
        lengths = [len(prompt) for prompt in several]
        if len(set(lengths)) > 1 and not self.plans.facts.pads:
            raise GenerateError(
                f"the prompts have {', '.join(map(str, lengths))} tokens, and without the inputs {MASK} and "
                f"{POSITIONS} the model cannot tell shorter ones; give prompts of one length, or one after the other"
            )
        return Prompts.of(several, at_end=self.plans.facts.counts)

    def _check_prompt(self, name: str, prompt: Sequence[Any]) -> None:
        if not prompt:
            raise GenerateError(f"{name} is empty; give at least one token (models have one for the beginning)")
        if len(prompt) >= self.sizes.bound:
            raise GenerateError(
                f"{name} has {len(prompt)} tokens, and the cache is bound to {self.sizes.bound} with the new ones; "
                "give a shorter prompt or a greater bound"
            )
        vocabulary = self.plans.facts.vocabulary
        for place, token in enumerate(prompt):
            if isinstance(token, bool) or not isinstance(token, int | np.integer):
                raise GenerateError(f"{name} has {token!r} at place {place}, which is no token number")
            if token < 0 or (vocabulary is not None and token >= vocabulary):
                known = "" if vocabulary is None else f", and the model has {vocabulary}, from 0 on"
                raise GenerateError(f"{name} has the token {token} at place {place}{known}; use the model's tokenizer")

    def _check_room(self, prompts: Prompts, tokens: int) -> None:
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise GenerateError(f"the number of tokens cannot be {tokens!r}; give one from 1 on")
        needed = prompts.tokens.shape[1] + tokens - 1  # the last one is not put into the cache
        if needed > self.sizes.bound:
            raise GenerateError(
                f"{prompts.tokens.shape[1]} tokens of the prompt and {tokens} new ones need a cache of {needed}, and "
                f"it is bound to {self.sizes.bound}; ask for fewer tokens, or make the bound greater"
            )

    # --- the steps ---

    def _steps(
        self,
        prompts: Prompts,
        tokens: int | None,
        sampling: Sampling,
        stop: frozenset[int],
        given: Mapping[str, Array],
    ) -> Iterator[tuple[int | None, ...]]:
        if not self._busy.acquire(blocking=False):
            raise GenerateError("this generator is in use; finish or close what is being streamed, or make another one")
        try:
            selection = self._selection(sampling)
            first = self._of_prompts(prompts, selection)
            self._ready(prompts, tokens, [first] if tokens == 1 else [first, self.plans.of_tokens(selection)])
            self._given.take(given, self.plans)
            state = self._begin(prompts, sampling)
            chosen = self._prefill(prompts, state, sampling, first)
            made = 1
            yield self._shown(chosen, state, stop)
            while (tokens is None or made < tokens) and not state.ended.all():
                chosen = self._decode(chosen, state, sampling, selection)
                made += 1
                yield self._shown(chosen, state, stop)
        finally:
            self.cache.clear()
            self._busy.release()

    def _of_prompts(self, prompts: Prompts, selection: Selection) -> Step:
        """The step for prompts; where they are padded in front, the host looks at all logits."""
        if prompts.is_padded and not self.plans.facts.counts:
            selection = Selection(kind=ALL)
        return self.plans.of_prompts(selection)

    def _ready(self, prompts: Prompts, tokens: int | None, steps: Sequence[Step]) -> None:
        positions = self.sizes.bound if tokens is None else prompts.tokens.shape[1] + tokens - 1
        self.plans.ready(steps, self.cache, positions)

    def _begin(self, prompts: Prompts, sampling: Sampling) -> _Progress:
        sequences, bound = self.sizes.sequences, self.sizes.bound
        counts = np.zeros((sequences, bound), np.int64)
        counts[:, : prompts.tokens.shape[1]] = prompts.counts
        self.cache.clear()
        return _Progress(
            counts=counts,
            lengths=prompts.lengths.copy(),
            ended=np.zeros(sequences, bool),
            generators=sampling.generators(sequences),
        )

    def _shown(self, chosen: Array, state: _Progress, stop: frozenset[int]) -> tuple[int | None, ...]:
        """The tokens of a step; sequences that had ended before have none."""
        shown = tuple(
            None if ended else int(token) for ended, token in zip(state.ended.tolist(), chosen.tolist(), strict=True)
        )
        state.ended |= np.isin(chosen, list(stop))
        return shown

    def _prefill(self, prompts: Prompts, state: _Progress, sampling: Sampling, step: Step) -> Array:
        executor = self.plans.executor(step)
        count = prompts.tokens.shape[1]
        feeds = {self.plans.interface.tokens: prompts.tokens, LAST: prompts.last}
        if self.plans.interface.mask:
            feeds[MASK] = prompts.counts
        if self.plans.interface.positions:
            feeds[POSITIONS] = prompts.positions
        with executor.taken() as context:
            self.cache.reserve(count, context.queue)
            outputs = self._bound_outputs(self.cache.buffers)
            results = _ran(context, feeds, {SEQUENCE: count}, {**outputs, **self._given.buffers})
            context.bind(dict.fromkeys(outputs))  # buffers that the cache outgrows are held by nobody
        self.cache.length = count
        if prompts.is_padded and not self.plans.facts.counts and not np.isfinite(results[VALUES]).all():
            raise GenerateError(
                "the model gives no numbers for prompts that are padded on the left, where no token counts; give "
                "prompts of one length, or one after the other"
            )
        return self._chosen(results, state, sampling, step.selection)

    def _decode(self, tokens: Array, state: _Progress, sampling: Sampling, selection: Selection) -> Array:
        executor = self.plans.executor(self.plans.of_tokens(selection))
        sequences, past = self.sizes.sequences, self.cache.length
        feeds = {self.plans.interface.tokens: tokens[:, None], LAST: np.zeros((sequences, 1), np.int64)}
        if self.plans.interface.mask:
            feeds[MASK_BEFORE] = state.counts[:, :past]
            feeds[MASK_NEW] = np.ones((sequences, 1), np.int64)
        if self.plans.interface.positions:
            feeds[POSITIONS] = state.lengths[:, None]
        growth = self.plans.facts.growth
        with executor.taken() as context:
            self.cache.reserve(past + 1, context.queue)
            targets = self._rows if growth.in_place else self.cache.spare
            bound = {**self.cache.buffers, **self._bound_outputs(targets), **self._given.buffers}
            results = _ran(context, feeds, {PAST: past}, bound)
            if growth.kind == COUNTED:
                self._check_counts(results[COUNTS], state.lengths)
            if growth.in_place:
                places = state.lengths.tolist() if growth.kind == COUNTED else [past] * sequences
                self.cache.append(self._rows, places, context.queue)
            else:
                self.cache.swap()
        state.counts[:, past] = 1
        state.lengths += 1
        return self._chosen(results, state, sampling, selection)

    def _check_counts(self, counts: Array, lengths: Array) -> None:
        """Refuse a model that does not put new rows behind the tokens that each sequence has."""
        if (counts[:, 0] != lengths).any():
            raise GenerateError(
                f"the model puts new keys behind {counts[:, 0].tolist()} tokens of the sequences, which have "
                f"{lengths.tolist()}; export it again, with counts that follow from {MASK}"
            )

    def _bound_outputs(self, buffers: Mapping[str, Any]) -> dict[str, Any]:
        return {part.output: buffers[part.input] for part in self.plans.parts}

    def _chosen(
        self, results: Mapping[str, Array], state: _Progress, sampling: Sampling, selection: Selection
    ) -> Array:
        """The next token of each sequence, [sequences]."""
        if selection.kind == GREATEST:
            return results[TOKEN]
        if sampling.selection(self.plans.facts.vocabulary).kind == GREATEST:
            return np.asarray(results[VALUES].argmax(axis=1))
        places = [
            drawn(row, sampling, generator) for row, generator in zip(results[VALUES], state.generators, strict=True)
        ]
        if selection.kind == ALL:
            return np.array(places, np.int64)
        return np.take_along_axis(results[PLACES], np.array(places)[:, None], axis=1)[:, 0]


def _ran(
    context: ExecutionContext, feeds: Mapping[str, Array], extents: dict[str, int], bound: Mapping[str, Any]
) -> dict[str, Array]:
    context.bind(bound)
    return context.run(feeds, extents)
