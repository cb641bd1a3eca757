"""From a program to kernels, and from kernels to launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal, Megakernel, Wavefront
from smartmem_rules.language.blocks.schedule import Schedule
from smartmem_rules.plan.fusion.alternatives import Limits, Pool, gather, other_policies
from smartmem_rules.plan.fusion.concat_outputs import write_pieces
from smartmem_rules.plan.fusion.equations.program import Program
from smartmem_rules.plan.fusion.fuser import fuse
from smartmem_rules.plan.fusion.lower import lower
from smartmem_rules.plan.fusion.policy import Policy
from smartmem_rules.plan.fusion.refusals import Refusals
from smartmem_rules.plan.fusion.result import FusionResult
from smartmem_rules.plan.joint import JointChoice
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch.chains import chain
from smartmem_rules.plan.launch.concat_parts import join_in_parts
from smartmem_rules.plan.launch.horizontal_cpu import side_by_side
from smartmem_rules.plan.launch.wavefront import wavefront
from smartmem_rules.plan.schedule.contraction.sizing import panel_of
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.plan.schedule.scheduler import too_large
from smartmem_rules.records import dataclass


@dataclass(kw_only=True)
class FusionInput:
    """The kernels of a program by the rules of a policy.

    Attributes:
        local_memory: bytes of a work-group.
        refusals: takes in why kernels stay apart.
    """

    program: Program
    policy: Policy
    schedules: tuple[Schedule, ...]
    local_memory: int
    refusals: Refusals | None = None
    _unfed: set[str] = field(default_factory=set)
    _made: tuple[FusionResult, list[Kernel]] | None = None

    def kernels(self) -> list[Kernel]:
        """The kernels by the rules alone; what would not fit on chip together is left apart."""
        while True:
            fused = fuse(self.program, self.policy, self._unfed, refusals=self.refusals)
            made = lower(self.program, fused)
            large = self._too_large([k for k in made if not self._is_empty(k)]) - self._unfed
            if not large:
                self._made = fused, made
                return [k for k in made if not self._is_empty(k)]
            self._unfed |= large

    def pool(self, limits: Limits) -> Pool:
        """The same kernels with those that compete."""
        if self._made is None:
            self.kernels()
        assert self._made is not None
        fused, made = self._made
        others = (
            fuse(self.program, one, self._unfed, fused.growth if one.grows_like(self.policy) else None)
            for one in other_policies(self.policy, fused.decisions)
        )
        return gather(self.program, made, fused, others, self._admits, limits)

    def _admits(self, kernel: Kernel) -> bool:
        return not self._is_empty(kernel) and not self._too_large([kernel])

    def _too_large(self, kernels: Sequence[Kernel]) -> set[str]:
        return too_large(kernels, self.schedules, self.local_memory)

    def _is_empty(self, kernel: Kernel) -> bool:
        return all(self.program.types[t].elements == 0 for t in kernel.writes)


def launches(kernels: Sequence[Kernel], fusion: FusionInput, device: Device) -> list[Launch]:
    """The launches of kernels: outputs in pieces, and where work-items own rows, several kernels in one launch."""
    program, policy, schedules = fusion.program, fusion.policy, fusion.schedules
    if policy.reads_through_views:
        kernels = write_pieces(kernels, program.types, program.outputs)
    kernels = join_in_parts(kernels, program, policy.most_operands)
    found = _chained(kernels, fusion, device)
    panel, waves = panel_of(schedules), policy.rule(Wavefront)
    if waves is not None and panel is not None and device.kind == "cpu":
        # stacks of recurrences layer above layer, where a work-item computes a recurrence by itself
        found = wavefront(found, program.packable, panel, device, (waves, policy.rule(Megakernel)))
    rule = policy.rule(Horizontal)
    # small kernels that do not need each other; the templates for CPUs have work-groups of one
    return found if rule is None or device.kind != "cpu" else side_by_side(found, rule, device)


def _chained(kernels: Sequence[Kernel], fusion: FusionInput, device: Device) -> list[Launch]:
    """Kernels joined over the rows or batches that they share, where a template gives rows to work-items."""
    rules = (fusion.policy.chains("rows"), fusion.policy.chains("batches"))
    if rules == (None, None) or panel_of(fusion.schedules) is None:
        return [Single(kernel=kernel) for kernel in kernels]
    program = fusion.program
    return chain(kernels, program.types, program.packable, rules, fusion.schedules, device, fusion.refusals)


def settle(
    joint: JointChoice, by_rules: Sequence[Kernel], fusion: FusionInput, device: Device, costs: KernelCosts
) -> tuple[list[Launch], JointChoice]:
    """The launches of the kernels that were chosen, or of the rules' where these are fewer or faster once joined.

    What kernels that share a launch save is not known when they are chosen: it depends on all of the launch.
    """
    found = launches(joint.kernels, fusion, device)
    if not joint.changed or not any(launch.steps for launch in found):
        return found, joint
    first = launches(by_rules, fusion, device)
    times_of = [sum(map(costs.of_launch, one)) for one in (found, first)]
    if len(found) > len(first) or times_of[0] > times_of[1]:
        return first, joint.given_up(by_rules)
    return found, joint


def same(launched: Sequence[Launch], kernels: Sequence[Kernel]) -> bool:
    """Whether launches are the very kernels, each by itself and as it was."""
    if len(launched) != len(kernels):
        return False
    return all(isinstance(a, Single) and a.kernel is b for a, b in zip(launched, kernels, strict=True))
