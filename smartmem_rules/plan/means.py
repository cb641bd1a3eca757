"""What a plan is asked for, and what its level and its device offer to kernels: fusion rules, schedules, memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from smartmem_rules.environment import ONE_LAUNCH
from smartmem_rules.language.blocks.device import Device, ImageLimits
from smartmem_rules.language.blocks.fuse import Horizontal, InOrder, Megakernel
from smartmem_rules.language.blocks.level import LayoutWeights
from smartmem_rules.language.blocks.schedule import ByteProducts, Group, Schedule, Tile, Winograd
from smartmem_rules.plan.fusion.policy import Policy, policy_of
from smartmem_rules.plan.kernel.model import PlanError
from smartmem_rules.plan.kernel.storage import TEXEL_LANES
from smartmem_rules.plan.layout.accesses import RegisterBlock
from smartmem_rules.plan.schedule.contraction.sizing import panel_of
from smartmem_rules.plan.schedule.scheduler import candidates, on_device
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import RuleBase


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What a plan is asked for.

    Attributes:
        level: a level of levels.smr.
        dtype: how floating-point tensors are stored (float32, float16, bfloat16); sums are always float32.
        memory: image or buffer for all tensors; auto leaves it to the level whether the device profile decides,
            preferred does not.  A profile that prefers images leaves the choice between both to the costs of layouts.
        layout: exact chooses for all tensors together, and kernels with them where the level says so; local edge by
            edge, for the kernels of the fusion rules.
        wide: tensors that are stored as float32, because their values exceed what halves hold; so are tensors
            inside of operators.
        in_order: whether kernels of GPUs that need each other may share a launch.
    """

    level: str
    dtype: str = "float32"
    memory: str = "auto"
    layout: str = "exact"
    wide: Collection[str] = ()
    in_order: bool = True


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a level and a device offer to kernels.

    Attributes:
        policy: which equations are fused, and how layouts and memory are chosen.
        memory: what the schedules are for, image or buffer.
        kinds: where single tensors may lie.
        weights: of the level's layout block; those of the schema where the level leaves tensors row-major.
        deferred: operators that `keep` rules keep until the plan is made.
        in_order: which kernels of work-groups share a launch in which work-groups take tasks in order.
    """

    device: Device
    policy: Policy
    memory: str
    kinds: tuple[str, ...]
    schedules: tuple[Schedule, ...]
    weights: LayoutWeights
    deferred: frozenset[str] = frozenset()
    in_order: InOrder | None = None

    @property
    def limits(self) -> ImageLimits | None:
        """How large images may be, None where the schedules are for buffers."""
        return self.device.memory.limits if self.memory == "image" else None

    @property
    def width(self) -> int:
        """Elements of a vector."""
        return TEXEL_LANES if self.memory == "image" else self.device.compute.vector_width

    @property
    def register_block(self) -> RegisterBlock | None:
        """The block of sums for which a contraction on textures reads its operands, by the first schedule."""
        first = self.schedules[0]
        wave = self.device.compute.wave if "image" in self.kinds else 0
        return RegisterBlock(first.rows[0], first.columns[0], wave) if isinstance(first, Tile) else None

    @property
    def horizontal(self) -> Horizontal | None:
        """Which kernels that do not need each other share a launch."""
        return self.policy.rule(Horizontal)

    @property
    def megakernel(self) -> Megakernel | None:
        """Which launches become one whose work-items wait for each other."""
        return self.policy.rule(Megakernel) if self.device.compute.ordered_launches else None


def means_of(base: RuleBase, profile: Device, options: PlanOptions, open_extents: bool) -> Means:
    """The means of a level on a device; the fusion rules are those that the schedules can realise.

    Args:
        open_extents: whether the plan is made for ranges of extents.

    Raises:
        PlanError: the level is unknown, or no schedule is admitted.
    """
    level = base.levels.get(options.level)
    if level is None:
        raise PlanError(f"there is no level {options.level}; the rule files define {', '.join(base.levels)}")
    policy = policy_of(level, base.tables, base.fuses)
    memory, kinds = _memory(options.memory, policy, profile)
    _check_storage(options.dtype, memory, profile)
    schedules = candidates(base.schedules, profile.kind, memory, policy.tuned, open_extents)
    schedules = on_device(schedules, profile)
    # transformed weights of few bits would lose too much
    schedules = tuple(s for s in schedules if not isinstance(s, Winograd) or options.dtype == "float32")
    weights = base.layouts[level.layout] if level.layout else LayoutWeights(name="row_major", block=level.block)
    policy = policy.within({s.template for s in schedules})
    if not any(isinstance(s, Group) and s.cycles.looped_cycles for s in schedules):
        policy = policy.with_all_sums()  # nothing says what it takes to go through many elements
    in_order = _in_order(policy, profile, options)
    if in_order is not None:
        policy = policy.with_columns(in_order.columns)
    panel = panel_of(schedules)
    policy = replace(
        policy,
        products=next((s for s in schedules if isinstance(s, ByteProducts)), None),
        group_columns=0 if panel is None else panel.group_columns,
        parameters=profile.compute.parameters,
        most_operands=min(policy.most_operands, profile.compute.parameters),
    )
    return Means(
        device=profile,
        policy=policy,
        in_order=in_order,
        memory=memory,
        kinds=kinds,
        schedules=schedules,
        weights=weights,
        deferred=base.deferred,
    )


def _in_order(policy: Policy, profile: Device, options: PlanOptions) -> InOrder | None:
    """The block of launches in which work-groups take tasks in order, where the plan may have such launches."""
    rule = policy.rule(InOrder)
    if rule is None or not profile.compute.order or not options.in_order:
        return None
    wanted = ONE_LAUNCH.value()
    return rule if wanted == "on" or (not wanted and options.dtype in rule.types) else None


def _check_storage(dtype: str, memory: str, profile: Device) -> None:
    """Refuse an element type that the device's kernels do not store."""
    stored = profile.memory.storage
    if stored and dtype not in stored:
        raise PlanError(
            f"{profile.name} stores floats as {', '.join(stored)}, not as {dtype}; choose one of these, "
            "or name the type in the device block's `storage`"
        )
    if dtype == "bfloat16" and memory == "image":
        raise PlanError("images hold no bfloat16: choose float16, or memory buffer")


def _memory(memory: str, policy: Policy, profile: Device) -> tuple[str, tuple[str, ...]]:
    """What schedules are for, image or buffer, and where single tensors may lie."""
    if memory == "auto":
        memory = "preferred" if policy.prefers_device_memory else "buffer"
    if memory != "preferred":
        return memory, (memory,)
    # where buffers are no slower than textures, nothing speaks for an image
    both = profile.prefers == "image" and policy.chooses_layouts
    return profile.prefers, ("image", "buffer") if both else (profile.prefers,)
