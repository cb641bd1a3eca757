"""What all errors that a user can do something about have in common, and what an exception was raised from."""

from __future__ import annotations

from collections.abc import Iterator


class SmartmemError(Exception):
    """Something given to the library cannot be used: a model, a rule file, a plan, a device, an option.

    The message says what, where, and what to do. Every other exception that leaves the library is a bug of it.
    """


def causes(failure: BaseException | None) -> Iterator[BaseException]:
    """An exception and those from which it was raised, the last one first."""
    while failure is not None:
        yield failure
        failure = failure.__cause__
