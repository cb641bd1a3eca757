"""Applies the chosen templates and sizes to kernels, and packs constant factors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from smartmem_rules.language.blocks.device import Device, ImageLimits
from smartmem_rules.language.blocks.schedule import (
    CONTRACTIONS,
    Elementwise,
    FewBitWeights,
    Group,
    Panel,
    RegisterTiles,
    Schedule,
    Winograd,
)
from smartmem_rules.plan.kernel.key import kernel_key, launch_key
from smartmem_rules.plan.kernel.launch import Chain, Launch, Single
from smartmem_rules.plan.kernel.model import Contraction, Kernel, PlanError, Stored, row_major
from smartmem_rules.plan.kernel.storage import HALVES
from smartmem_rules.plan.kernel.traffic import tensors_in_memory
from smartmem_rules.plan.schedule.contraction.factors import PackedPanel, Packer
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape, gemm_shape_of
from smartmem_rules.plan.schedule.contraction.group import fitting, tiles_of
from smartmem_rules.plan.schedule.contraction.panel import PanelProblem, ranked
from smartmem_rules.plan.schedule.contraction.sizing import panel_of, right_factors
from smartmem_rules.plan.schedule.cost import KernelCosts
from smartmem_rules.plan.schedule.elementwise import Choice, class_of, search_space, sizes_of_elements
from smartmem_rules.plan.schedule.records import (
    GroupSchedule,
    PanelSchedule,
    TileSchedule,
    WinogradSchedule,
    schedule_of,
)
from smartmem_rules.plan.schedule.templates import Form, GroupForm, PanelForm, Templates, TileForm, WinogradForm
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, TensorType, free_variables, walk
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import largest

MOST_BLOCKS = 48
"""Of the blocks that a chain may have, the best by modelled time are tried."""


def candidates(
    schedules: Mapping[str, Schedule], kind: str, memory: str, tuned: bool, open_extents: bool = False
) -> tuple[Schedule, ...]:
    """The contraction schedules that the device and level admit, tuned ones first.

    Args:
        open_extents: whether the plan is made for ranges of extents, which not all templates can take.
    """
    found = [s for s in schedules.values() if isinstance(s, tuple(CONTRACTIONS.values()))]
    admitted = [s for s in found if s.kind in (kind, "any") and s.memory in (memory, "any") and (tuned or not s.tuned)]
    admitted = [s for s in admitted if s.takes_open_extents or not open_extents]
    if not admitted:
        raise PlanError(f"no contraction schedule for a {kind} device with {memory} memory: add one to schedule.smr")
    return tuple(sorted(admitted, key=lambda s: not s.tuned))


def on_device(schedules: tuple[Schedule, ...], device: Device) -> tuple[Schedule, ...]:
    """The schedules with the device's registers and sub-groups."""
    return tuple(_on_device(s, device) for s in schedules)


def _on_device(s: Schedule, device: Device) -> Schedule:
    """The schedule for a device; no work-item keeps more bytes to itself than there is room for."""
    compute, room = device.compute, device.memory.stack_bytes
    if isinstance(s, Group):
        return replace(s, subgroup=compute.subgroup)
    if not isinstance(s, RegisterTiles):
        return s
    if isinstance(s, Panel):
        s = replace(s, items=max(s.items, s.items_each * compute.units))
    return replace(
        s,
        units=compute.units,
        scratch_bytes=min(s.scratch_bytes, room) if room else s.scratch_bytes,
        product_latency=compute.product_latency or s.product_latency,
        load_cost=compute.load_cost or s.load_cost,
        lanes=compute.lanes,
        register_count=compute.register_count,
        score_vectors=device.text.score_vectors,
        width=min(compute.vector_width, compute.lanes),
        first_cache=device.caches.l1,
    )


