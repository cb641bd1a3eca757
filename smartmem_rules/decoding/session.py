"""Several turns of one sequence over a cache that is kept: each prompt stands behind all tokens before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from smartmem_rules.decoding.choosing import Array, Sampling
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.prompts import Prompts
from smartmem_rules.decoding.steps import State, Steps

TOKENS = 128
"""How many are generated where the caller does not say."""


class Session:
    """Made by `Generator.session`, within which it can be used.

    A turn that cannot begin changes nothing. One that is left keeps the tokens that it gave.

    Attributes:
        tokens: all so far, of prompts and generated ones.
    """

    def __init__(
        self,
        steps: Steps,
        checked: Callable[[Sequence[int], int, int], Prompts],
        sampling: Sampling,
        stop: frozenset[int],
        given: Mapping[str, Array],
    ) -> None:
        """Args:
        checked: gives a prompt behind so many tokens and before so many, or raises GenerateError.
        """
        self.tokens: list[int] = []
        self._steps = steps
        self._checked = checked
        self._sampling = sampling
        self._stop = stop
        self._given = given
        self._state: State | None = None
        self._streaming = False
        self._closed = False

    def generate(self, prompt: Sequence[int], tokens: int = TOKENS) -> list[int]:
        """The tokens behind all before them and a prompt; see `stream`."""
        return list(self.stream(prompt, tokens))

    def stream(self, prompt: Sequence[int], tokens: int = TOKENS) -> Iterator[int]:
        """The next tokens, one by one, a stop token at the end included.

        Later prompts are put into the cache a token at a time.

        Args:
            prompt: token numbers.
            tokens: how many at most.

        Raises:
            GenerateError: the prompt cannot be used, or there is no room for it; the session can go on.
            TooLargeError, PlanError, BuildError, RunError: as `Generator.stream`.
        """
        self._refuse()
        return self._turn(self._checked(prompt, len(self.tokens), tokens), tokens)

    def close(self) -> None:
        """End the session."""
        self._closed = True

    def _refuse(self) -> None:
        if self._closed:
            raise GenerateError("this session is over; begin another one")
        if self._streaming:
            raise GenerateError("a turn of this session is being streamed; finish or close it first")

    def _turn(self, prompt: Prompts, tokens: int) -> Iterator[int]:
        self._refuse()
        self._streaming = True
        try:
            state = self._begun(prompt, tokens)
            self.tokens += prompt.tokens[0].tolist()
            yield self._shown(state)
            for _ in range(tokens - 1):
                if state.ended.all() or self._closed:
                    break
                self._steps.decode(state)
                yield self._shown(state)
        finally:
            self._streaming = False

    def _begun(self, prompt: Prompts, tokens: int) -> State:
        """The state with the first token of a turn chosen."""
        if self._state is None:
            self._state = self._steps.begin(prompt, self._sampling, tokens, self._given)
        else:
            self._steps.go_on(self._state, prompt.tokens[0].tolist(), tokens)
        return self._state

    def _shown(self, state: State) -> int:
        (token,) = state.shown(self._stop)
        assert token is not None  # a turn ends with the token that ends it
        self.tokens.append(token)
        return token
