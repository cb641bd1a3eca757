"""OpenCL contexts, and programs built in them, that the plans of a process share while they are there."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from smartmem_rules.runtime.devices import Device

_Program = tuple[str, tuple[str, ...]]
"""A text, and the compiler's options."""
_contexts: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_programs: WeakKeyDictionary[Any, WeakValueDictionary[_Program, Any]] = WeakKeyDictionary()


def context_on(device: Device) -> Any:
    """An OpenCL context on a device: that of the plans that are there, where the driver asks for that, or a new one.

    Elsewhere each plan has its own, because an error on a GPU may leave nothing usable in a context.
    """
    import pyopencl as cl

    if not device.workaround("shares_programs"):
        return cl.Context([device.handle])
    context = _contexts.get(device.handle)
    if context is None:
        context = _contexts[device.handle] = cl.Context([device.handle])
    return context


def programs_in(context: Any, device: Device) -> MutableMapping[_Program, Any]:
    """The programs that are built in a context and in use; an empty table where plans do not share them."""
    if not device.workaround("shares_programs"):
        return {}
    return _programs.setdefault(context, WeakValueDictionary())
