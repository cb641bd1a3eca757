"""Which template realises a contraction, and with which sizes.

The decision is made here and nowhere else: the costs of kernels price it (`cost`), the scheduler carries it out.
It depends on what a kernel computes and on how its tensors are stored, not on their layouts, so that it is the same
before layouts are chosen and after.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.matrix import Matrix
from smartmem_rules.language.blocks.schedule import Group, Panel, Schedule, Tile, Winograd
from smartmem_rules.plan.fusion.contraction import is_constant
from smartmem_rules.plan.kernel.model import Contraction, Kernel, PlanError, Stored
from smartmem_rules.plan.schedule.contraction.factor_types import FactorTypes
from smartmem_rules.plan.schedule.contraction.gemm_shape import GemmShape, gemm_shape_of
from smartmem_rules.plan.schedule.contraction.group import GroupChoice, group_cost, rank_groups, tiles_of
from smartmem_rules.plan.schedule.contraction.group_texture import TextureTiles
from smartmem_rules.plan.schedule.contraction.panel import PanelProblem, PanelSizes
from smartmem_rules.plan.schedule.contraction.score_tiles import with_scores
from smartmem_rules.plan.schedule.contraction.sizing import count, most
from smartmem_rules.plan.schedule.contraction.winograd_sizes import WinogradProblem, WinogradSizes, paying, tuned
from smartmem_rules.plan.schedule.elementwise import Choice
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Const, Expr, Read, Select, tensors_read
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.primitives import storage_dtype


@dataclass(frozen=True, kw_only=True)
class PanelForm:
    """Register tiles over rows staged in cache."""

    schedule: Panel
    problem: PanelProblem
    sizes: PanelSizes


@dataclass(frozen=True, kw_only=True)
class WinogradForm:
    """A convolution by Winograd's filtering."""

    problem: WinogradProblem
    sizes: WinogradSizes

    @property
    def schedule(self) -> Winograd:
        return self.problem.s


@dataclass(frozen=True, kw_only=True)
class GroupForm:
    """Tiles in local memory."""

    schedule: Group
    choice: GroupChoice
    demand: GemmShape


@dataclass(frozen=True, kw_only=True)
class TileForm:
    """Register tiles without anything shared."""

    schedule: Tile
    rows: int
    columns: int


Form = PanelForm | WinogradForm | GroupForm | TileForm


