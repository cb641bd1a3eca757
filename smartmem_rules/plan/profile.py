"""What planning knows of a device: its `device` block as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from smartmem_rules.language.syntax import Block
from smartmem_rules.plan.layout_rules import DeviceMemory
from smartmem_rules.plan.memory import LARGEST, Room
from smartmem_rules.plan.model import PlanError
from smartmem_rules.plan.occupancy import Occupancy
from smartmem_rules.plan.roofs import Roofs
from smartmem_rules.plan.sizing import Machine

ALIGNMENT = 512
"""Bytes; no device is known that asks for more of the parts of a buffer."""


@dataclass(frozen=True)
class Profile:
    """A `device` block: what planning needs to know of the device."""

    name: str
    kind: str
    prefers: str
    memory: DeviceMemory
    vector_width: int
    local_memory: int
    matrix: str
    shuffle: str
    machine: Machine
    room: Room
    roofs: Roofs | None = None
    occupancy: Occupancy | None = None

    @staticmethod
    def of(block: Block) -> Profile:
        """Raises PlanError where the block lacks an entry, or one is no number."""
        entries = {e.key: e.values for e in block.entries}
        try:
            return Profile(
                block.name,
                str(entries["kind"][0]),
                str(entries["prefers"][0]),
                DeviceMemory.of(block),
                int(entries["vector_width"][0]),
                int(entries["local_memory"][0]),
                str(entries.get("matrix", ("",))[0]),
                str(entries.get("shuffle", ("",))[0]),
                Machine(
                    int(entries.get("units", (1,))[0]),
                    float(entries["peak_gflops"][0]),
                    float(entries["global_bandwidth"][0]),
                    float(entries["launch_us"][0]) * 1000,
                    float(entries.get("late_unit", (0.0,))[0]),
                    entries.get("ordered_launches", ("no",))[0] in ("yes", True),
                ),
                Room(
                    int(entries.get("alignment", (ALIGNMENT,))[0]),
                    int(entries.get("allocation", (LARGEST,))[0]),
                    entries.get("sub_buffers", ("yes",))[0] == "yes",
                ),
                Roofs.of(entries),
                Occupancy.of(entries),
            )
        except (KeyError, ValueError, IndexError) as error:
            raise PlanError(f"device {block.name} lacks or misstates the entry {error} ({block.span})") from error
