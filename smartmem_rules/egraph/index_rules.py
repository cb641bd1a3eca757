"""Index rules at work: cheaper forms of the index maps in which the normaliser left a division or modulo."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol

from smartmem_rules.analysis.everywhere import equal_indices
from smartmem_rules.egraph.bindings import bindings
from smartmem_rules.egraph.index_compile import DECLARATIONS, compile_index_rules
from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.atoms import Atom, Div, Lookup, Mod, Var
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.substitution import substitute
from smartmem_rules.tensor.views import IndexMap

ITERATIONS = 8
MAXIMUM_ROWS = 4_000
ALL_ROWS = 20_000
"""Of all searches of one saturation together. A limit by the clock would make plans depend on the load."""
KEPT_ROWS = 100
"""Of the searches that share an e-graph. Taking one down takes as long as a search; rows of others have to be read."""
PROOF_POINTS = 1 << 20
"""A cheaper form is taken only if it is equal at every point, and the points are at most this many."""

COSTS = {"V": 0, "K": 0, "Plus": 1, "Times": 2, "Over": 8, "Modulo": 8}


class IndexRules(Protocol):
    """What this module needs of a rule base."""

    @property
    def index_rules(self) -> Sequence[ast.IndexRule]: ...


class Improver:
    """Improves index maps with the index rules of a rule base.

    An index is a sum. Summands without a variable in common tell nothing about each other, so they are searched apart,
    each once whatever its variables are called: windows of an image have the same summands along both of its axes.

    Raises:
        IndexRuleError: a rule uses what interval arithmetic cannot decide.
    """

    def __init__(self, base: IndexRules, disable: Collection[str] = ()) -> None:
        self.rules = compile_index_rules([rule for rule in base.index_rules if rule.name not in disable])
        self.engine: _Engine | None = None
        self.known: dict[Index, Index] = {}
        """By indices over variables that are called by their order alone."""
        self.rows = 0

    def close(self) -> None:
        """Give the e-graph back: it may only be dropped by the thread that made it."""
        self.engine = None

    def improve(self, map_: IndexMap) -> IndexMap:
        """The map with cheaper indices where the rules give any."""
        if not self.rules or all(is_simple(index) for index in map_.indices):
            return map_
        return IndexMap(map_.variables, tuple(self._improve(index) for index in map_.indices), map_.source)

    def _improve(self, index: Index) -> Index:
        if index.is_open or is_simple(index):
            return index
        better = Index(index.constant)
        for terms in _apart(index):
            (_, coefficient), *others = terms
            factor = 1 if others else coefficient
            part = Index(0, tuple((atom, number // factor) for atom, number in terms))
            better = add(better, scale(part if is_simple(part) else self._cheaper(part), factor))
        return better

    def _cheaper(self, index: Index) -> Index:
        """A cheaper form of one that the rules give, else itself."""
        if self.rows > ALL_ROWS:
            return index
        own = sorted(index.variables, key=lambda v: v.name)
        numbered = [Var(f"v{number:03}", v.extent) for number, v in enumerate(own)]
        asked = substitute(index, dict(zip(own, map(variable, numbered), strict=True)))
        found = self.known.get(asked)
        if found is None:
            better = self._search(asked)
            cheaper = better is not None and cost(better) < cost(asked) and equal_indices(better, asked, PROOF_POINTS)
            found = self.known[asked] = better if cheaper and better is not None else asked
        return substitute(found, dict(zip(numbered, map(variable, own), strict=True)))

    def _search(self, index: Index) -> Index | None:
        if self.engine is None:
            self.engine = _Engine(self.rules)
        try:
            found, rows = self.engine.search(index)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a Rust panic is no Exception; a product of constants that overflows is one
            self.engine = None
            return None
        self.rows += rows
        return found


def _apart(index: Index) -> list[list[tuple[Atom, int]]]:
    """The terms of an index, parted so that those with a variable in common stay together."""
    parts: list[tuple[frozenset[Var], list[tuple[Atom, int]]]] = []
    for atom, coefficient in index.terms:
        variables = atom.variables
        joined = [part for part in parts if not variables.isdisjoint(part[0])]
        parts = [part for part in parts if variables.isdisjoint(part[0])]
        together = [term for _, terms in joined for term in terms]
        parts.append((variables.union(*(known for known, _ in joined)), [*together, (atom, coefficient)]))
    return [terms for _, terms in parts]


class _Engine:
    """An e-graph in which searches follow each other.

    Each has atoms of its own, so that it finds what it would find alone; terms of constants are common to all.
    """

    def __init__(self, rules: Sequence[str]) -> None:
        self.egraph = bindings.EGraph()
        self._run(DECLARATIONS)
        for rule in rules:
            self._run(rule)
        self._run("(push)")
        self._rows = self._atoms = self._searches = 0

    def search(self, index: Index) -> tuple[Index | None, int]:
        """The cheapest form that the rules give, and the rows that looking for it took."""
        if self._rows > KEPT_ROWS:
            self._run("(pop)\n(push)")
            self._rows = self._atoms = self._searches = 0
        writer = _Writer(self._atoms, f"${self._searches}")
        root = writer.index(index)
        self._run("\n".join([*writer.lines, f"(let {writer.mark} {root})"]))
        before = rows = self._rows
        for _ in range(ITERATIONS):
            outputs = self._run("(run-schedule (run index))\n(print-size)")
            sizes = [o.sizes for o in outputs if isinstance(o, bindings.PrintAllFunctionsSize)]
            rows = sum(size for table in sizes for _, size in table)
            updated = any(isinstance(o, bindings.RunScheduleOutput) and o.report.updated for o in outputs)
            if not updated or rows - before > MAXIMUM_ROWS:
                break
        self._rows, self._atoms, self._searches = rows, self._atoms + len(writer.atoms), self._searches + 1
        return _cheapest(self.egraph, writer.mark, writer.atoms), rows - before

    def _run(self, text: str) -> list[object]:
        return list(self.egraph.run_program(*self.egraph.parse_program(text)))


class _Writer:
    """Writes an index as egglog terms; a sum is also written split at each of its coefficients.

    Attributes:
        first: the number of the first atom.
        mark: with which the names of terms begin.
        atoms: by their numbers.
    """

    def __init__(self, first: int, mark: str) -> None:
        self.first = first
        self.mark = mark
        self.lines: list[str] = []
        self.atoms: dict[int, Atom] = {}
        self.numbers: dict[Atom, str] = {}
        self.names: dict[Index, str] = {}

    def index(self, index: Index, divisor: int = 0) -> str:
        if index in self.names:
            return self.names[index]
        parts = [self._term(atom, coefficient) for atom, coefficient in index.terms]
        if index.constant or not parts:
            parts.append(f"(K {index.constant})")
        text = parts[0]
        for part in parts[1:]:
            text = f"(Plus {text} {part})"
        name = self.names[index] = f"{self.mark}x{len(self.names)}"
        self.lines.append(f"(let {name} {text})")
        if len(parts) > 1:
            for factor in sorted({abs(c) for _, c in index.terms} | {divisor}):
                self._split(index, name, factor)
        return name

    def _split(self, index: Index, name: str, factor: int) -> None:
        high = tuple((a, c // factor) for a, c in index.terms if factor > 1 and c % factor == 0)
        low = tuple((a, c) for a, c in index.terms if factor > 1 and c % factor)
        if not high:
            return
        rest = Index(index.constant % factor, low)
        whole = self.index(Index(index.constant // factor, high))
        if rest == Index(0):
            self.lines.append(f"(union {name} (Times {whole} (K {factor})))")
        else:
            self.lines.append(f"(union {name} (Plus (Times {whole} (K {factor})) {self.index(rest)}))")

    def _term(self, atom: Atom, coefficient: int) -> str:
        text = self._atom(atom)
        return text if coefficient == 1 else f"(Times {text} (K {coefficient}))"

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Div(value=value, divisor=divisor):
                return f"(Over {self.index(value, divisor)} (K {divisor}))"
            case Mod(value=value, divisor=divisor):
                return f"(Modulo {self.index(value, divisor)} (K {divisor}))"
            case _:
                if atom not in self.numbers:
                    number = self.first + len(self.atoms)
                    self.atoms[number] = atom
                    self.numbers[atom] = f"(V {number})"
                    low, high = atom.interval
                    self.lines.append(f"(set (low (V {number})) {low})\n(set (high (V {number})) {high})")
                return self.numbers[atom]


def _cheapest(egraph: bindings.EGraph, root: str, atoms: dict[int, Atom]) -> Index | None:
    """The cheapest tree of a term's class, read back through the normaliser; terms of other atoms are passed over."""
    functions = egraph.freeze().functions
    users: dict[bindings.Value, list[tuple[str, tuple[bindings.Value, ...], bindings.Value]]] = defaultdict(list)
    queue: list[tuple[int, int, bindings.Value, Index]] = []
    best: dict[bindings.Value, tuple[int, Index]] = {}
    ties = itertools.count()
    for name in ("V", "K"):
        for row in functions[name].rows:
            number = egraph.value_to_i64(row.inputs[0])
            if name == "V" and number not in atoms:
                continue
            index = Index(number) if name == "K" else Index(0, ((atoms[number], 1),))
            heapq.heappush(queue, (0, next(ties), row.output, index))
    for name in ("Plus", "Times", "Over", "Modulo"):
        for row in functions[name].rows:
            for child in set(row.inputs):
                users[child].append((name, tuple(row.inputs), row.output))
    while queue:
        price, _, value, index = heapq.heappop(queue)
        if value in best:
            continue
        best[value] = price, index
        for name, inputs, output in users[value]:
            if output in best or any(child not in best for child in inputs):
                continue
            (left_price, left), (right_price, right) = (best[child] for child in inputs)
            built = _apply(name, left, right)
            if built is not None:
                heapq.heappush(queue, (COSTS[name] + left_price + right_price, next(ties), output, built))
    (value,) = (row.output for row in functions[root].rows)
    return best[value][1] if value in best else None