@dataclass(frozen=True, kw_only=True)
class Templates:
    """Chooses templates for contractions.

    Attributes:
        schedules: that the device and the level admit, in the order in which they are tried.
        constants: the names of the constant tensors.
        tensors: how all others are stored.
        storage: how the plan stores floating-point tensors.
        wide: tensors that halves cannot hold.
    """

    device: Device
    schedules: tuple[Schedule, ...]
    constants: Collection[str]
    tensors: Mapping[str, Stored]
    storage: str
    wide: frozenset[str] = frozenset()

    @cached_property
    def texture(self) -> TextureTiles | None:
        """The roofs of a texture GPU, by which its contractions are sized."""
        if not self.device.models_textures:
            return None
        return TextureTiles(self.device, self.storage, self.constants, self.wide)

    def form(
        self, kernel: Kernel, choice: Choice | None = None, block_rows: int | None = None, filters: bool = True
    ) -> Form | None:
        """The template and sizes of a contraction; None where no schedule takes it.

        Args:
            choice: sizes that take the place of the cost model's, where a template can take them.
            block_rows: rows of a work-item, where the kernel's launch decides that (a chain).
            filters: whether a convolution may be filtered.
        """
        c = kernel.contraction
        assert c is not None
        for schedule in self.schedules:
            found: Form | None = None
            if c.of_bytes and not isinstance(schedule, Panel):
                continue
            if isinstance(schedule, Panel):
                found = self._over_rows(kernel, c, schedule, choice, block_rows, filters)
            elif isinstance(schedule, Group):
                found = self._fastest(kernel, c, schedule, choice)
            elif isinstance(schedule, Tile):
                found = self._tile(kernel, c, schedule)
            if found is not None:
                return found
        return None

    def required(
        self, kernel: Kernel, choice: Choice | None = None, block_rows: int | None = None, filters: bool = True
    ) -> Form:
        """Like `form`.

        Raises:
            PlanError: no schedule takes the contraction.
        """
        found = self.form(kernel, choice, block_rows, filters)
        if found is None:
            raise PlanError(f"no schedule fits the contraction of {', '.join(kernel.origin)}")
        return found

    def packs(self, c: Contraction) -> bool:
        """Whether the right factor is a constant that is packed in the plan."""
        known = bool(tensors_read(c.b)) and is_constant(c.b, self.constants)
        return known and not is_symbolic(count((c.n, *c.k)))

    def demand(self, kernel: Kernel) -> GemmShape:
        """What a contraction asks of a work-group."""
        c = kernel.contraction
        assert c is not None
        shape = gemm_shape_of(kernel, c, storage_dtype(self.storage).itemsize)
        return replace(shape, streamed=not c.stages and self._is_stored(c.a))

    @staticmethod
    def _is_stored(factor: Expr) -> bool:
        """Whether a factor's elements are those of a tensor, or zeros at its border."""
        while isinstance(factor, Select) and factor.otherwise == Const(0.0, factor.otherwise.dtype):
            factor = factor.then
        return isinstance(factor, Read)

    @cached_property
    def _types(self) -> FactorTypes:
        return FactorTypes(
            storage=self.storage, constants=self.constants, tensors=self.tensors, wide=self.wide, computed=True
        )

    def _unit(self, s: Group, kernel: Kernel, c: Contraction) -> Matrix | None:
        """The matrix unit that a schedule's factors take; None where there is none or it would lose something."""
        if not s.of_halves:
            return self.device.matrix_unit("float32", s.operands)
        unit = self.device.matrix_unit(self.storage, s.operands) if self.storage in s.factors else None
        return unit if unit is not None and all(self._types.halves(kernel, c)) else None

    def groups(self, kernel: Kernel, s: Group) -> list[GroupChoice]:
        """The tiles of work-groups that a contraction may have, the fastest by the model first.

        Raises:
            PlanError: nothing says how fast tiles are.
        """
        demand = self.demand(kernel)
        if self.texture is not None:
            return self.texture.ranked(s, kernel, self.tensors, demand)
        if not s.cycles.sums_per_cycle:
            raise PlanError(f"neither the schedule {s.name} nor the device's profile says how fast its tiles are")
        # how many work-groups meet in memory has to be known
        reduced = () if kernel.contraction is None else kernel.contraction.k
        splits = (1,) if is_symbolic(count((*kernel.axes, *reduced))) else s.splits
        unit = None if kernel.contraction is None else self._unit(s, kernel, kernel.contraction)
        tiles = [replace(t, unit=unit) if unit is not None and t.takes(unit) else t for t in tiles_of(s)]
        if s.of_halves:
            tiles = [t for t in tiles if t.unit is not None]
        tiles = [with_scores(t, kernel) for t in tiles]
        return rank_groups(tiles, splits, s.cycles, demand, self.device)

    def transforms(self, kernel: Kernel, block_rows: int | None = None) -> list[WinogradProblem]:
        """The ways in which a convolution may be filtered."""
        c = kernel.contraction
        assert c is not None
        constant = self.packs(c)
        schedules = [s for s in self.schedules if isinstance(s, Winograd)]
        found = (WinogradProblem.of(kernel, c, s, constant, block_rows) for s in schedules)
        return [problem for problem in found if problem is not None]

    # --- one template each ---

    def _over_rows(
        self, kernel: Kernel, c: Contraction, s: Panel, choice: Choice | None, block_rows: int | None, filters: bool
    ) -> WinogradForm | PanelForm | None:
        """Whole rows for each work-item, filtered where that is cheaper or was tuned so."""
        problem = PanelProblem(kernel, c, s, self.packs(c), block_rows)
        filtered = self.transforms(kernel, block_rows) if filters else []
        units = self.device.compute.units
        found = paying(filtered, problem, units) if choice is None else tuned(filtered, choice)
        if found is not None:
            return WinogradForm(problem=found[0], sizes=found[1])
        sizes = problem.default()
        if sizes is None:
            return None
        if choice is not None and choice.get("outputs", 1) == 1:
            sizes = problem.legal(choice) or sizes
        return PanelForm(schedule=s, problem=problem, sizes=sizes)

    def _fastest(self, kernel: Kernel, c: Contraction, s: Group, wanted: Choice | None) -> GroupForm | None:
        """Tiles of one of the schedules whose factors have the same type: as wanted, else the fastest by the model."""
        alike = [one for one in self.schedules if isinstance(one, Group) and one.factors == s.factors]
        forms = [form for one in alike if (form := self._group(kernel, c, one, wanted)) is not None]
        exact = [form for form in forms if wanted is not None and form.choice.sizes() == dict(wanted)]
        if len(forms) < 2 or exact:
            return next(iter(exact or forms), None)
        return min(forms, key=lambda form: group_cost(form.choice, form.schedule.cycles, form.demand, self.device))

    def _group(self, kernel: Kernel, c: Contraction, s: Group, wanted: Choice | None) -> GroupForm | None:
        """Tiles of work-groups, where the reduction is long enough for them and registers alone are no faster."""
        small = most(c.k) < min(t.step for t in tiles_of(s)) // 2 and not (c.stages or kernel.parts)
        if kernel.stages or (kernel.parts and not self.packs(c)) or small:
            return None
        if s.of_halves and self._unit(s, kernel, c) is None:
            return None
        choices, demand = self.groups(kernel, s), self.demand(kernel)
        if not choices:
            return None
        if self.texture is not None and self.texture.faster_in_registers(self.schedules, kernel, choices[0], demand):
            return None
        choice = next((one for one in choices if wanted is not None and one.sizes() == dict(wanted)), choices[0])
        return GroupForm(schedule=s, choice=choice, demand=demand)

    @staticmethod
    def _tile(kernel: Kernel, c: Contraction, s: Tile) -> TileForm | None:
        if c.stages or kernel.parts or kernel.stages:
            return None
        return TileForm(schedule=s, rows=min(s.rows[0], most(c.m)), columns=s.columns[0])
