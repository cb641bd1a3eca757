"""The OpenCL devices of this computer and the device profiles of the rule base."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from smartmem_rules.environment import ANY_DRIVER
from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.blocks.device import Device as Profile
from smartmem_rules.language.blocks.keys import read
from smartmem_rules.language.blocks.workarounds import Workaround
from smartmem_rules.records import dataclass
from smartmem_rules.resources import rules_path
from smartmem_rules.runtime.driver_cache import keep_driver_cache
from smartmem_rules.runtime.forks import note_opened, refuse_in_child
from smartmem_rules.runtime.processor.unknown import name_processor

if TYPE_CHECKING:  # the rule language is not needed to run a plan
    from smartmem_rules.rulebase.base import RuleBase

AUTO = "auto"
_PREFERRED = ("gpu", "accelerator", "cpu", "custom")
_NO_DEVICE = (
    "this computer has no OpenCL device ({reason}); install one, for example the CPU device PoCL with "
    "`pip install pocl-binary-distribution`, or the OpenCL driver of your GPU, and check OCL_ICD_VENDORS if it is set"
)


class DeviceError(SmartmemError):
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
        extensions: the OpenCL extensions that it has.
        ordering_atomics: whether atomic operations can order what all work-groups read and write (OpenCL C 3.0).
        workarounds: the clauses of device files that are about this driver and version.
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
    vector_width: int
    global_memory: int
    largest_allocation: int
    alignment: int
    work_group: int
    half: bool
    host_memory: bool
    capability: tuple[int, int]
    subgroups: bool
    ordering_atomics: bool
    workarounds: tuple[Workaround, ...] = ()
    extensions: tuple[str, ...] = ()
    handle: Any = field(repr=False, compare=False, default=None)

    @property
    def runs_ordered(self) -> bool:
        """Whether work-groups may wait for each other: on CPUs each has a thread that the system lets run at last."""
        return self.kind == "cpu" and self.ordering_atomics

    def workaround(self, effect: str) -> list[str]:
        """The values of the workarounds of an effect (`language.blocks.workarounds.EFFECTS`) for this device."""
        return [one.value for one in self.workarounds if one.effect == effect]

    @property
    def refusal(self) -> str:
        """Why no plan may run on this driver; empty where plans may, or where the user allows all drivers."""
        if ANY_DRIVER.value() == "on":
            return ""
        return next((one.reason for one in self.workarounds if one.effect == "refused"), "")

    def data(self) -> dict[str, object]:
        """All but the handle, as JSON data."""
        values = asdict(_without_handle(self))
        del values["handle"]
        return values


def _without_handle(device: Device) -> Device:
    from dataclasses import replace

    return replace(device, handle=None)


def devices(profiles: Mapping[str, Profile] | None = None) -> list[Device]:
    """All devices of all platforms.

    Args:
        profiles: whose workarounds count; by default those that come with the package.

    Raises:
        DeviceError: there is none, no OpenCL loader is installed, or this process is a fork of one that opened devices.
    """
    refuse_in_child(DeviceError)
    keep_driver_cache()
    workarounds = (
        shipped_workarounds()
        if profiles is None
        else tuple(one for profile in profiles.values() for one in profile.workaround)
    )
    try:
        import pyopencl as cl
    except ImportError as error:
        raise DeviceError(_NO_DEVICE.format(reason=f"pyopencl cannot be imported: {error}")) from error
    note_opened()
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise DeviceError(_NO_DEVICE.format(reason=str(error).removeprefix("clGetPlatformIDs failed: "))) from error
    found: list[Device] = []
    for p, platform in enumerate(platforms):
        _set_environment(platform, workarounds)
        try:
            handles = platform.get_devices()
        except cl.Error:  # a platform without devices is no reason to fail
            continue
        for d, handle in enumerate(handles):
            device = _describe(f"{p}:{d}", platform, handle, workarounds)
            if any(one.effect == "names_processor" for one in device.workarounds):
                level = name_processor(handle)
                if level is not None:
                    device = replace(device, vector_width=min(device.vector_width, level.lanes))
            found.append(device)
    if not found:
        raise DeviceError(_NO_DEVICE.format(reason="no platform lists a device"))
    return found


def _set_environment(platform: Any, workarounds: Sequence[Workaround]) -> None:
    """Set the variables that clauses about a platform ask for; to be called before it opens its devices."""
    # behind `OpenCL X.Y` stands the driver's own version, if anything
    version = re.sub(r"^OpenCL \d+\.\d+", "", platform.version)
    for one in workarounds:
        applies = one.effect == "environment" or (one.effect == "environment_on_all_cores" and _may_use_all_cores())
        if applies and one.concerns(platform.name, version) and one.unless not in os.environ:
            os.environ.setdefault(*one.variable)


def _may_use_all_cores() -> bool:
    every = set(range(os.cpu_count() or 1))
    return hasattr(os, "sched_getaffinity") and os.sched_getaffinity(0) == every


@cache
def shipped_workarounds() -> tuple[Workaround, ...]:
    """The clauses of the device files that come with the package."""
    from smartmem_rules.language.parsing.parser import parse_file  # start-up time

    found: list[Workaround] = []
    for path in sorted((rules_path() / "devices").glob("*.smr")):
        # tests and the rule base check these files
        blocks = [item for item in parse_file(path).items if getattr(item, "kind", "") == "device"]
        found += [one for block in blocks for one in read(Profile, block).workaround]  # type: ignore[arg-type]
    return tuple(found)


def _describe(place: str, platform: Any, handle: Any, workarounds: Sequence[Workaround]) -> Device:
    name = f"{platform.name.strip()} {handle.name.strip()}"
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
        vector_width=max(handle.preferred_vector_width_float, handle.native_vector_width_float),
        global_memory=handle.global_mem_size,
        largest_allocation=handle.max_mem_alloc_size,
        alignment=max(1, handle.mem_base_addr_align // 8),
        work_group=handle.max_work_group_size,
        half="cl_khr_fp16" in extensions,
        host_memory=_kind(handle.type) == "cpu",
        capability=_capability(handle, extensions),
        subgroups="cl_khr_subgroups" in extensions,
        ordering_atomics=_ordering_atomics(handle),
        workarounds=tuple(one for one in workarounds if one.concerns(name, handle.driver_version)),
        extensions=tuple(extensions),
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


def choose(name: str = AUTO, profiles: Mapping[str, Profile] | None = None) -> Device:
    """The device of a name.

    Args:
        name: `auto` (a GPU if there is one), `P:D`, a part of a device's or platform's name, or a profile's name.
        profiles: the device profiles whose names count (`RuleBase.devices`).

    Raises:
        DeviceError: nothing has this name, there is no device at all, or its driver is refused.
    """
    return choose_among(devices(profiles), name, profiles or {})


def choose_among(found: Sequence[Device], name: str, profiles: Mapping[str, Profile]) -> Device:
    """The device of a name among some, at least one; the arguments are those of `choose`.

    Raises:
        DeviceError: nothing has this name, or its driver is refused.
    """
    device = _named(name, found, profiles)
    check_driver(device)
    return device


def check_driver(device: Device) -> None:
    """Nothing, where plans may run on a device.

    Raises:
        DeviceError: a clause `refused` says that its driver gives wrong results, and the user has not allowed it.
    """
    if device.refusal:
        raise DeviceError(
            f"the driver {device.driver} of {device.name} ({device.platform}) is refused: {device.refusal}; install "
            f"another version, choose another device, or set {ANY_DRIVER.name}=on to use it all the same"
        )


def automatic(found: Sequence[Device]) -> Device:
    """The device that `auto` means: one whose driver is not refused where there is one, a GPU rather than a CPU."""
    return min(found, key=lambda device: (bool(device.refusal), _PREFERRED.index(device.kind)))


def _named(name: str, found: Sequence[Device], profiles: Mapping[str, Profile]) -> Device:
    if name == AUTO:
        return automatic(found)
    if name in profiles:
        return _for_profile(profiles[name], [device for device in found if not device.refusal] or found)
    wanted = name.lower()
    for device in found:
        if wanted == device.place or wanted in device.name.lower() or wanted in device.platform.lower():
            return device
    known = [device.name for device in found] + [device.platform for device in found] + list(profiles)
    raise DeviceError(f"there is no device {name!r}; {_hint(name, known, found, profiles)}")


def _hint(name: str, known: Collection[str], found: Sequence[Device], profiles: Mapping[str, Profile]) -> str:
    from smartmem_rules.language.fixes import did_you_mean  # start-up time

    listed = ", ".join(f"{device.place} {device.name} ({device.platform})" for device in found)
    near = did_you_mean(name, known)
    return f"{near + ' ' if near else ''}devices here: {listed}; profiles: {', '.join(sorted(profiles)) or 'none'}"


def _for_profile(profile: Profile, found: Sequence[Device]) -> Device:
    """The device that a profile describes; where there is none, one that can stand in for running its kernels."""
    for device in found:
        if matches(profile, device):
            return device
    return min(found, key=lambda device: (not device.images, _PREFERRED.index(device.kind)))


def profile_of(device: Device, base: RuleBase) -> Profile:
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
        if device.kind in profile.fallback:
            return profile
    return profiles[0]


def matches(profile: Profile, device: Device) -> bool:
    """Whether one of the profile's `match "regexp";` entries is found in `PLATFORM DEVICE`."""
    text = f"{device.platform} {device.name}"
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in profile.match)
