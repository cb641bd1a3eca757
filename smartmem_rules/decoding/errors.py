"""Why tokens cannot be generated."""

from __future__ import annotations

from smartmem_rules.errors import SmartmemError


class GenerateError(SmartmemError):
    """A model, a prompt or an option cannot be used for generation; the message says which and what to do.

    Nothing has run on the device then, and the generator can be used further.
    """


class CacheFullError(GenerateError):
    """The cache holds as many tokens as its bound says; what was generated before is right."""
