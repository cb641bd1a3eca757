"""OpenCL contexts, and programs built in them, that the plans of a process share."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from smartmem_rules.runtime.devices import Device

RECENT = 64
"""Programs that stay where a driver's context stays, too: plans made anew would build them again."""
_contexts: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_programs: WeakKeyDictionary[Any, WeakValueDictionary[str, Any]] = WeakKeyDictionary()
_open_contexts: dict[Any, Any] = {}
"""By device handle the context that stays open; it holds no memory of a plan."""
_recent: dict[int, Any] = {}


def context_on(device: Device) -> Any:
    """An OpenCL context on a device: that of the plans that are there, where the driver asks for that, or a new one.

    Elsewhere each plan has its own, because an error on a GPU may leave nothing usable in a context. The first one
    stays open where the driver starts anew after the last one.
    """
    import pyopencl as cl

    context = _contexts.get(device.handle) if device.workaround("shares_programs") else None
    if context is None:
        context = cl.Context([device.handle])
    if device.workaround("shares_programs"):
        _contexts[device.handle] = context
    if device.workaround("keeps_context_open"):
        _open_contexts.setdefault(device.handle, context)
    return context


def programs_in(context: Any, device: Device) -> MutableMapping[str, Any]:
    """The programs that are built in a context and in use, by key; an empty table where plans do not share them."""
    if not device.workaround("shares_programs"):
        return {}
    return _programs.setdefault(context, WeakValueDictionary())


def note_use(program: Any, device: Device) -> None:
    """A plan uses a shared program, which stays with the context that stays, until others were used more recently."""
    if device.workaround("shares_programs") and device.workaround("keeps_context_open"):
        _recent.pop(id(program), None)
        _recent[id(program)] = program
        while len(_recent) > RECENT:
            _recent.pop(next(iter(_recent)), None)
