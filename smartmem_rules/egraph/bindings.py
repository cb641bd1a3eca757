"""egglog's engine without its Python layer, which nothing here uses and which takes a fifth of a second to import."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from egglog import bindings
else:

    def _engine() -> ModuleType:
        """The compiled module of the package, the same that the package imports before or later."""
        name = "egglog.bindings"
        if name in sys.modules:
            return sys.modules[name]
        package = importlib.util.find_spec("egglog")
        found = None if package is None else PathFinder.find_spec(name, package.submodule_search_locations)
        if found is None or found.loader is None:
            return importlib.import_module(name)
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    bindings = _engine()

__all__ = ["bindings"]
