"""Counterexamples: made small, printed in full, and shown again by a few lines of Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.binding import FLOATS
from smartmem_rules.verification.instances.case import Case, Choices
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.instances.operands import draw_values
from smartmem_rules.verification.results import Counterexample
from smartmem_rules.verification.semantics.bounded import Bounded
from smartmem_rules.verification.semantics.domains import Array, Domain, PrimeField, Rationals, Undefined
from smartmem_rules.verification.semantics.evaluate import TooLarge
from smartmem_rules.verification.semantics.terms import leaves, term_text
from smartmem_rules.verification.trials.outcome import Difference, Outcome
from smartmem_rules.verification.trials.rewrites import Trial
from smartmem_rules.verification.trials.special_values import at_special

_STEPS = 400
_DRAWS, _SPECIAL_DRAWS = 6, 3
SHOWN = 24
"""Elements of a tensor that are printed."""


def shrink(rule: ast.Rewrite, search: Search, case: Case, difference: Difference) -> tuple[Case, Difference]:
    """A failing instance that is as small as local steps make it, with simple elements."""
    shrinker = _Shrinker(Trial(rule, search), search)
    shrinker.fails(case)  # learns by what it fails
    best, shown = case, difference
    steps = 0
    progress = True
    while progress and steps < _STEPS:
        progress = False
        for choices in _simpler(best.choices):
            steps += 1
            smaller = search.build(choices)
            if smaller is None or smaller.right is None or not smaller.satisfied or _size(smaller) >= _size(best):
                continue
            found = shrinker.fails(smaller)
            if found is not None:
                best, shown, progress = smaller, found, True
                break
            if steps >= _STEPS:
                break
    return best, shrinker.simplest(best) or shown


def _has_floats(case: Case) -> bool:
    return any(leaf.type.dtype in FLOATS for leaf in leaves(case.left).values())


class _Shrinker:
    """Tries smaller instances, by what the ones before them failed: others cost as much and say as little.

    Attributes:
        failed_by: the kind of domain in which the last one failed; `_Shrinker` itself for special values.
    """

    def __init__(self, trial: Trial, search: Search) -> None:
        self.trial = trial
        self.search = search
        self.random = random.Random(0)
        self.failed_by: type[Domain] | type[_Shrinker] | None = None

    def fails(self, case: Case) -> Difference | None:
        """A difference at some draw of values."""
        domains = list(dict.fromkeys(self.trial.comparison.domains(case)))
        special = _has_floats(case)
        if special and self.failed_by is _Shrinker:
            domains = []
        elif known := [domain for domain in domains if type(domain) is self.failed_by]:
            domains, special = known, False
        for number in range(_DRAWS):
            for domain in domains:
                found = self._attempt(case, domain, None)
                if found is not None:
                    self.failed_by = type(domain)
                    return found
            if number < _SPECIAL_DRAWS and special:
                found = self._special(case)
                if found is not None:
                    self.failed_by = _Shrinker
                    return found
        return None

    def _special(self, case: Case) -> Difference | None:
        return self.trial.special(case, Outcome())

    def _attempt(self, case: Case, domain: Domain, elements: Mapping[str, Array] | None) -> Difference | None:
        try:
            if elements is None:
                tensors = draw_values(case, domain, self.random)
            else:
                tensors = {n: self._in_domain(v, domain) for n, v in elements.items()}
            return self.trial.comparison.compare(case, domain, tensors)
        except (Undefined, ZeroDivisionError, TooLarge):
            return None

    @staticmethod
    def _in_domain(values: Array, domain: Domain) -> tuple[Array, ...]:
        if isinstance(domain, Bounded) and values.dtype.kind == "f":
            return values, domain.slack(values)
        return (values,)

    def simplest(self, case: Case) -> Difference | None:
        """The difference with the simplest elements: exact small numbers where the operations allow."""
        domains = self.trial.comparison.domains(case)
        if any(isinstance(d, PrimeField) for d in domains):
            domains = [Rationals()]
        for domain in domains:
            found = None
            for _ in range(20):
                found = self._attempt(case, domain, None)
                if found is not None:
                    return self._simplify(case, domain, found)
        for _ in range(50):
            if _has_floats(case):
                found = self._special(case)
                if found is not None:
                    return self._simplify_special(case, found)
        return None

    def _simplify_special(self, case: Case, difference: Difference) -> Difference:
        """The same counterexample, with a plain number for each special value (NaN, infinity) that it does not need."""
        return _plainest(
            difference, (1, 0, 2), set(case.uniform), lambda elements: self._at_special(case, elements), _oddness
        )

    def _at_special(self, case: Case, elements: Mapping[str, Array]) -> Difference | None:
        exact = Bounded(self.trial.comparison.near) if "reassociation" in self.trial.comparison.relaxes else Domain()
        tensors = {name: self._in_domain(values, exact) for name, values in elements.items()}
        return at_special(self.trial.comparison, case, tensors, Outcome())

    def _simplify(self, case: Case, domain: Domain, difference: Difference) -> Difference:
        fixed = {*case.uniform, *case.elements}
        return _plainest(
            difference, (1, 0, 2, 3), fixed, lambda elements: self._attempt(case, domain, elements), _plainness
        )


def _plainest(
    difference: Difference,
    numbers: Sequence[int],
    fixed: Collection[str],
    attempt: Callable[[Mapping[str, Array]], Difference | None],
    cost: Callable[[Difference], Any],
) -> Difference:
    """A difference with plain numbers at as many elements as it takes to make it cheap.

    Args:
        numbers: what elements are tried with, the plainest first.
        fixed: tensors that stay as they are.
        attempt: the difference that is left with other elements, if any.
    """
    for number in numbers:
        for name in [n for n in difference.tensors if n not in fixed]:
            values = difference.tensors[name]
            if values.dtype == bool or values.size == 0:
                continue
            for place in [None, *np.ndindex(values.shape)][: 1 + SHOWN]:
                changed = np.array(values)
                changed[... if place is None else place] = number
                found = attempt({**difference.tensors, name: changed})
                if found is not None and cost(found) < cost(difference):
                    difference = found
    return difference


def _plainness(difference: Difference) -> float:
    return sum(
        float(np.sum(np.where(values == 1, 0, np.where(values == 0, 1, 2 + np.abs(values.astype(np.float64))))))
        for values in difference.tensors.values()
        if values.dtype != bool and values.size
    )


def _oddness(difference: Difference) -> tuple[int, int, float]:
    """How many elements are no numbers or infinite, how many are not 1, and how large the numbers are."""
    arrays = [np.asarray(v, np.float64).reshape(-1) for v in difference.tensors.values() if v.dtype != bool]
    flat = np.concatenate([np.zeros(0), *arrays])
    numbers = flat[np.isfinite(flat)]
    scale = float(np.sum(np.minimum(np.abs(numbers - np.round(numbers)) + np.log1p(np.abs(numbers)), 1e9)))
    return int(flat.size - numbers.size), int(np.sum(flat != 1) + np.sum((flat == 0) & np.signbit(flat))), scale


def _size(case: Case) -> tuple[float, ...]:
    shapes = [leaf.type.shape for leaf in leaves(case.left).values()]
    odd = sum(leaf.type.dtype != "float32" for leaf in leaves(case.left).values())
    named = sum(_weight(v) for k, v in case.choices.items() if k.startswith(("name:", "given:")))
    return (sum(map(len, shapes)) + sum(math.prod(s) for s in shapes) + named, odd, len(case.constants))


def _weight(value: Any) -> float:
    if value is None:
        return 0.0
    if isinstance(value, dict):
        return sum(1 + _weight(v) for v in value.values() if v is not None)
    if isinstance(value, tuple | list):
        return sum(1 + _weight(v) for v in value)
    return min(abs(value), 20) * 0.1 if isinstance(value, int | float) and not isinstance(value, bool) else 0.1


def _simpler(choices: Choices) -> Iterator[Choices]:
    """Choices that may be simpler: fewer axes, smaller extents, absent attributes, the plain element type."""
    shapes = {slot: tuple(value) for slot, value in choices.items() if slot.startswith("shape:")}
    for changed in _smaller_shapes(shapes):
        # constants of other shapes have other elements
        yield {slot: value for slot, value in {**choices, **changed}.items() if not slot.startswith("elements:")}
    for slot, value in choices.items():
        for simple in _simpler_choice(slot, value):
            yield {**choices, slot: simple}


def _smaller_shapes(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, tuple[int, ...]]]:
    rank = max((len(s) for s in shapes.values()), default=0)
    for axis in range(rank):
        yield {k: s[:axis] + s[axis + 1 :] for k, s in shapes.items() if len(s) == rank}
        yield {k: s[: len(s) - 1 - axis] + s[len(s) - axis :] for k, s in shapes.items() if len(s) > axis}
    for value in sorted({n for s in shapes.values() for n in s if n > 1}, reverse=True):
        for smaller in (1, 2, value - 1):
            if smaller < value:
                yield {k: tuple(smaller if n == value else n for n in s) for k, s in shapes.items()}
    for slot, shape in shapes.items():
        for axis, extent in enumerate(shape):
            yield {slot: shape[:axis] + shape[axis + 1 :]}
            for smaller in (1, 2):
                if smaller < extent:
                    yield {slot: (*shape[:axis], smaller, *shape[axis + 1 :])}


def _simpler_choice(slot: str, value: Any) -> Iterator[Any]:
    if slot.startswith("given:"):
        for name in value:
            if value[name] is not None:
                yield {**value, name: None}
    elif slot.startswith("name:") and value is not None:
        yield from (None, 0, 1, 0.0, 1.0, (0,), (1,), (-1,))
    elif slot == "dtype" and value != "float32":
        yield "float32"
    elif slot.startswith(("constant:", "one:")) and value:
        yield False


# --- printing ------------------------------------------------------------------------------------------


def describe(rule: ast.Rewrite, case: Case, difference: Difference, seed: int, files: Sequence[str]) -> Counterexample:
    """The whole instance as text, data and a snippet."""
    assert case.right is not None
    used = leaves(case.left)
    place = ", ".join(map(str, difference.place))
    summary = f"element [{place}] is {difference.left} on the left and {difference.right} on the right"
    lines = [f"{rule.span}: {rule.name} is wrong ({difference.domain}, seed {seed})"]
    lines += [f"  left   {term_text(case.left)}", f"  right  {term_text(case.right)}"]
    for name, leaf in used.items():
        note = " constant" if name in case.constants else ""
        lines.append(f"  {name}: {leaf.type}{note} = {values_text(difference.tensors[name])}")
    for name, value in case.scope.values.items():
        lines.append(f"  {name} = {value!r}")
    lines.append(f"  left gives  {case.left.type} = {values_text(difference.left_values)}")
    lines.append(f"  right gives {case.right.type} = {values_text(difference.right_values)}")
    lines.append(f"  first difference: {summary}")
    kept = {k: v for k, v in case.choices.items()}
    tensors = {name: array_text(difference.tensors[name]) for name in used if used[name].number is None}
    data = {"rule": rule.name, "choices": repr(kept), "tensors": tensors, "domain": difference.domain, "seed": seed}
    data["tolerance"] = tolerance(difference)
    return Counterexample(summary, tuple(lines), _snippet(rule, kept, tensors, files), data)


def tolerance(difference: Difference) -> float:
    """Half of the relative difference of the first elements that differ; 0 where they differ in kind."""
    try:
        a, b = float(difference.left), float(difference.right)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    if not math.isfinite(a) or not math.isfinite(b) or a == b:
        return 0.0
    return min(abs(a - b) / max(abs(a), abs(b)) / 2, 0.25)


def _snippet(rule: ast.Rewrite, choices: Choices, tensors: Mapping[str, str], files: Sequence[str]) -> str:
    given = ",\n        ".join(f"{name!r}: {text}" for name, text in tensors.items())
    return (
        "import numpy as np\n"
        "from fractions import Fraction\n"
        "from smartmem_rules.tensor.builtins import ConstantTensor\n"
        "from smartmem_rules.verification.reproduce import both_sides\n\n"
        f"files = {list(files)!r}\n"
        f"left, right = both_sides(\n    files,\n    {rule.name!r},\n    {choices!r},\n"
        f"    {{\n        {given},\n    }},\n)\n"
        "print(left, right, sep='\\n')\n"
    )


def array_text(values: Array) -> str:
    """An array as a Python expression."""
    listed = repr(values.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    dtype = "object" if values.dtype == object else f"np.{values.dtype}" if values.dtype != bool else "bool"
    return f"np.array({listed}, {dtype}).reshape({values.shape})"


def values_text(values: Array) -> str:
    """The elements of an array, all of a small one."""
    flat = np.asarray(values).reshape(-1)
    listed = ", ".join(str(v) for v in flat[:SHOWN].tolist())
    return f"[{listed}{', ...' if flat.size > SHOWN else ''}]"
