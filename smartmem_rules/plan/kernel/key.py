"""The key of a kernel for tuning: its structure and shapes, without the names of its variables and tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from smartmem_rules.plan.kernel.launch import Chain, Launch, Single
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.tensor.atoms import Var


def kernel_key(kernel: Kernel, tensors: Mapping[str, Stored]) -> str:
    """A digest of what the kernel computes, and of the type, layout and storage of each tensor in memory."""
    return _digest(_parts(kernel), tensors)


def launch_key(launch: Launch, tensors: Mapping[str, Stored]) -> str:
    """The same of a launch: of several kernels a digest of all of them, and of the way in which they share it."""
    return _digest(_launch_parts(launch), tensors)


def _digest(parts: tuple[object, ...], tensors: Mapping[str, Stored]) -> str:
    names: dict[object, str] = {}
    text = _text(parts, names)
    memory = [
        f"{short}:{stored.type}{stored.layout}{stored.storage}{stored.role == 'constant'}"
        for name, short in names.items()
        if isinstance(name, str) and (stored := tensors.get(name)) is not None
    ]
    return hashlib.sha256("\n".join([text, *memory]).encode()).hexdigest()[:24]


def _parts(kernel: Kernel) -> tuple[object, ...]:
    return (kernel.form, kernel.axes, kernel.stores, kernel.stages, kernel.contraction, kernel.parts)


def _launch_parts(launch: Launch) -> tuple[object, ...]:
    if isinstance(launch, Single):
        return _parts(launch.kernel)
    rows = launch.rows if isinstance(launch, Chain) else None
    # as a kernel's parts, with nothing in the place of equations
    own = (launch.form, () if rows is None else rows.axes, (), (), None, ())
    return (*own, tuple(map(_launch_parts, launch.steps)))


def _text(value: object, names: dict[object, str]) -> str:
    if isinstance(value, Var):
        return f"{names.setdefault(value, f'v{len(names)}')}:{value.extent}"
    if isinstance(value, tuple | list):
        return f"({' '.join(_text(one, names) for one in value)})"
    if is_dataclass(value):
        parts = []
        for field in fields(value):
            if not field.compare:  # says nothing of what is computed
                continue
            own = getattr(value, field.name)
            # tensors and stages are called by names that differ from model to model
            named = isinstance(own, str) and field.name in ("tensor", "name")
            parts.append(names.setdefault(own, f"t{len(names)}") if named else _text(own, names))
        return f"{type(value).__name__}({' '.join(parts)})"
    return repr(value)
