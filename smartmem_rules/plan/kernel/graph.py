"""The dependence graph of kernels, groups or launches, with a topological order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar


class ReadsAndWrites(Protocol):
    """What a graph is made of."""

    @property
    def reads(self) -> Collection[str]:
        """The tensors that have to be there before."""

    @property
    def writes(self) -> Collection[str]:
        """The tensors that are there afterwards."""


K = TypeVar("K", bound=ReadsAndWrites)
N = TypeVar("N", bound=Hashable)


class KernelGraph(Generic[K]):
    """Kernels by their numbers.

    Attributes:
        makers: of each tensor the kernels that write it; several where each writes a part, or where they compete.
        users: of each tensor the kernels that read it.
    """

    def __init__(self, kernels: Sequence[K]) -> None:
        self.kernels = kernels
        self.makers: dict[str, list[int]] = {}
        self.users: dict[str, list[int]] = {}
        for number, kernel in enumerate(kernels):
            for tensor in dict.fromkeys(kernel.writes):
                self.makers.setdefault(tensor, []).append(number)
            for tensor in dict.fromkeys(kernel.reads):
                self.users.setdefault(tensor, []).append(number)

    def producers(self, number: int) -> list[int]:
        """The other kernels that write what a kernel reads, in the order in which it reads."""
        found = dict.fromkeys(n for tensor in self.kernels[number].reads for n in self.makers.get(tensor, ()))
        return [n for n in found if n != number]

    def consumers(self, number: int) -> list[int]:
        """The other kernels that read what a kernel writes, in the order in which it writes."""
        found = dict.fromkeys(n for tensor in self.kernels[number].writes for n in self.users.get(tensor, ()))
        return [n for n in found if n != number]

    def in_order(self) -> list[K] | None:
        """The kernels in an order of execution, each as early as it stands; None if there is none."""
        order = toposort(range(len(self.kernels)), self.producers)
        return None if order is None else [self.kernels[number] for number in order]


def toposort(nodes: Iterable[N], producers: Callable[[N], Iterable[N]]) -> list[N] | None:
    """Nodes behind all that they need, each as early as it stands; None if some need each other in a circle."""
    done: dict[N, None] = {}
    for root in nodes:
        stack, entered = [(root, iter(producers(root)))], {root}
        while stack:
            node, rest = stack[-1]
            following = next((one for one in rest if one not in done), None)
            if following is None:
                entered.discard(node)
                done.setdefault(node)
                stack.pop()
            elif following in entered:
                return None
            else:
                entered.add(following)
                stack.append((following, iter(producers(following))))
    return list(done)


def needs(
    nodes: Iterable[N], target: N, producers: Callable[[N], Iterable[N]], may: Callable[[N], bool] = lambda _: True
) -> bool:
    """Whether one of the nodes needs the target, directly or through others.

    Args:
        may: whether a node could need the target at all; others are not followed.
    """
    stack = list(nodes)
    seen = set(stack)
    while stack:
        for producer in producers(stack.pop()):
            if producer == target:
                return True
            if producer not in seen and may(producer):
                seen.add(producer)
                stack.append(producer)
    return False
