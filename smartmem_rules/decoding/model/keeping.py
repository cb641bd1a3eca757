"""Plans of a model's steps, and what is known of the model, from the user's store of plans."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smartmem_rules.decoding.model.growth import Growth
from smartmem_rules.decoding.model.interface import CachedTensor, Further, Interface
from smartmem_rules.decoding.model.unchanging import Given
from smartmem_rules.kept_plans.key import PlanKey, key_of
from smartmem_rules.kept_plans.store import PlanStore
from smartmem_rules.records import dataclass
from smartmem_rules.whole_files import write_whole

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.planned import PlanOptions
    from smartmem_rules.runtime.devices import Device

_ENDING = ".facts.json"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a model before a plan is made.

    Attributes:
        growth: where it puts new rows of the cache.
        vocabulary: how many tokens there are, None where the model does not say.
        positions: how many positions it knows, None where it does not say.
        counts: whether it puts the new rows of a sequence behind as many as count in it.
        pads: whether prompts of different lengths may share a batch.
        further: inputs that the caller gives once for all steps.
        once: what is computed of these once.
        data_files: those whose weights were compared, and what `mark_of` said of each.
    """

    interface: Interface
    growth: Growth
    vocabulary: int | None
    positions: int | None
    counts: bool
    pads: bool
    further: tuple[Given, ...] = ()
    once: tuple[Given, ...] = ()
    data_files: tuple[tuple[str, str], ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the data files are those of which this was found out; raises OSError where one is missing."""
        return all(mark_of(Path(name)) == mark for name, mark in self.data_files)

    @property
    def given(self) -> tuple[Given, ...]:
        """What steps may read that stays the same over them."""
        return (*self.further, *self.once)


def mark_of(path: Path) -> str:
    """The size of a file and the times of its last changes, of its status too; raises OSError where there is none."""
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


class Keeping:
    """The user's store of plans for one model and its options; nothing is kept where that is switched off."""

    def __init__(
        self, source: ModelSource, options: PlanOptions, device: Device, with_past: ModelSource | None = None
    ) -> None:
        """Args:
        options: arguments of `optimize`, of which the plans depend.
        with_past: of two decoders, the one behind the cache.
        """
        self._source = source
        self._with_past = with_past
        self._options: PlanOptions = {**options, "device": device.place}
        self._device = device
        self._store = PlanStore.of_user()

    def plan(self, purpose: str, make: Callable[[], Plan], behind: bool) -> Plan:
        """The plan that was kept for a purpose, else a new one, which is kept: then read again, to be mapped.

        Args:
            behind: whether it is a plan of the decoder behind the cache, where there are two.
        """
        key = self._key(purpose, self._with_past if behind and self._with_past is not None else self._source)
        found = None if key is None else self._store.read(key)
        if found is not None:
            return found.plan
        made = make()
        if key is None:
            return made
        self._store.write(key, made, self._device)
        found = self._store.read(key)
        return made if found is None else found.plan

    def facts(self, purpose: str, find: Callable[[], Facts]) -> Facts:
        """What was found out about the model for a purpose before, else what is found out now."""
        keys = self._keys_of_facts(purpose)
        if not keys or self._store.folder is None:
            return find()
        key = keys[-1]
        path = self._store.folder / f"{key.digest}{_ENDING}"
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            known = _facts(json.loads(path.read_text("utf-8")))
            if known.holds:
                return known
        found = find()
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if all(one.holds() for one in keys):
                write_whole(path, json.dumps(asdict(found)).encode())
        return found

    def _keys_of_facts(self, purpose: str) -> list[PlanKey]:
        """The key of each of the models, of which the last one is that of all; none where there are no keys."""
        first = self._key(f"facts of {purpose}", self._source)
        if first is None or self._with_past is None:
            return [] if first is None else [first]
        both = self._key(f"facts behind {first.digest}", self._with_past)
        return [] if both is None else [first, both]

    def _key(self, purpose: str, source: ModelSource) -> PlanKey | None:
        if self._store.folder is None:
            return None
        return key_of(source, self._options.get("rules", ()), {**self._options, "generation": purpose})


def _facts(data: dict[str, Any]) -> Facts:
    held = data["interface"]
    cached = tuple(CachedTensor(**{**one, "shape": tuple(one["shape"])}) for one in held["cached"])
    open_ = tuple(Further(**{**one, "shape": tuple(one["shape"])}) for one in held["further"])
    fixed = {
        name: tuple(Given(**{**one, "shape": tuple(one["shape"])}) for one in data[name])
        for name in ("further", "once")
    }
    interface = Interface(**{**held, "cached": cached, "further": open_, "carried": tuple(held["carried"])})
    files = tuple((name, mark) for name, mark in data["data_files"])
    own = {"interface": interface, "growth": Growth(**data["growth"]), "data_files": files}
    return Facts(**{**data, **fixed, **own})


def _given(data: dict[str, Any]) -> Given:
    return Given(**{**data, "shape": tuple(data["shape"])})
