"""Generates tokens: a prompt fills the cache, then each token of every sequence gives the next one."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from smartmem_rules.arguments import ARRAYS, CALLED, EXTENTS, MODEL, Kind, takes
from smartmem_rules.decoding.cache import Cache, Sizes
from smartmem_rules.decoding.choosing import Array, Sampling, Selection
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.interface import MASK, POSITIONS
from smartmem_rules.decoding.model.parts import OWN, TYPES
from smartmem_rules.decoding.model.unchanging import checked_inputs
from smartmem_rules.decoding.plans import Plans, plans_of
from smartmem_rules.decoding.prompts import Prompts, several_of, stop_tokens
from smartmem_rules.decoding.session import Session
from smartmem_rules.decoding.steps import Steps
from smartmem_rules.stages import Progress

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.planned import PlanOptions

BOUND, BLOCK = 1024, 256
"""Tokens that the cache holds at most, and by how many it grows, where the caller does not say."""
TOKENS = 128
"""How many are generated where the caller does not say."""
_SAMPLING = Kind("a Sampling", lambda value: isinstance(value, Sampling)).or_none()
_ASKED = {"sampling": _SAMPLING, "inputs": ARRAYS.or_none()}


class Generator:
    """A model with plans for prompts and for the tokens behind them, and a cache on the device.

    One call at a time uses it; a call that fails or is left leaves it ready for the next one.
    """

    @takes(model=MODEL, progress=CALLED.or_none(), dims=EXTENTS.or_none(), with_past=MODEL.or_none())
    def __init__(
        self,
        model: ModelSource,
        sequences: int = 1,
        bound: int = BOUND,
        block: int = BLOCK,
        progress: Progress | None = None,
        cache: str = OWN,
        dims: Mapping[str, int] | None = None,
        with_past: ModelSource | None = None,
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
                position, sequence and head (`decoding.model.parts`).
            dims: of the open extents of further inputs (an encoder's states), which stay the same over the steps.
            with_past: where two files are one model, the decoder behind the cache; `model` is then the one for prompts.
            options: `rules`, `device`, `level`, `dtype`, `disable` and `limits` of `optimize`.

        Raises:
            GenerateError: the model has no cache, two models do not belong together, or a number is out of its range.
            GraphError: the model is damaged or uses something that no rule covers.
            DeviceError: there is no such device.
        """
        for name, value in (("sequences", sequences), ("bound", bound), ("block", block)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise GenerateError(f"{name} cannot be {value!r}; give a number from 1 on")
        if bound < 2:
            raise GenerateError("a cache of 1 token holds no prompt with a token behind it; give a bound from 2 on")
        if not isinstance(cache, str) or cache not in TYPES:
            raise GenerateError(f"there is no cache of type {cache!r}; give {' or '.join(TYPES)}")
        self.plans: Plans = plans_of(
            model, sequences, bound, cache, dims or {}, cast("PlanOptions", options), progress, with_past
        )
        self.sizes = Sizes(sequences=sequences, block=block, bound=bound)
        in_place = self.plans.facts.growth.in_place
        self.cache = Cache(self.plans.parts, self.sizes, self.plans.device, self.plans.home.context, not in_place)
        self._steps = Steps(self.plans, self.cache)
        self._busy = threading.Lock()

    @takes(sampling=_SAMPLING)
    def prepare(self, sampling: Sampling | None = None) -> None:
        """Make all plans and compile all of their kernels now, by two tokens; raises what `optimize` does."""
        inputs = {one.name: np.zeros(one.shape, one.numpy_dtype) for one in self.plans.facts.further}
        for _ in self.stream([[0]] * self.sizes.sequences, 2, sampling, inputs=inputs):
            pass

    @takes(**_ASKED)
    def stream(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]],
        tokens: int | None = TOKENS,
        sampling: Sampling | None = None,
        stop: Collection[int] = (),
        inputs: Mapping[str, object] | None = None,
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
        read = self.checked(prompts, tokens, chosen, inputs, stop)
        ends = stop_tokens(stop, self.plans.facts.vocabulary)
        given = checked_inputs(self.plans.facts.further, inputs)
        return self._streamed(read, tokens, chosen, ends, given)

    @takes(**_ASKED)
    def generate(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]],
        tokens: int = TOKENS,
        sampling: Sampling | None = None,
        stop: Collection[int] = (),
        inputs: Mapping[str, object] | None = None,
    ) -> list[list[int]]:
        """The new tokens of each sequence, a stop token at the end included; see `stream`."""
        found: list[list[int]] = [[] for _ in range(self.sizes.sequences)]
        for step in self.stream(prompts, tokens, sampling, stop, inputs):
            for own, token in zip(found, step, strict=True):
                if token is not None:
                    own.append(token)
        return found

    @contextmanager
    @takes(**_ASKED)
    def session(
        self,
        sampling: Sampling | None = None,
        stop: Collection[int] = (),
        inputs: Mapping[str, object] | None = None,
    ) -> Iterator[Session]:
        """Several turns of one sequence, of which each goes on behind all before it; the cache is kept meanwhile.

        Args:
            sampling, stop, inputs: as of `stream`, for all turns.

        Raises:
            GenerateError: this generator is in use, has several sequences or writes its cache anew, or an option cannot
                be used.
        """
        if self.sizes.sequences != 1 or not self.plans.facts.growth.in_place:
            why = "writes its cache anew in each step" if self.sizes.sequences == 1 else "has several sequences"
            raise GenerateError(f"a session is of one sequence whose cache stays where it is, and this generator {why}")
        chosen = sampling or Sampling()
        self._selection(chosen)
        ends = stop_tokens(stop, self.plans.facts.vocabulary)
        given = checked_inputs(self.plans.facts.further, inputs)
        with self._alone():
            session = Session(self._steps, self._turn, chosen, ends, given)
            try:
                yield session
            finally:
                session.close()

    def _turn(self, prompt: Sequence[int], before: int, tokens: int) -> Prompts:
        """The prompt of a turn, if the cache has room for it and for what follows behind as many tokens."""
        read = self._prompts(prompt)
        self._check_room(read, tokens, before)
        return read

    # --- what is given ---

    def checked(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]],
        tokens: int | None,
        sampling: Sampling,
        inputs: Mapping[str, object] | None = None,
        stop: Collection[int] = (),
    ) -> Prompts:
        """The prompts, if they can be continued so with further inputs; raises GenerateError, and nothing runs."""
        stop_tokens(stop, self.plans.facts.vocabulary)
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

    def _check_room(self, prompts: Prompts, tokens: int, before: int = 0) -> None:
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
            raise GenerateError(f"the number of tokens cannot be {tokens!r}; give one from 1 on")
        needed = before + prompts.tokens.shape[1] + tokens - 1  # the last one is not put into the cache
        if needed > self.sizes.bound:
            earlier = f"{before} tokens before, " if before else ""
            raise GenerateError(
                f"{earlier}{prompts.tokens.shape[1]} tokens of the prompt and {tokens} new ones need a cache of "
                f"{needed}, and it is bound to {self.sizes.bound}; ask for fewer tokens, or make the bound greater"
            )

    # --- the steps ---

    def _streamed(
        self,
        prompts: Prompts,
        tokens: int | None,
        sampling: Sampling,
        stop: frozenset[int],
        given: Mapping[str, Array],
    ) -> Iterator[tuple[int | None, ...]]:
        with self._alone():
            state = self._steps.begin(prompts, sampling, tokens, given)
            yield state.shown(stop)
            made = 1
            while (tokens is None or made < tokens) and not state.ended.all():
                self._steps.decode(state)
                made += 1
                yield state.shown(stop)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The cache, for nobody else."""
        if not self._busy.acquire(blocking=False):
            raise GenerateError("this generator is in use; finish or close what is being streamed, or make another one")
        try:
            yield
        finally:
            self.cache.clear()
            self._busy.release()
