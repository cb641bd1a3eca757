"""What all errors that a user can do something about have in common."""

from __future__ import annotations


class SmartmemError(Exception):
    """Something given to the library cannot be used: a model, a rule file, a plan, a device, an option.

    The message says what, where, and what to do. Every other exception that leaves the library is a bug of it.
    """
