"""The extraction problem: which e-node of each needed class, every class paid once.

Before anything is solved, choices that can never be better are removed.  `required` of a class are the classes that
every way of building it needs (dominators); they decide most choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Choice:
    """One way to build a class."""

    cost: float
    children: tuple[int, ...]
    key: int
    """Which e-node of the class it is."""


@dataclass
class Problem:
    """Choices by class, and the classes that are needed in the end."""

    choices: dict[int, list[Choice]]
    roots: tuple[int, ...]
    required: dict[int, int] = field(default_factory=dict)
    """For each class the set of classes (as bits, see `bit`) that building it always needs, itself included."""
    bit: dict[int, int] = field(default_factory=dict)


class Infeasible(Exception):
    """Some needed tensor cannot be built."""


def prune(problem: Problem) -> None:
    """Drop unbuildable, cyclic, dominated and unreachable choices.

    Raises:
        Infeasible: a root has no choice left.
    """
    changed = True
    while changed:
        _drop_unbuildable(problem)
        _keep_reachable(problem)
        _find_required(problem)
        changed = _drop_dominated(problem)


def _drop_unbuildable(problem: Problem) -> None:
    users: dict[int, list[tuple[int, int]]] = {}
    missing: dict[tuple[int, int], int] = {}
    ready: list[int] = []
    built: set[int] = set()
    for number, choices in problem.choices.items():
        for place, choice in enumerate(choices):
            needs = set(choice.children)
            missing[number, place] = len(needs)
            for child in needs:
                users.setdefault(child, []).append((number, place))
            if not needs and number not in built:
                built.add(number)
                ready.append(number)
    while ready:
        for user in users.get(ready.pop(), ()):
            missing[user] -= 1
            if missing[user] == 0 and user[0] not in built:
                built.add(user[0])
                ready.append(user[0])
    problem.choices = {
        number: [c for c in choices if built.issuperset(c.children)]
        for number, choices in problem.choices.items()
        if number in built
    }
    if not built.issuperset(problem.roots):
        raise Infeasible("an output cannot be built from the inputs")


def _keep_reachable(problem: Problem) -> None:
    reached: set[int] = set()
    stack = list(problem.roots)
    while stack:
        number = stack.pop()
        if number in reached:
            continue
        reached.add(number)
        for choice in problem.choices[number]:
            stack.extend(choice.children)
    problem.choices = {number: problem.choices[number] for number in problem.choices if number in reached}


def _find_required(problem: Problem) -> None:
    """The greatest fixpoint of: a class needs itself and what all its choices need."""
    order = post_order(problem)
    problem.bit = {number: 1 << place for place, number in enumerate(order)}
    top = (1 << len(order)) - 1
    required = dict.fromkeys(order, top)
    changed = True
    while changed:
        changed = False
        for number in order:
            common = top
            for choice in problem.choices[number]:
                common &= _needs(choice, required)
            common |= problem.bit[number]
            if common != required[number]:
                required[number] = common
                changed = True
    problem.required = required


def _needs(choice: Choice, required: dict[int, int]) -> int:
    needs = 0
    for child in choice.children:
        needs |= required[child]
    return needs


def post_order(problem: Problem) -> list[int]:
    """The classes, children first as far as cycles allow."""
    order: list[int] = []
    seen: set[int] = set()
    for root in problem.roots:
        stack: list[tuple[int, bool]] = [(root, False)]
        while stack:
            number, done = stack.pop()
            if done:
                order.append(number)
                continue
            if number in seen:
                continue
            seen.add(number)
            stack.append((number, True))
            for choice in problem.choices[number]:
                stack.extend((child, False) for child in choice.children if child not in seen)
    return order


def _drop_dominated(problem: Problem) -> bool:
    """Drop a choice that needs its own class, or beside which another is no dearer and needs nothing more."""
    dropped = False
    for number, choices in problem.choices.items():
        needs = [_needs(c, problem.required) for c in choices]
        kept = [i for i in range(len(choices)) if not needs[i] & problem.bit[number]]
        bits = [_union(problem.bit[child] for child in set(c.children)) for c in choices]
        # cheapest first, then the one that needs least: it can make the others superfluous
        kept.sort(key=lambda i: (choices[i].cost, needs[i].bit_count(), i))
        chosen: list[int] = []
        for i in kept:
            if not any(choices[j].cost <= choices[i].cost and bits[j] & ~needs[i] == 0 for j in chosen):
                chosen.append(i)
        if len(chosen) < len(choices):
            dropped = True
            problem.choices[number] = [choices[i] for i in chosen]
    return dropped


def _union(bits: Iterable[int]) -> int:
    union = 0
    for bit in bits:
        union |= bit
    return union


def components(problem: Problem) -> list[list[int]]:
    """Strongly connected components of the classes with more than one member (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[int] = []
    is_open: set[int] = set()
    found: list[list[int]] = []
    children = {n: list({c for choice in cs for c in choice.children}) for n, cs in problem.choices.items()}
    for root in problem.roots:
        if root in index:
            continue
        stack: list[tuple[int, int]] = [(root, 0)]
        while stack:
            number, place = stack.pop()
            if place == 0:
                index[number] = low[number] = len(index)
                open_.append(number)
                is_open.add(number)
            elif children[number][place - 1] in is_open:
                low[number] = min(low[number], low[children[number][place - 1]])
            for after in range(place, len(children[number])):
                child = children[number][after]
                if child not in index:
                    stack += [(number, after + 1), (child, 0)]
                    break
                if child in is_open:
                    low[number] = min(low[number], index[child])
            else:
                if low[number] == index[number]:
                    members = []
                    while True:
                        member = open_.pop()
                        is_open.discard(member)
                        members.append(member)
                        if member == number:
                            break
                    if len(members) > 1:
                        found.append(members)
    return found


def selection_cost(problem: Problem, selection: dict[int, Choice]) -> float:
    """The cost of the classes that the roots need under a selection."""
    return sum(selection[number].cost for number in selected_order(problem.roots, selection))


def selected_order(roots: Sequence[int], selection: dict[int, Choice]) -> list[int]:
    """The needed classes, children first.

    Raises:
        Infeasible: the selection has a cycle.
    """
    order: list[int] = []
    state: dict[int, int] = {}
    for root in roots:
        stack = [(root, False)]
        while stack:
            number, done = stack.pop()
            if done:
                state[number] = 2
                order.append(number)
            elif state.get(number) == 1:
                raise Infeasible("a selection depends on itself")
            elif number not in state:
                state[number] = 1
                stack.append((number, True))
                for child in selection[number].children:
                    if state.get(child) == 1:
                        raise Infeasible("a selection depends on itself")
                    if child not in state:
                        stack.append((child, False))
    return order
