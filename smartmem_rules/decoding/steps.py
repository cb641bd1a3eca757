"""The steps of a call: a prompt fills the cache, then each token of every sequence gives the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.decoding.cache import Cache
from smartmem_rules.decoding.choosing import ALL, GREATEST, Array, Sampling, Selection, drawn
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.graphs import (
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
from smartmem_rules.decoding.model.growth import COUNTED
from smartmem_rules.decoding.model.interface import MASK, POSITIONS
from smartmem_rules.decoding.plans import Plans
from smartmem_rules.decoding.prompts import Prompts
from smartmem_rules.decoding.unchanging_memory import UnchangingMemory
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.context import ExecutionContext


@dataclass(kw_only=True)
class State:
    """How far the sequences of a call are.

    Attributes:
        counts: for each place of the cache whether it counts, [sequences, bound], int64.
        lengths: how many tokens each sequence has in the cache.
        ended: which of them came to a stop token.
        chosen: the token of each that was chosen last, which is not in the cache yet.
    """

    counts: Array
    lengths: Array
    ended: Array
    sampling: Sampling
    generators: list[np.random.Generator]
    chosen: Array

    def shown(self, stop: frozenset[int]) -> tuple[int | None, ...]:
        """The tokens that were chosen; sequences that had ended before have none."""
        pairs = zip(self.ended.tolist(), self.chosen.tolist(), strict=True)
        shown = tuple(None if ended else int(token) for ended, token in pairs)
        self.ended |= np.isin(self.chosen, list(stop))
        return shown


class Steps:
    """Runs the plans of a model on a cache; for one call at a time."""

    def __init__(self, plans: Plans, cache: Cache) -> None:
        self.plans = plans
        self.cache = cache
        self._rows = cache.new_rows() if plans.facts.growth.in_place else {}
        self._given = UnchangingMemory(plans.facts.given, plans.home.context)

    def begin(self, prompts: Prompts, sampling: Sampling, tokens: int | None, given: Mapping[str, Array]) -> State:
        """Fill the cache with prompts, and choose the first token of each.

        Args:
            tokens: how many there will be at most; None until the cache is full.
            given: the further inputs of the model.

        Raises:
            TooLargeError: the device has too little memory; nothing has run.
            GraphError, PlanError, BuildError, RunError: a plan cannot be made, or the device refuses it.
        """
        selection = sampling.selection(self.plans.facts.vocabulary)
        first = self._of_prompts(prompts, selection)
        longest, bound = prompts.tokens.shape[1], self.cache.sizes.bound
        steps = [first] if tokens == 1 else [first, self.plans.of_tokens(selection)]
        self.plans.ready(steps, self.cache, bound if tokens is None else longest + tokens - 1)
        self._given.take(given, self.plans)
        sequences = self.cache.sizes.sequences
        counts = np.zeros((sequences, bound), np.int64)
        counts[:, :longest] = prompts.counts
        self.cache.clear()
        state = State(
            counts=counts,
            lengths=prompts.lengths.copy(),
            ended=np.zeros(sequences, bool),
            sampling=sampling,
            generators=sampling.generators(sequences),
            chosen=np.zeros(sequences, np.int64),
        )
        self._prefill(prompts, state, first)
        return state

    def _of_prompts(self, prompts: Prompts, selection: Selection) -> Step:
        """The step for prompts; where they are padded in front, the host looks at all logits."""
        if prompts.is_padded and not self.plans.facts.counts:
            selection = Selection(kind=ALL)
        return self.plans.of_prompts(selection)

    def _prefill(self, prompts: Prompts, state: State, step: Step) -> None:
        count = prompts.tokens.shape[1]
        feeds = {self.plans.interface.tokens: prompts.tokens, LAST: prompts.last}
        if self.plans.interface.mask:
            feeds[MASK] = prompts.counts
        if self.plans.interface.positions:
            feeds[POSITIONS] = prompts.positions
        with self.plans.executor(step).taken() as context:
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
        state.chosen = self._chosen(results, state, step.selection)

    def decode(self, state: State) -> None:
        """Put the token of each sequence that was chosen last into the cache, and choose the next one.

        Raises:
            CacheFullError: the cache holds as many tokens as its bound says.
            GenerateError: the model chose a token that it does not know, or gives logits that are no numbers.
            RunError: the device refuses a kernel, or has too little memory.

        Where that fails, the state and a cache that is written in place are what they were.
        """
        step, before = self._of_tokens(state), self.cache.length
        try:
            state.chosen = self._chosen(self._put(state, step), state, step.selection)
        except BaseException:
            self._put_back(state, before)
            raise

    def go_on(self, state: State, prompt: Sequence[int], tokens: int) -> None:
        """Put the token that was chosen last and a prompt behind it into the cache of one sequence; choose the next.

        Where that fails, the cache and the state are what they were.

        Args:
            tokens: how many there will be behind the prompt at most.

        Raises:
            TooLargeError, GraphError, PlanError, BuildError, RunError: as `begin`.
        """
        step = self._of_tokens(state)
        before, chosen = self.cache.length, state.chosen
        self.plans.ready([step], self.cache, before + len(prompt) + tokens)
        try:
            for token in prompt:
                self._put(state, step)
                state.chosen = np.array([token], np.int64)
            self.decode(state)
        except BaseException:
            self._put_back(state, before)
            state.chosen = chosen
            raise
        state.ended[:] = False

    def _put_back(self, state: State, before: int) -> None:
        """Forget what was put into the cache behind so many positions."""
        state.lengths -= state.counts[:, before:].sum(axis=1)
        state.counts[:, before:] = 0
        self.cache.length = before

    def _of_tokens(self, state: State) -> Step:
        return self.plans.of_tokens(state.sampling.selection(self.plans.facts.vocabulary))

    def _put(self, state: State, step: Step) -> dict[str, Array]:
        """Put the tokens that were chosen last into the cache; what the step gives besides."""
        sequences, past = self.cache.sizes.sequences, self.cache.length
        _check_known(state.chosen, self.plans.facts.vocabulary)
        feeds = {self.plans.interface.tokens: state.chosen[:, None], LAST: np.zeros((sequences, 1), np.int64)}
        if self.plans.interface.mask:
            feeds[MASK_BEFORE] = state.counts[:, :past]
            feeds[MASK_NEW] = np.ones((sequences, 1), np.int64)
        if self.plans.interface.positions:
            feeds[POSITIONS] = state.lengths[:, None]
        growth = self.plans.facts.growth
        with self.plans.executor(step).taken() as context:
            self.cache.reserve(past + 1, context.queue)
            targets = self._rows if growth.in_place else self.cache.spare
            bound = {**self.cache.buffers, **self._bound_outputs(targets), **self._given.buffers}
            results = _ran(context, feeds, {PAST: past}, bound)
            if growth.kind == COUNTED:
                _check_counts(results[COUNTS], state.lengths)
            if growth.in_place:
                places = state.lengths.tolist() if growth.kind == COUNTED else [past] * sequences
                self.cache.append(self._rows, places, context.queue)
            else:
                self.cache.swap()
        state.lengths += 1
        state.counts[:, past] = 1
        return results

    def _bound_outputs(self, buffers: Mapping[str, Any]) -> dict[str, Any]:
        return {part.output: buffers[part.input] for part in self.plans.parts}

    def _chosen(self, results: Mapping[str, Array], state: State, selection: Selection) -> Array:
        """The next token of each sequence, [sequences]."""
        if selection.kind == GREATEST:
            return results[TOKEN]
        if state.sampling.selection(self.plans.facts.vocabulary).kind == GREATEST:
            return np.asarray(results[VALUES].argmax(axis=1))
        rows = zip(results[VALUES], state.generators, strict=True)
        places = [drawn(row, state.sampling, generator) for row, generator in rows]
        if selection.kind == ALL:
            return np.array(places, np.int64)
        return np.take_along_axis(results[PLACES], np.array(places)[:, None], axis=1)[:, 0]


def _check_known(chosen: Array, vocabulary: int | None) -> None:
    """Refuse a token that is no row of the model's tables: of a model whose logits are more than these."""
    if vocabulary is not None and (most := max(chosen.tolist())) >= vocabulary:
        raise GenerateError(
            f"the model chose the token {most}, and its table has {vocabulary}, from 0 on; export it again with as "
            "many logits as tokens"
        )


def _check_counts(counts: Array, lengths: Array) -> None:
    """Refuse a model that does not put new rows behind the tokens that each sequence has."""
    if (counts[:, 0] != lengths).any():
        raise GenerateError(
            f"the model puts new keys behind {counts[:, 0].tolist()} tokens of the sequences, which have "
            f"{lengths.tolist()}; export it again, with counts that follow from {MASK}"
        )


def _ran(
    context: ExecutionContext, feeds: Mapping[str, Array], extents: dict[str, int], bound: Mapping[str, Any]
) -> dict[str, Array]:
    context.bind(bound)
    return context.run(feeds, extents)
