"""What a plan's kernels require of a device: by the profile they were emitted for, and by their OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Iterable

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.plan.artefact import Demands, Source

_ENABLED = re.compile(r"^#pragma OPENCL EXTENSION (\w+) : enable$", re.M)


def demands_of(profile: Device, sources: Iterable[Source]) -> Demands:
    """The devices that a plan of these kernels is for."""
    sources = list(sources)
    texts = {source.text for source in sources}
    used = [unit for unit in profile.units if any(unit.multiply in text for text in texts)]
    enabled = {name for text in texts for name in _ENABLED.findall(text)}
    extensions = enabled | {unit.extension for unit in used if unit.extension}
    capabilities = [unit.capability for unit in used]
    if profile.compute.order == "ptx" and any(source.waiting is not None for source in sources):
        capabilities.append(profile.compute.order_capability)
    if profile.compute.shuffle or profile.compute.half:
        capabilities.append(profile.compute.shuffle_capability)
    memory = profile.memory
    return Demands(
        names=profile.match,
        types=profile.fallback,
        extensions=tuple(sorted(extensions)),
        capability=max(capabilities, default=(0, 0)),
        arrays=memory.array_memory,
        arrays_capability=memory.array_capability,
    )
