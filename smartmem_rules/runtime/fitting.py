"""Whether a device can run a plan, and which of several plans it runs: as libsmartmem's fit.c and choice.c do."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.memory import RunError, refuse_image
from smartmem_rules.runtime.devices import AUTO, Device
from smartmem_rules.runtime.target import device_for
from smartmem_rules.tensor.ranges import largest


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """A plan and the device that is to run it."""

    plan: Plan
    device: Device


def fitting(plans: Sequence[Plan], device: str = AUTO) -> Fitting:
    """Of plans of one model the first whose profile names the device, else the first that stands in for its type.

    Args:
        device: as of `device_for`; `auto` is one for which one of the plans was made, or else any.

    Raises:
        RunError: the device can run none of them, or none is for it; the message says why, plan by plan.
        DeviceError: nothing has this name, or there is no device.
    """
    chosen = _device_of(plans, device)
    found: dict[int, Plan] = {}
    reasons = []
    for number, plan in enumerate(plans, 1):
        near = _nearness(plan, chosen)
        try:
            if not near:
                kinds = "name and type" if plan.demands.types else "name"
                raise RunError(f"it is for devices of another {kinds}")
            refuse_unfit(plan, chosen)
        except RunError as error:
            reasons.append(f"  plan {number}, for {plan.device}: {error}")
        else:
            found.setdefault(near, plan)
    if not found:
        raise RunError(
            f"none of the {len(plans)} plans is for {chosen.name} ({chosen.platform}); name another device, or export "
            "the model for it:\n" + "\n".join(reasons)
        )
    return Fitting(plan=found[max(found)], device=chosen)


def _device_of(plans: Sequence[Plan], name: str) -> Device:
    candidates = [device_for(plan.statistics.device, name) for plan in plans]
    made_on = (one for one, plan in zip(candidates, plans, strict=True) if one.name == plan.statistics.device)
    return next(made_on, candidates[-1])


def _nearness(plan: Plan, device: Device) -> int:
    """2 if the plan's profile names the device, 1 if it stands in for devices of its type, else 0."""
    if any(_found(pattern, f"{device.platform} {device.name}") for pattern in plan.demands.names):
        return 2
    return int(device.kind in plan.demands.types)


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text, re.IGNORECASE) is not None
    except re.error:
        return False  # a plan may come from anywhere


def refuse_unfit(plan: Plan, device: Device) -> None:
    """Refuse a plan that a device cannot run, before anything is built.

    Raises:
        RunError: the device lacks an extension or a capability, takes no such work-groups or images, or is not known to
            run work-groups that wait for each other.
    """
    waits = any(one.launch.form == "ordered" and not _runs_ordered(one.source, device) for one in plan.enqueues)
    if waits:
        raise RunError(
            f"the plan has launches whose work-groups wait for each other, which {device.name} is not known "
            "to run; optimize the model again on this device"
        )
    _check_extensions(plan, device)
    _check_groups(plan, device)
    for slot in plan.slots:
        if slot.memory == "image":
            refuse_image(slot.size, device)
    for tensor in plan.tensors.values():
        if tensor.layout.memory == "image":
            width, height = tensor.layout.image_size(tensor.type.shape)
            refuse_image((largest(width), largest(height)), device)


def _runs_ordered(source: Source, device: Device) -> bool:
    """Whether work-groups of a launch may wait for each other; those that take tasks in order may everywhere."""
    if source.waiting is None:
        return device.runs_ordered
    return device.ordering_atomics or "-cl-std=CL3.0" not in source.options


def _check_extensions(plan: Plan, device: Device) -> None:
    """Refuse kernels of instructions or functions that the device does not have."""
    asked = plan.demands
    if device.capability < asked.capability:
        raise RunError(
            f"the plan has instructions of NVIDIA's compute capability {'.'.join(map(str, asked.capability))}, which "
            f"{device.name} does not have; optimize the model again on this device"
        )
    missing = [name for name in asked.extensions if name not in device.extensions]
    if missing:
        raise RunError(
            f"the plan needs the extension {missing[0]}, which {device.name} does not have; optimize the model again "
            "on this device"
        )


def _check_groups(plan: Plan, device: Device) -> None:
    """Refuse work-groups that the device does not take, by their size or their local memory."""
    asked, local = plan.demands, device.local_memory
    if device.capability > (0, 0) and device.capability >= asked.arrays_capability:
        local = max(local, asked.arrays)
    for launch, source in zip(plan.launches, plan.sources, strict=True):
        items = math.prod(source.local_size or ())
        if items > device.work_group:
            raise RunError(
                f"the kernel {launch.name} has work-groups of {items} work-items, and {device.name} takes at most "
                f"{device.work_group}; optimize the model again on this device"
            )
        if source.local_bytes > local:
            raise RunError(
                f"the kernel {launch.name} takes {source.local_bytes} bytes of local memory, and {device.name} has "
                f"{local}; optimize the model again on this device"
            )
