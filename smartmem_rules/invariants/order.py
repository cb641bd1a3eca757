"""Every read of a kernel is behind the writes of what it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.kernel.model import Kernel, Stored

STAGE = "fusion"


def check_order(kernels: Sequence[Kernel], tensors: Mapping[str, Stored], outputs: Collection[str]) -> None:
    """Check that launches find what they read, and that all outputs are written.

    A tensor is there when all launches that write it, in pieces or in shares of its steps, have run. Within a launch,
    a step of a chain finds what the steps before it have written for the same work-item, a step of an ordered launch
    what the steps have written that it waits for; steps side by side find nothing of each other.

    Raises:
        InvariantError: a kernel reads what no kernel before it writes, or rows that its own work-items make.
    """
    _Order(kernels, tensors).check(kernels, outputs)


class _Order:
    def __init__(self, kernels: Sequence[Kernel], tensors: Mapping[str, Stored]) -> None:
        self.tensors = tensors
        self.missing: dict[str, int] = {}
        for _, leaf, share in _leaves(kernels):
            for name in dict.fromkeys(leaf.writes):
                self.missing[name] = self.missing.get(name, 0) + (1 if share is None else 0)
                if share is not None:
                    self.missing.setdefault(name, 0)
        self.shares: dict[str, set[int]] = {}
        self.cut: dict[str, set[int]] = {}
        for _, leaf, share in _leaves(kernels):
            if share is not None:
                for name in leaf.writes:
                    self.cut.setdefault(name, set()).add(share)

    def check(self, kernels: Sequence[Kernel], outputs: Collection[str]) -> None:
        for kernel in kernels:
            self._visit(kernel, frozenset(), None)
            for _, leaf, share in _leaves([kernel]):
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

    def _visit(self, kernel: Kernel, within: frozenset[str], share: int | None) -> None:
        """Check a kernel; `within` is what it finds of its own launch."""
        share = share if kernel.share is None else kernel.share
        if not kernel.steps:
            self._leaf(kernel, within, share)
            return
        before: list[frozenset[str]] = []
        for number, step in enumerate(kernel.steps):
            known = within
            if kernel.form == "chain":
                known = within.union(*before) if before else within
            elif kernel.form == "ordered" and kernel.tasks is not None:
                known = within.union(*(before[n] for n in awaited(kernel, number)))
            self._visit(step, known, share)
            before.append(frozenset(name for leaf in step.leaves for name in leaf.writes))

    def _leaf(self, leaf: Kernel, within: frozenset[str], share: int | None) -> None:
        for name in leaf.reads:
            if name in leaf.writes:
                if leaf.form != "scan":
                    raise InvariantError(STAGE, leaf.name, name, "a kernel reads a tensor that it writes itself")
            elif name not in within and not self._is_there(name, share):
                raise InvariantError(STAGE, leaf.name, name, "a kernel reads it before it is written")


def awaited(kernel: Kernel, number: int) -> set[int]:
    """The steps of an ordered launch that are done when a step begins, or far enough for it."""
    assert kernel.tasks is not None
    found: set[int] = set()
    stack = [number]
    while stack:
        for wait in kernel.tasks.waits[stack.pop()]:
            if wait.step not in found:
                found.add(wait.step)
                stack.append(wait.step)
    return found


def _leaves(kernels: Iterable[Kernel], share: int | None = None) -> Iterable[tuple[Kernel, Kernel, int | None]]:
    """(launch, kernel of one group of equations, the share of its steps that it computes)."""
    for kernel in kernels:
        own = share if kernel.share is None else kernel.share
        if not kernel.steps:
            yield kernel, kernel, own
        for step in kernel.steps:
            for _, leaf, found in _leaves([step], own):
                yield kernel, leaf, found
