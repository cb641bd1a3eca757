"""The OpenCL devices of this computer and the device profiles of the rule base."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from smartmem_rules.runtime.program_cache import keep_driver_cache

if TYPE_CHECKING:  # the rule language is not needed to run a plan
    from smartmem_rules.language import syntax as s
    from smartmem_rules.language.rulebase import RuleBase

AUTO = "auto"
_PREFERRED = ("gpu", "accelerator", "cpu", "custom")
_NO_DEVICE = (
    "this computer has no OpenCL device ({reason}); install one, for example the CPU device PoCL with "
    "`pip install pocl-binary-distribution`, or the OpenCL driver of your GPU, and check OCL_ICD_VENDORS if it is set"
)


class DeviceError(Exception):
    """No usable device; the message says which were found and what to do."""


@dataclass(frozen=True)
class Device:
    """One OpenCL device and its limits.

    Attributes:
        place: `P:D`, the numbers of the platform and of the device in it.
        kind: gpu | cpu | accelerator | custom.
        image_width, image_height: the largest image2d_t in texels, 0 without images.
        local_memory, global_memory, largest_allocation: bytes.
        alignment: bytes of which the parts of a buffer begin at multiples.
        host_memory: whether the device computes in the host's memory (a CPU).
        capability: NVIDIA's compute capability, (0, 0) elsewhere.
        half: whether kernels can compute in half precision (storing halves needs nothing).
        ordering_atomics: whether atomic operations of all work-groups can order what they read and write (OpenCL C 3.0).
    """

    place: str
    name: str
    platform: str
    driver: str
    version: str
    kind: str
    images: bool
    image_width: int
    image_height: int
    local_memory: int
    compute_units: int
    global_memory: int
    largest_allocation: int
    alignment: int
    work_group: int
    half: bool
    host_memory: bool
    capability: tuple[int, int]
    subgroups: bool
    ordering_atomics: bool
    handle: Any = field(repr=False, compare=False, default=None)

    @property
    def runs_ordered(self) -> bool:
        """Whether work-groups may wait for each other: on CPUs each has a thread that the system lets run at last."""
        return self.kind == "cpu" and self.ordering_atomics

    def data(self) -> dict[str, Any]:
        """All but the handle, as JSON data."""
        values = asdict(_without_handle(self))
        del values["handle"]
        return values


def _without_handle(device: Device) -> Device:
    from dataclasses import replace

    return replace(device, handle=None)


def devices() -> list[Device]:
    """All devices of all platforms.

    Raises:
        DeviceError: there is none, or no OpenCL loader is installed.
    """
    keep_driver_cache()
    keep_threads_apart()
    keep_work_groups_in_loops()
    try:
        import pyopencl as cl
    except ImportError as error:
        raise DeviceError(_NO_DEVICE.format(reason=f"pyopencl cannot be imported: {error}")) from error
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise DeviceError(_NO_DEVICE.format(reason=str(error).removeprefix("clGetPlatformIDs failed: "))) from error
    found: list[Device] = []
    for p, platform in enumerate(platforms):
        try:
            handles = platform.get_devices()
        except cl.Error:  # a platform without devices is no reason to fail
            continue
        found += [_describe(f"{p}:{d}", platform, handle) for d, handle in enumerate(handles)]
    if not found:
        raise DeviceError(_NO_DEVICE.format(reason="no platform lists a device"))
    return found


def keep_threads_apart() -> None:
    """Have PoCL keep each of its threads on a core of its own; to be called before the first OpenCL call.

    They sleep between kernels, and a scheduler that wakes one often puts it beside the thread that woke it: kernels of
    some hundred microseconds are over before it moves. Where the process may not use all cores, or `$POCL_AFFINITY` is
    set, nothing changes: PoCL numbers cores from the first one on.
    """
    every = set(range(os.cpu_count() or 1))
    if hasattr(os, "sched_getaffinity") and os.sched_getaffinity(0) == every:
        os.environ.setdefault("POCL_AFFINITY", "1")


def keep_work_groups_in_loops() -> None:
    """Have PoCL run the work-items of a group one after the other; to be called before the first OpenCL call.

    PoCL 3.0 vectorises loops over work-items, and a few kernels of work-groups (those of GPUs, for which it stands in)
    then store wrong values; kernels for CPUs have groups of one. `$POCL_WORK_GROUP_METHOD` says otherwise.
    """
    os.environ.setdefault("POCL_WORK_GROUP_METHOD", "loops")


def _describe(place: str, platform: Any, handle: Any) -> Device:
    extensions = handle.extensions.split()
    images = bool(handle.image_support)
    return Device(
        place=place,
        name=handle.name.strip(),
        platform=platform.name.strip(),
        driver=handle.driver_version.strip(),
        version=handle.version.strip(),
        kind=_kind(handle.type),
        images=images,
        image_width=handle.image2d_max_width if images else 0,
        image_height=handle.image2d_max_height if images else 0,
        local_memory=handle.local_mem_size,
        compute_units=handle.max_compute_units,
        global_memory=handle.global_mem_size,
        largest_allocation=handle.max_mem_alloc_size,
        alignment=max(1, handle.mem_base_addr_align // 8),
        work_group=handle.max_work_group_size,
        half="cl_khr_fp16" in extensions,
        host_memory=_kind(handle.type) == "cpu",
        capability=_capability(handle, extensions),
        subgroups="cl_khr_subgroups" in extensions,
        ordering_atomics=_ordering_atomics(handle),
        handle=handle,
    )


def _ordering_atomics(handle: Any) -> bool:
    import pyopencl as cl

    try:
        features = {feature.name for feature in handle.opencl_c_features}
    except (cl.Error, AttributeError):  # of OpenCL 3.0
        return False
    return {"__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_scope_device"} <= features


def _capability(handle: Any, extensions: Collection[str]) -> tuple[int, int]:
    if "cl_nv_device_attribute_query" not in extensions:
        return 0, 0
    return int(handle.compute_capability_major_nv), int(handle.compute_capability_minor_nv)


def _kind(bits: int) -> str:
    import pyopencl as cl

    for name in ("gpu", "cpu", "accelerator"):
        if bits & getattr(cl.device_type, name.upper()):
            return name
    return "custom"


def choose(name: str = AUTO, profiles: Mapping[str, s.Block] | None = None) -> Device:
    """The device of a name.

    Args:
        name: `auto` (a GPU if there is one), `P:D`, a part of a device's or platform's name, or a profile's name.
        profiles: the device profiles whose names count (`RuleBase.devices`).

    Raises:
        DeviceError: nothing has this name, or there is no device at all.
    """
    found = devices()
    if name == AUTO:
        return min(found, key=lambda device: _PREFERRED.index(device.kind))
    if name in (profiles or {}):
        return _for_profile((profiles or {})[name], found)
    wanted = name.lower()
    for device in found:
        if wanted == device.place or wanted in device.name.lower() or wanted in device.platform.lower():
            return device
    known = [device.name for device in found] + [device.platform for device in found] + list(profiles or {})
    raise DeviceError(f"there is no device {name!r}; {_hint(name, known, found, profiles or {})}")


def _hint(name: str, known: Collection[str], found: Sequence[Device], profiles: Mapping[str, s.Block]) -> str:
    from smartmem_rules.language.diagnostics import did_you_mean

    listed = ", ".join(f"{device.place} {device.name} ({device.platform})" for device in found)
    near = did_you_mean(name, known)
    return f"{near + ' ' if near else ''}devices here: {listed}; profiles: {', '.join(sorted(profiles)) or 'none'}"


def _for_profile(profile: s.Block, found: Sequence[Device]) -> Device:
    """The device that a profile describes; where there is none, one that can stand in for running its kernels."""
    for device in found:
        if matches(profile, device):
            return device
    return min(found, key=lambda device: (not device.images, _PREFERRED.index(device.kind)))


def profile_of(device: Device, base: RuleBase) -> s.Block:
    """The profile of the rule base that describes a device, else one of a device of the same type.

    Raises:
        DeviceError: the rule base has no profile at all.
    """
    if not base.devices:
        raise DeviceError("the rules hold no device profile; add a `device NAME { ... }` block to a rule file")
    # the user's profiles come after the built-in ones and win over them
    profiles = list(reversed(base.devices.values()))
    for profile in profiles:
        if matches(profile, device):
            return profile
    for profile in profiles:
        if device.kind in words(profile, "fallback"):
            return profile
    return profiles[0]


def matches(profile: s.Block, device: Device) -> bool:
    """Whether one of the profile's `match "regexp";` entries is found in `PLATFORM DEVICE`."""
    text = f"{device.platform} {device.name}"
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in words(profile, "match"))


def words(profile: s.Block, key: str) -> list[str]:
    """All values of all entries of a key, as text."""
    return [str(value) for entry in profile.entries if entry.key == key for value in entry.values]


def numbers(profile: s.Block, key: str) -> tuple[float, ...]:
    """The numbers of the last entry of a key; none where it is absent."""
    entries = [entry for entry in profile.entries if entry.key == key]
    return tuple(v for v in entries[-1].values if not isinstance(v, str)) if entries else ()
