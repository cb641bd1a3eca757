"""Every stored tensor has a layout that holds its elements, and each kernel's text knows it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.artefact import Source
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.tensor.extents import is_symbolic

_HEAD = re.compile(r"__kernel\b.*?void\s+(?P<name>\w+)\s*\((?P<parameters>.*?)\)\s*\{", re.S)
_PLACE = re.compile(r"/\*\s*(.*?)\s*\*/")


def check_layouts(tensors: Iterable[Stored]) -> None:
    """Check that a layout orders all axes of its tensor, and that constants fill theirs.

    Raises:
        InvariantError: an axis is missing or stands twice, or a constant has another size than its layout.
    """
    for stored in tensors:
        layout, rank = stored.layout, len(stored.type.shape)
        axes = [a for a in layout.order if a >= 0]
        if sorted(axes) != list(range(rank)):
            raise InvariantError("layout", "", stored.name, f"{layout} orders other axes than the tensor's {rank}")
        if any(a < 0 for a in layout.order[:-1]) or (layout.memory != "image" and len(axes) != len(layout.order)):
            raise InvariantError("layout", "", stored.name, f"{layout} has lanes where none can be")
        if layout.memory == "image" and not 0 <= layout.rows + layout.inner < max(1, len(layout.order)):
            raise InvariantError("layout", "", stored.name, f"{layout} has more rows than axes beside the lanes")
        if stored.role in ("input", "output") and axes != list(range(rank)):
            raise InvariantError("layout", "", stored.name, f"{layout}: inputs and outputs are row-major")
        size = stored_bytes(stored)
        if stored.packed is not None and not is_symbolic(size) and stored.packed.nbytes != size:
            raise InvariantError(
                "layout", "", stored.name, f"{stored.packed.nbytes} bytes of values for {size} in memory"
            )


def check_sources(launches: Sequence[Launch], sources: Sequence[Source], tensors: Mapping[str, Stored]) -> None:
    """Check that each text takes what its launch reads and writes, in the layouts that all other launches use too.

    Raises:
        InvariantError: a parameter is missing, or it is written for another layout than its tensor has now.
    """
    for launch, source in zip(launches, sources, strict=True):
        writes = set(launch.writes)
        for argument in source.arguments:
            if (argument.access == "write") != (argument.tensor in writes):
                raise InvariantError("emission", launch.name, argument.tensor, "it is written as a tensor that is read")
        given = {argument.tensor for argument in source.arguments}
        for name in (*launch.reads, *launch.writes):
            if name not in given and tensors[name].layout.memory != "scratch":
                raise InvariantError("emission", launch.name, name, "the kernel's text does not take it")
        _check_text(launch, source, tensors)
        _check_sizes(launch, source)


def _check_text(launch: Launch, source: Source, tensors: Mapping[str, Stored]) -> None:
    head = next((h for h in _HEAD.finditer(source.text) if h["name"] == source.entry), None)
    if head is None:
        raise InvariantError("emission", launch.name, "", f"its text holds no kernel {source.entry}")
    places = _PLACE.findall(head["parameters"])
    if len(places) < len(source.arguments):
        return  # a template of its own says nothing of layouts
    for argument, place in zip(source.arguments, places, strict=False):
        stored = tensors[argument.tensor]
        wanted = f"{stored.layout} of [{', '.join(map(str, stored.type.shape))}]"
        if place != wanted:
            raise InvariantError(
                "emission", launch.name, argument.tensor, f"the text accesses it as {place}, others as {wanted}"
            )


def _check_sizes(launch: Launch, source: Source) -> None:
    """Work-groups part the work-items of a launch, and there is one work-item at least where something is written."""
    sizes = [size for size in source.global_size if not is_symbolic(size)]
    if any(size < 0 for size in sizes):
        raise InvariantError("emission", launch.name, "", f"a launch of {source.global_size} work-items")
    if source.local_size is None:
        return
    if len(source.local_size) != len(source.global_size) or math.prod(source.local_size) < 1:
        raise InvariantError(
            "emission", launch.name, "", f"work-groups of {source.local_size} in a launch of {source.global_size}"
        )
    for whole, part in zip(source.global_size, source.local_size, strict=True):
        if not is_symbolic(whole) and whole % part:
            raise InvariantError("emission", launch.name, "", f"{part} work-items a group do not part {whole}")
