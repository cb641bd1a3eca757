"""Judges rules: tests in exact arithmetic, proofs, counterexamples, mutants, discovery.

The package can be called: `smartmem_rules.verify(...)` is `smartmem_rules.api.verify`, although a package of that name
hides the function as soon as anything in it is imported.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartmem_rules.verify.results import Verification


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Verification:
        from smartmem_rules.api import verify

        return verify(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
