"""Execution contexts by need: runs of one plan that happen at once have one each, up to a bound."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from smartmem_rules.runtime.contexts.context import BoundsError, ExecutionContext
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.contexts.outputs import UnendedLoopError
from smartmem_rules.runtime.forks import refuse_in_child

_LOOK = 0.5
"""Seconds between two looks of a waiting thread at whether a context can be opened: one that an interrupt lost between
two instructions is noticed by nothing else."""


class _Permit:
    """One of the contexts that may exist; it ends with whatever holds it."""


class ContextPool:
    """Hands out execution contexts, the one that was used last first, and opens new ones while there may be more.

    Where the device has no memory for one more context, runs wait for one of those that there are.
    """

    def __init__(self, make: Callable[[int], ExecutionContext], most: int) -> None:
        """Open the first context.

        Args:
            make: opens a context, given how many there are with it.
            most: how many contexts there may be.

        Raises:
            RunError: the device has too little memory.
        """
        self._make = make
        self._most = max(1, most)
        self._changed = threading.Condition()
        self._permits: weakref.WeakSet[_Permit] = weakref.WeakSet()
        self._idle: list[tuple[_Permit, ExecutionContext]] = []
        permit = self._permit()
        assert permit is not None
        self._idle.append((permit, make(1)))

    @property
    def opened(self) -> int:
        """How many contexts there are."""
        return len(self._permits)

    @contextmanager
    def taken(self) -> Iterator[ExecutionContext]:
        """A context for the `with` block alone; at its end the device has done all that was asked of it.

        Raises:
            RunError: the process is a fork of the one that opened the device, or there is no memory for any context.
        """
        refuse_in_child(RunError)
        permit, context = self._take()
        try:
            try:
                yield context
            finally:  # constants lie in memory of the host, which must not go while a kernel reads it
                context.finish()
        except (BoundsError, UnendedLoopError):  # the run came to its end
            self._give_back(permit, context)
            raise
        except BaseException:
            # counters of work-groups that meet may be left in the middle of a run: the context is not used again
            del permit, context
            self._wake()
            raise
        self._give_back(permit, context)

    def _permit(self) -> _Permit | None:
        if len(self._permits) >= self._most:
            return None
        permit = _Permit()
        self._permits.add(permit)
        return permit

    def _take(self) -> tuple[_Permit, ExecutionContext]:
        while True:
            with self._changed:
                if self._idle:
                    return self._idle.pop()
                permit = self._permit()
                if permit is None:
                    self._changed.wait(_LOOK)
                    continue
            try:
                return permit, self._make(self.opened)
            except RunError:
                del permit
                if not self.opened:
                    raise
                self._most = self.opened

    def _give_back(self, permit: _Permit, context: ExecutionContext) -> None:
        with self._changed:
            self._idle.append((permit, context))
            self._changed.notify()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()