class Scheduler:
    """Gives every contraction its schedule and packs the constant factors.

    Args:
        constants: values of the constant tensors.
        tensors: the stored tensors; packed factors are added.
        choices: tuned sizes by `kernel_key`, which take the place of the cost model's.
        elementwise: the schedules of pointwise, window and reduction kernels by class.
        width: elements of a vector in buffers.
        wide: tensors that halves cannot hold.
    """

    def __init__(
        self,
        *,
        device: Device,
        schedules: tuple[Schedule, ...],
        constants: Mapping[str, np.ndarray],
        tensors: dict[str, Stored],
        storage: str,
        limits: ImageLimits | None = None,
        choices: Mapping[str, Choice] | None = None,
        elementwise: Mapping[str, Elementwise] | None = None,
        wide: Collection[str] = (),
        width: int = 1,
    ) -> None:
        self.device = device
        self.schedules = schedules
        self.constants = constants
        self.tensors = tensors
        self.storage = storage
        self.units = device.compute.units
        self.choices = choices or {}
        self.elementwise = elementwise or {}
        self.width = width
        self.templates = Templates(
            device=device,
            schedules=schedules,
            constants=frozenset(constants),
            tensors=tensors,
            storage=storage,
            wide=frozenset(wide),
        )
        self.costs = KernelCosts(templates=self.templates)
        self.packer = Packer(constants, tensors, storage, limits)

    def schedule_launch(self, launch: Launch) -> Launch:
        """The launch with sizes: those of its kernels, and the blocks of rows that they share."""
        if isinstance(launch, Single):
            return replace(launch, kernel=self.schedule(launch.kernel, block_rows=launch.block_rows))
        if isinstance(launch, Chain):
            launch = self._with_tuned_rows(launch)
        return launch.of_steps(tuple(self.schedule_launch(step) for step in launch.steps))

    def _with_tuned_rows(self, chain: Chain) -> Chain:
        """The chain whose work-items own as many rows as tuning found best, where that is possible."""
        if not self.choices or chain.rows is None:
            return chain
        choice = self.choices.get(launch_key(chain, self.tensors), {})
        if choice.get("block_rows") not in chain.rows.candidates:
            return chain
        block_rows = choice["block_rows"]
        steps = tuple(replace(step, block_rows=block_rows) for step in chain.steps)
        return replace(chain, rows=replace(chain.rows, block_rows=block_rows), steps=steps)

    def schedule(self, kernel: Kernel, wanted: Choice | None = None, block_rows: int | None = None) -> Kernel:
        """The kernel with its sizes.

        Args:
            wanted: sizes that take the place of tuned ones and of the cost model's.
            block_rows: rows of a work-item, where the kernel's launch decides that (a chain).
        """
        c = kernel.contraction
        choice = wanted
        if choice is None and self.choices:
            choice = self.choices.get(kernel_key(kernel, self.tensors))
        if c is None:
            own = self._elements_schedule(kernel)
            if own is None:
                return kernel
            sizes = sizes_of_elements(own, kernel, self.tensors, self.device, self.width, choice or {})
            return replace(kernel, schedule=sizes)
        c = replace(c, k=self._ordered_k(c))
        kernel = replace(kernel, contraction=c)
        found = self._with_form(kernel, c, self.templates.required(kernel, choice, block_rows))
        if found is None:
            found = self._with_form(kernel, c, self.templates.required(kernel, choice, block_rows, filters=False))
            assert found is not None
        return found

    def _with_form(self, kernel: Kernel, c: Contraction, form: Form) -> Kernel | None:
        """The kernel with a template; None where filtered weights are not what the template needs."""
        constant = self.templates.packs(c)
        match form:
            case PanelForm():
                return self._panel(kernel, c, form, constant)
            case WinogradForm():
                return self._transformed(kernel, form)
            case GroupForm():
                return self._group(kernel, c, form, constant)
            case TileForm():
                return self._tile(kernel, c, form, constant)

    def space(self, launch: Launch, units: int) -> list[dict[str, int]]:
        """The choices that tuning has for a launch: the cost model's own first, then the others by their estimate.

        Args:
            units: cores or multiprocessors of the device.
        """
        if isinstance(launch, Single):
            return self._kernel_space(launch.kernel, units)
        rows = launch.rows if isinstance(launch, Chain) else None
        return [] if rows is None else [{"block_rows": n} for n in rows.candidates[:MOST_BLOCKS]]

    def _kernel_space(self, kernel: Kernel, units: int) -> list[dict[str, int]]:
        own = self.schedule(kernel)
        c = own.contraction
        schedule = next((s for s in self.schedules if s.name == (own.schedule and own.schedule.name)), None)
        elements = self._elements_schedule(kernel)
        sizes = {} if own.schedule is None else own.schedule.sizes()
        if elements is not None:
            return search_space(elements, sizes)
        if c is None or schedule is None:
            return []
        panel = panel_of(self.schedules)
        if isinstance(schedule, Panel | Winograd) and panel is not None:
            constant = schedule_of(own, PanelSchedule).packed != (None,)
            problem = PanelProblem(own, c, panel, constant)
            found = [one.choice() for one in ranked(problem)]
            found += self._filtered_space(kernel, units)
        elif isinstance(schedule, Group):
            found = [choice.sizes() for choice in self.templates.groups(own, schedule)]
        else:
            return []
        first = {name: sizes.get(name, 1) for name in found[0]} if found else {}
        return [first, *(choice for choice in found if choice != first)] if found else []

    def _filtered_space(self, kernel: Kernel, units: int) -> list[dict[str, int]]:
        problems = self.templates.transforms(kernel)
        found = [(problem.estimate(z, units), z.choice()) for problem in problems for z in problem.space()]
        return [choice for _, choice in sorted(found, key=lambda one: one[0])]

    def _elements_schedule(self, kernel: Kernel) -> Elementwise | None:
        own = None if kernel.contraction is not None else class_of(kernel)
        return None if own is None else self.elementwise.get(own)

    # --- order of the reduction ---

    def _ordered_k(self, c: Contraction) -> tuple[Var, ...]:
        """The reduction variables, the one along which the left factor is contiguous last."""
        strides: dict[Var, int] = {}
        for node in walk(c.a):
            if isinstance(node, Read) and node.tensor in self.tensors:
                stored = self.tensors[node.tensor]
                for index, stride in zip(node.indices, stored.layout.strides(stored.type.shape), strict=True):
                    for atom, coefficient in index.terms:
                        if isinstance(atom, Var) and atom in c.k:
                            strides[atom] = max(strides.get(atom, 0), largest(abs(coefficient * stride)))
        return tuple(sorted(c.k, key=lambda v: -strides.get(v, 1 << 60)))

    # --- the panel template ---

    def _panel(self, kernel: Kernel, c: Contraction, form: PanelForm, constant: bool) -> Kernel:
        problem, sizes = form.problem, form.sizes
        ahead, ahead_lines = problem.ahead(sizes)
        factors, columns = right_factors(kernel), sizes.columns
        packed = [self._packed(n, b, c, columns) for n, b in factors] if constant else [None]
        schedule = PanelSchedule(
            name=form.schedule.name,
            template="rows" if kernel.stages else "panel",
            rows=sizes.rows,
            columns=sizes.columns,
            block_rows=sizes.block_rows,
            tiles_per_block=sizes.tiles_per_block,
            tail=problem.tail(sizes),
            ahead=ahead,
            ahead_lines=ahead_lines,
            window_rows=form.schedule.window_rows,
            packed=tuple(packed),
            in_place=problem.in_place,
        )
        return _reading_packed(replace(kernel, schedule=schedule), packed)

    def _packed(self, n: Var, factor: Expr, c: Contraction, columns: int) -> PackedPanel:
        """A constant right factor: as integers where it is of few bits, else as floats."""
        if c.of_bytes:
            return self.packer.bytes(n, factor, c, columns)
        taking = (s for s in self.schedules if isinstance(s, FewBitWeights))
        found = (self.packer.words(n, factor, c, columns, s) for s in taking)
        return next((one for one in found if one is not None), None) or self.packer.panel(n, factor, c, columns)

    def _transformed(self, kernel: Kernel, form: WinogradForm) -> Kernel | None:
        """The filtered convolution; None where a sum of weights would be infinite or NaN, and a weight is not."""
        problem, sizes = form.problem, form.sizes
        ahead, ahead_lines = problem.ahead(sizes)
        factors, windows, transform = right_factors(kernel), problem.windows, problem.transform
        weights = [self.packer.transformed(n, b, problem, sizes.columns) for n, b in factors]
        packed = [one for one in weights if one is not None]
        if len(packed) < len(weights):
            return None
        direct = [self.packer.panel(n, b, windows.by_taps(problem.c), sizes.columns) for n, b in factors]
        schedule = WinogradSchedule(
            name=problem.s.name,
            template="winograd",
            rows=sizes.rows,
            columns=sizes.columns,
            block_rows=sizes.block_rows,
            tiles_per_block=sizes.tiles_per_block,
            tail=problem.tail(sizes),
            ahead=ahead,
            ahead_lines=ahead_lines,
            window_rows=1,
            packed=tuple(packed),
            outputs=sizes.outputs,
            windows=windows,
            transform=transform,
            direct=tuple(direct),
            data=problem.s.data,
        )
        return _reading_packed(replace(kernel, schedule=schedule), [*packed, *direct])

    # --- the template of work-groups ---

    def _group(self, kernel: Kernel, c: Contraction, form: GroupForm, constant: bool) -> Kernel:
        choice = form.choice
        packed = self.packer.columns(kernel, c, choice.tile.columns) if constant else None
        unit = choice.tile.unit
        of_halves = "" if unit is None or unit.factors not in HALVES else unit.factors
        if packed is not None and of_halves and of_halves != self.tensors[packed.name].storage:
            return self._in_floats(kernel, c)
        if packed is not None and choice.tile.right_type == "half" and self.tensors[packed.name].storage != "float16":
            choice = replace(choice, tile=replace(choice.tile, right_type="float"))
        schedule = GroupSchedule(
            name=form.schedule.name, template="group", tile=choice.tile, splits=choice.splits, packed=packed
        )
        scheduled = _reading_packed(replace(kernel, schedule=schedule), [packed])
        return self._split(scheduled, schedule, form.demand) if choice.splits > 1 else scheduled

    def _in_floats(self, kernel: Kernel, c: Contraction) -> Kernel:
        """Size a contraction whose packed factor turned out to hold what halves do not."""
        floats = tuple(s for s in self.schedules if not isinstance(s, Group) or not s.of_halves)
        match replace(self.templates, schedules=floats).required(kernel):
            case GroupForm() as form:
                return self._group(kernel, c, form, True)
            case TileForm() as form:
                return self._tile(kernel, c, form, True)
            case other:
                raise PlanError(f"{other.schedule.name} takes no contraction of a GPU")

    def _split(self, kernel: Kernel, schedule: GroupSchedule, demand: GemmShape) -> Kernel:
        """Memory in which work-groups that share a reduction leave their sums and count their arrivals."""
        tile = schedule.tile
        tiles = demand.batch * -(-demand.m // tile.rows) * sum(-(-n // tile.columns) for n in demand.columns)
        sums = TensorType("float32", (tiles * schedule.splits * tile.rows * tile.columns,))
        partials, arrivals = f"{kernel.name}@partials", f"{kernel.name}@arrivals"
        self.tensors[partials] = Stored(
            name=partials, type=sums, layout=row_major(1), role="intermediate", storage="float32"
        )
        zeros = np.zeros(tiles, np.int32)
        arrived = TensorType("int32", zeros.shape)
        self.tensors[arrivals] = Stored(
            name=arrivals, type=arrived, layout=row_major(1), role="constant", storage="int32", packed=zeros
        )
        met = replace(schedule, partials=partials, arrivals=arrivals)
        return replace(kernel, schedule=met, writes=(*kernel.writes, partials, arrivals))

    # --- the tile template ---

    def _tile(self, kernel: Kernel, c: Contraction, form: TileForm, constant: bool) -> Kernel:
        s = form.schedule
        schedule = TileSchedule(name=s.name, template="tile", rows=form.rows, columns=form.columns, group=s.group)
        scheduled = replace(kernel, schedule=schedule)
        if not constant:
            return scheduled
        batch = tuple(v for v in c.batch if v in free_variables(c.b))
        axes = (*batch, *c.k, c.n)
        name = self.packer.matrix(c.b, axes)
        position = Index(0)
        for var in axes[:-1]:
            position = add(scale(position, var.extent), variable(var))
        over_packed = replace(scheduled, contraction=replace(c, b=Read(name, (position, variable(c.n)), "float32")))
        return replace(over_packed, reads=tensors_in_memory(over_packed))


def _reading_packed(kernel: Kernel, packed: Sequence[PackedPanel | None]) -> Kernel:
    """The kernel that reads its right factors as they were packed, where they were."""
    names = [name for one in packed if one is not None for name in one.tensors]
    return replace(kernel, reads=tensors_in_memory(kernel, names)) if names else kernel


def too_large(kernels: Sequence[Kernel], schedules: Sequence[Schedule], local_memory: int) -> set[str]:
    """What kernels write whose rows no tile of a work-group leaves room for in local memory."""
    tiles = [t for s in schedules if isinstance(s, Group) and not s.of_halves for t in tiles_of(s)]
    found: set[str] = set()
    for kernel in kernels:
        c = kernel.contraction
        if tiles and c is not None and c.stages and not fitting(tiles, gemm_shape_of(kernel, c), local_memory):
            found.update(kernel.writes)
    return found
