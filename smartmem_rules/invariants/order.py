"""Every read of a kernel is behind the writes of what it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.kernel.launch import Chain, Launch, Ordered, Single
from smartmem_rules.plan.kernel.model import Kernel, Stored

STAGE = "fusion"


def check_order(launches: Sequence[Launch], tensors: Mapping[str, Stored], outputs: Collection[str]) -> None:
    """Check that launches find what they read, and that all outputs are written.

    A tensor is there when all launches that write it, in pieces or in shares of its steps, have run. Within a launch,
    a step of a chain finds what the steps before it have written for the same work-item, a step of an ordered launch
    what the steps have written that it waits for; steps side by side find nothing of each other.

    Raises:
        InvariantError: a kernel reads what no kernel before it writes, or rows that its own work-items make.
    """
    _Order(launches, tensors).check(launches, outputs)


class _Order:
    def __init__(self, launches: Sequence[Launch], tensors: Mapping[str, Stored]) -> None:
        self.tensors = tensors
        self.missing: dict[str, int] = {}
        for leaf, share in _shared(launches):
            for name in dict.fromkeys(leaf.writes):
                self.missing[name] = self.missing.get(name, 0) + (1 if share is None else 0)
                if share is not None:
                    self.missing.setdefault(name, 0)
        self.shares: dict[str, set[int]] = {}
        self.cut: dict[str, set[int]] = {}
        for leaf, share in _shared(launches):
            if share is not None:
                for name in leaf.writes:
                    self.cut.setdefault(name, set()).add(share)

    def check(self, launches: Sequence[Launch], outputs: Collection[str]) -> None:
        for launch in launches:
            self._visit(launch, frozenset(), None)
            for leaf, share in _shared([launch]):
                self._written(leaf, share)
        for name in outputs:
            if not self._is_there(name, None):
                raise InvariantError(STAGE, "", name, "no kernel writes the whole of this output")

    def _written(self, leaf: Kernel, share: int | None) -> None:
        for name in dict.fromkeys(leaf.writes):
            if share is None:
                self.missing[name] -= 1
            else:
                self.shares.setdefault(name, set()).add(share)

    def _is_there(self, name: str, share: int | None) -> bool:
        """Whether a tensor is written: all of it, or for a reader of one share of the steps those up to that share."""
        if name not in self.missing:
            stored = self.tensors.get(name)
            return stored is not None and stored.role in ("input", "constant")
        wanted = self.cut.get(name, set())
        if share is not None:
            wanted = {s for s in wanted if s <= share}
        return self.missing[name] <= 0 and wanted <= self.shares.get(name, set())

    def _visit(self, launch: Launch, within: frozenset[str], share: int | None) -> None:
        """Check a launch.

        Args:
            within: what it finds of the launch that holds it.
            share: which of its shares it runs, None where it runs all of them.
        """
        if isinstance(launch, Single):
            self._leaf(launch.kernel, within, share)
            return
        before: list[frozenset[str]] = []
        for number, (step, only) in enumerate(zip(launch.steps, launch.only, strict=True)):
            known = within
            match launch:
                case Chain():
                    known = within.union(*before)
                case Ordered():
                    known = within.union(*(before[n] for n in launch.tasks.awaited(number)))
            self._visit(step, known, share if only is None else only)
            before.append(frozenset(name for kernel in step.kernels for name in kernel.writes))

    def _leaf(self, leaf: Kernel, within: frozenset[str], share: int | None) -> None:
        for name in leaf.reads:
            if name in leaf.writes:
                if leaf.form != "scan":
                    raise InvariantError(STAGE, leaf.name, name, "a kernel reads a tensor that it writes itself")
            elif name not in within and not self._is_there(name, share):
                raise InvariantError(STAGE, leaf.name, name, "a kernel reads it before it is written")


def _shared(launches: Iterable[Launch], share: int | None = None) -> Iterator[tuple[Kernel, int | None]]:
    """The kernels of launches, each with the share of its steps that it computes."""
    for launch in launches:
        if isinstance(launch, Single):
            yield launch.kernel, share
            continue
        for step, only in zip(launch.steps, launch.only, strict=True):
            yield from _shared([step], share if only is None else only)
