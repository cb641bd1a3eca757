"""Candidate kernels: those of the fusion rules, and those that other decisions of the rules would give.

Fusion runs several times: without each block that is `optional`, with nothing computed twice, up to the limits
`recompute_most`, with definitions that join the first kernel that could take them in and not the last, and, where a
table leaves cells to the cost model (`depends`), with all of them fused and with none.  What differs between the runs
falls into regions of the graph that have several configurations, sets of kernels that compute the same from the same.
Kernels of different runs go together wherever one stores what the other reads, so a configuration need not come from
one run, and regions choose by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from smartmem_rules.language.blocks.fuse import FeedBlock
from smartmem_rules.plan.fusion.equations.program import Program
from smartmem_rules.plan.fusion.groups import Group
from smartmem_rules.plan.fusion.lower import lower_group
from smartmem_rules.plan.fusion.policy import Policy
from smartmem_rules.plan.fusion.result import FusionResult, FusionTrace
from smartmem_rules.plan.kernel.graph import KernelGraph
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.records import dataclass

Configuration = tuple[int, ...]
"""The numbers of the kernels that run."""
_MOST_CHOICES = 20_000
"""Steps of a search for the configurations of one region; the regions of models take some hundreds."""


@dataclass(frozen=True)
class Limits:
    """What configurations compete.

    Attributes:
        configurations: of a region, at most.
        further_kernels: how many kernels one may have more than the rules make there.
    """

    configurations: int
    further_kernels: int


@dataclass(frozen=True)
class Region:
    """A part of the graph that can be computed in several ways, the first of them that of the rules."""

    configurations: tuple[Configuration, ...]


@dataclass(frozen=True)
class Pool:
    """All kernels that compete, those of the rules first and in their order.

    Attributes:
        first: how many kernels the rules make.
        always: the kernels that are in every plan.
        regions: those of which at least two configurations are known; the kernels of others are in `always`.
    """

    kernels: tuple[Kernel, ...]
    first: int
    always: tuple[int, ...]
    regions: tuple[Region, ...]

    def chosen(self, configurations: Sequence[int]) -> list[Kernel] | None:
        """The kernels of a configuration of each region, in an order of execution; None if there is none."""
        numbers = [*self.always]
        for region, number in zip(self.regions, configurations, strict=True):
            numbers += region.configurations[number]
        return KernelGraph([self.kernels[n] for n in sorted(numbers)]).in_order()


def other_policies(policy: Policy, made: FusionTrace) -> list[Policy]:
    """The policies whose kernels compete with those that the rules make, given where the rules decided something."""
    rules = policy.rules
    found = []
    if made.refused:
        found.append(_with(policy, made.refused, lambda rule: rule.relaxed()))
    if made.repeating:
        found.append(_with(policy, made.repeating, lambda rule: replace(rule, recompute=0)))
    optional = [r.name for r in rules if r.optional and r.name in made.applied]
    found += [_without(policy, {name}) for name in optional]
    if len(optional) > 1:
        found.append(_without(policy, optional))
    if made.contested:
        found.append(replace(policy, joins_earliest=True))
    if policy.leaves_open:
        found += [replace(policy, depends="always"), replace(policy, depends="never")]
    return found


def _with(policy: Policy, names: Collection[str], limited: Callable[[FeedBlock], FeedBlock]) -> Policy:
    """The policy with other limits of what is computed anew."""
    rules = (limited(r) if isinstance(r, FeedBlock) and r.name in names else r for r in policy.rules)
    return replace(policy, rules=tuple(rules))


def _without(policy: Policy, names: Collection[str]) -> Policy:
    return replace(policy, rules=tuple(r for r in policy.rules if r.name not in names))


@dataclass(frozen=True)
class _Candidate:
    """A group of a fusion, and what its kernel reads and writes of what kernels compute."""

    group: Group
    fused: FusionResult
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @staticmethod
    def of(group: Group, fused: FusionResult) -> _Candidate:
        own = {m.tensor: None for m in group.everyone}
        read = dict.fromkeys(t for m in group.everyone for t in m.reads)
        writes = tuple(t for t in own if t in fused.stored)
        return _Candidate(group, fused, tuple(t for t in read if t not in own), writes)


def gather(
    program: Program,
    kernels: Sequence[Kernel],
    fused: FusionResult,
    others: Iterable[FusionResult],
    admitted: Callable[[Kernel], bool],
    limits: Limits,
) -> Pool:
    """The pool of a plan's kernels and of those of other fusions of the same program.

    Args:
        kernels: those of `fused`, in the order of its groups.
        admitted: whether a kernel may compete.
        limits: of the configurations of a region.
    """
    numbers: dict[object, int] = {}
    found: list[_Candidate] = []
    runs, stored = [], []
    for one in (fused, *others):
        run = set()
        for group in one.groups:
            number = numbers.setdefault(_key(group, one), len(found))
            if number == len(found):
                found.append(_Candidate.of(group, one))
            run.add(number)
        runs.append(run)
        stored.append(one.stored)
    regions = _Regions(found, runs, set.intersection(*stored), limits).regions()
    # only what is in a configuration that competes is made
    made = dict(enumerate(kernels))
    for number in sorted({n for region in regions for one in region for n in one} - {*made}):
        candidate = found[number]
        name = f"{program.prefix}{number}_{candidate.group.form}"
        made[number] = lower_group(program, candidate.fused, candidate.group, name)
    possible = {n for n, kernel in made.items() if n < len(kernels) or admitted(kernel)}
    left = [Region(tuple(one for one in region if possible.issuperset(one))) for region in regions]
    left = [region for region in left if len(region.configurations) > 1]
    return _pool(made, [n for n in range(len(kernels)) if admitted(kernels[n])], left)


def _pool(made: Mapping[int, Kernel], first: Sequence[int], regions: Sequence[Region]) -> Pool:
    """The pool of some kernels, numbered anew."""
    chosen = {n for region in regions for one in region.configurations for n in one}
    order = [*first, *sorted(chosen.difference(first))]
    place = {number: new for new, number in enumerate(order)}
    renamed = [Region(tuple(tuple(place[n] for n in one) for one in r.configurations)) for r in regions]
    always = tuple(place[n] for n in first if n not in chosen)
    return Pool(tuple(made[n] for n in order), len(first), always, tuple(renamed))


def _key(group: Group, fused: FusionResult) -> object:
    """What two groups share that make the same kernel, whatever fusion they come from."""
    members = tuple((m.tensor, m.tensor in group.coordinates, m.tensor in fused.stored) for m in group.members)
    nested = ([*group.feeding], [*group.siblings], [g for g in (group.scores, group.source) if g is not None])
    return group.form, members, tuple(tuple(_key(g, fused) for g in own) for own in nested)


class _Regions:
    """What differs between runs, in parts that do not depend on each other.

    Args:
        runs: the numbers of each fusion's kernels, the rules' first.
        steady: what all of them store.
    """

    def __init__(
        self, kernels: Sequence[_Candidate], runs: Sequence[set[int]], steady: set[str], limits: Limits
    ) -> None:
        self.kernels = kernels
        self.runs = runs
        self.limits = limits
        self.steady = steady
        self.common = set.intersection(*runs)
        self.writers = KernelGraph(kernels).makers

    def regions(self) -> list[list[Configuration]]:
        """The configurations of each part, the rules' first."""
        found = []
        for members in self._parts():
            own = tuple(sorted(self.runs[0].intersection(members)))
            most = len(own) + self.limits.further_kernels
            ways = dict.fromkeys([own, *(one for one in self._configurations(members) if len(one) <= most)])
            if len(ways) > 1:
                found.append(list(ways))
        return found

    def _parts(self) -> list[list[int]]:
        """The kernels that are not in all runs, those together that write the same, or what only some runs store."""
        leader = {n: n for n in range(len(self.kernels)) if n not in self.common}

        def find(number: int) -> int:
            while leader[number] != number:
                leader[number] = leader[leader[number]]
                number = leader[number]
            return number

        first: dict[str, int] = {}
        for number in leader:
            kernel = self.kernels[number]
            own = [t for t in kernel.reads if t in self.writers and t not in self.steady]
            for tensor in (*kernel.writes, *own):
                leader[find(number)] = find(first.setdefault(tensor, number))
        parts: dict[int, list[int]] = {}
        for number in leader:
            parts.setdefault(find(number), []).append(number)
        return list(parts.values())

    def _configurations(self, members: Sequence[int]) -> Iterator[Configuration]:
        """The sets of kernels that write all that is stored in any case, and what they need for it."""
        inside = set(members)
        yield from (one for run in self.runs if self._complete(one := tuple(sorted(inside & run))))
        wanted = tuple(dict.fromkeys(t for n in members for t in self.kernels[n].writes if t in self.steady))
        covers = self._covers(wanted, inside)
        yield from (tuple(sorted(one)) for one in islice(covers, self.limits.configurations))

    def _complete(self, numbers: Configuration) -> bool:
        """Whether kernels write all that only some runs store and they read, and nothing twice."""
        written = [t for n in numbers for t in self.kernels[n].writes]
        needs = {t for n in numbers for t in self.kernels[n].reads if t in self.writers and t not in self.steady}
        return len(set(written)) == len(written) and needs <= set(written)

    def _covers(self, wanted: Sequence[str], inside: Collection[int]) -> Iterator[Configuration]:
        """The sets of kernels that write what is wanted and what they read themselves, nothing twice, depth first.

        The search ends after `_MOST_CHOICES`: where few sets are possible, it would try all ways to fail.
        """
        queue, asked = [*wanted], set(wanted)
        taken: list[int] = []
        written: set[str] = set()
        # for each choice on the way: what else can be chosen, its tensor's place in the queue, and the queue's length
        choices: list[tuple[Iterator[int], int, int]] = []
        place = 0
        for _ in range(_MOST_CHOICES):
            while place < len(queue) and queue[place] in written:
                place += 1
            if place == len(queue):
                yield tuple(taken)
            else:
                choices.append((iter(self.writers[queue[place]]), place, len(queue)))
            found = None
            while choices and found is None:
                others, place, length = choices[-1]
                if len(taken) == len(choices):
                    written.difference_update(self.kernels[taken.pop()].writes)
                    asked.difference_update(queue[length:])
                    del queue[length:]
                found = next((n for n in others if n in inside and written.isdisjoint(self.kernels[n].writes)), None)
                if found is None:
                    choices.pop()
            if found is None:
                return
            kernel = self.kernels[found]
            needs = [t for t in dict.fromkeys(kernel.reads) if t in self.writers and t not in self.steady]
            queue += [t for t in needs if t not in asked]
            asked.update(needs)
            taken.append(found)
            written.update(kernel.writes)