def _apply(name: str, left: Index, right: Index) -> Index | None:
    if name == "Plus":
        return add(left, right)
    if not right.is_constant:
        return None
    factor = right.constant
    if name == "Times":
        return scale(left, factor)
    if factor <= 0:
        return None
    return div(left, factor) if name == "Over" else mod(left, factor)


def is_simple(index: Index) -> bool:
    """Whether no division or modulo is left, or only plain digits of one variable, which nothing makes cheaper."""
    return all(_is_simple_atom(atom) for atom, _ in index.terms)


def _is_simple_atom(atom: Atom) -> bool:
    match atom:
        case Div(value=value) | Mod(value=value):
            inner = value.atom
            quotient = isinstance(atom, Mod) and isinstance(inner, Div) and _is_simple_atom(inner)
            return isinstance(inner, Var) or quotient
        case Lookup(position=position):
            return is_simple(position)
        case _:
            return True


def cost(index: Index) -> int:
    """What an index costs to compute: 8 for a division or modulo, 2 for a product, 1 for a sum."""
    total = max(0, len(index.terms) - 1) + (1 if index.constant and index.terms else 0)
    for atom, coefficient in index.terms:
        total += 2 if coefficient != 1 else 0
        match atom:
            case Div(value=value) | Mod(value=value):
                total += 8 + cost(value)
            case Lookup(position=position):
                total += 8 + cost(position)
            case _:
                pass
    return total
