"""What egglog asks Python while it runs.

egglog keeps texts only: metas (`m7`, constants `C7`), attributes (`a3`) and index maps (`v5`, those that change
nothing `I5`) are interned here.
A rule asks with one line, `SESSION|SUBJECT|text|text...`, and gets a text back; "" means no.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

import numpy as np

from smartmem_rules.egraph.constants import Constants, Recipe
from smartmem_rules.egraph.model import Meta, NearMiss, RuleStatistics
from smartmem_rules.graph.known.shapes import is_open
from smartmem_rules.language.syntax import Span
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances, attribute_key
from smartmem_rules.rulebase.kept import Constant, KeepRules, keeping_rule
from smartmem_rules.tensor.binding import output_name
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.views import IndexMap, compose

NEAR_MISSES_PER_RULE = 64

Extents = tuple[tuple[int, ...], tuple[int, ...]]
"""A view's and its source's."""

Answer = Callable[["Host", Sequence[str]], str]

LARGEST_MAP = 100
"""Atoms of a composed map; tensors that are views of each other would otherwise be composed in circles for ever."""

MOST_MAPS = 32
"""Composed maps of one tensor's extents to another one's. A tensor of equal or repeated elements is a view of itself in
many ways, and each of them composed with each is one more."""

_sessions: dict[str, Host] = {}
_numbers = itertools.count()


def ask(line: str) -> str:
    """The one function that egglog calls; a failure is kept for the host, since egglog would print its traceback."""
    session, subject, *texts = line.split("|")
    host = _sessions[session]
    if host.failure is not None:
        return ""
    try:
        return host.answers[subject](host, texts)
    except Exception as failure:
        host.failure = failure
        return ""


class Refusal(Protocol):
    """Why a match is no application of its rule; `str` gives the reason."""

    values: Mapping[str, str]
    place: Span | None
    passed: int


@dataclass(kw_only=True)
class Host:
    """The live state of one saturation."""

    base: KeepRules
    instances: Instances
    constants: Constants = field(default_factory=Constants)
    answers: dict[str, Answer] = field(default_factory=dict)
    statistics: dict[str, RuleStatistics] = field(default_factory=dict)
    near_misses: list[NearMiss] = field(default_factory=list)
    improve: Callable[[IndexMap], IndexMap] | None = None
    needs: Callable[[str, str], bool] = lambda tensor, other: tensor == other
    """Whether a tensor of the model is computed from another one, for rules of several patterns."""
    failure: Exception | None = None
    session: str = field(default_factory=lambda: str(next(_numbers)))
    metas: list[Meta] = field(default_factory=list)
    attributes: list[Mapping[str, Value]] = field(default_factory=list)
    maps: list[IndexMap] = field(default_factory=list)
    _meta_names: dict[Meta, str] = field(default_factory=dict)
    _attribute_names: dict[str, str] = field(default_factory=dict)
    _map_names: dict[IndexMap, str] = field(default_factory=dict)
    _misses: dict[str, int] = field(default_factory=dict)
    _composed: dict[tuple[str, str], str] = field(default_factory=dict)
    _composed_maps: defaultdict[Extents, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __enter__(self) -> Host:
        _sessions[self.session] = self
        self.answers.update({"compose": _compose, "uniform": _uniform, "leaf": _leaf})
        return self

    def __exit__(self, *_: object) -> None:
        del _sessions[self.session]

    def meta_name(self, meta: Meta) -> str:
        name = self._meta_names.get(meta)
        if name is None:
            mark = "m" if meta.constant is None else "C"
            name = self._meta_names[meta] = f"{mark}{len(self.metas)}"
            self.metas.append(meta)
        return name

    def meta(self, name: str) -> Meta:
        return self.metas[int(name[1:])]

    def attribute_name(self, attributes: Mapping[str, Value]) -> str:
        given = {name: value for name, value in attributes.items() if value is not None}
        key = attribute_key(given)
        name = self._attribute_names.get(key)
        if name is None:
            name = self._attribute_names[key] = f"a{len(self.attributes)}"
            self.attributes.append(given)
        return name

    def attribute(self, name: str) -> Mapping[str, Value]:
        return self.attributes[int(name[1:])]

    def map_name(self, map_: IndexMap) -> str:
        name = self._map_names.get(map_)
        if name is None:
            better = self.improve(map_) if self.improve is not None else map_
            if better != map_:
                name = self._map_names[map_] = self.map_name(better)
            else:
                mark = "I" if map_.is_identity else "v"
                name = self._map_names[map_] = f"{mark}{len(self.maps)}"
                self.maps.append(map_)
        return name

    def composed(self, inner: str, outer: str) -> str:
        """The name of a view of a view as one map; empty where that map is too large, or has too many of its kind."""
        known = self._composed.get((inner, outer))
        if known is not None:
            return known
        map_ = compose(self.map(inner), self.map(outer))
        name = self.map_name(map_) if map_.size <= LARGEST_MAP else ""
        of_extents = self._composed_maps[map_.shape, map_.source]
        if name and name not in of_extents and len(of_extents) == MOST_MAPS:
            name = ""
        elif name:
            of_extents.add(name)
        self._composed[inner, outer] = name
        return name

    def map(self, name: str) -> IndexMap:
        return self.maps[int(name[1:])]

    def derived_meta(self, instance: Instance, attributes: str, place: int, operands: Sequence[Meta | None]) -> Meta:
        """The meta of a result of an application that a rule builds; of constants it is one, unless a rule keeps it."""
        type_ = instance.outputs[place]
        present = [o for o in operands if o is not None]
        if not present or any(o.constant is None for o in present) or is_open(instance.equations):
            return Meta(type_)
        if keeping_rule(self.base, instance, [None if o is None else self._constant(o) for o in operands]) is not None:
            return Meta(type_, kept=True)
        numbers = tuple(None if o is None else o.constant for o in operands)
        recipe = Recipe(instance.equations, numbers, output_name(place))
        # by the text of the attributes: their name is another one when the rules run again with these constants
        key = f"{instance.operator.name} {attribute_key(self.attribute(attributes))}"
        return Meta(type_, self.constants.computed(key, recipe, type_))

    def _constant(self, meta: Meta) -> Constant:
        number = meta.constant
        assert number is not None
        return Constant(
            type=meta.type,
            uniform=lambda: self.constants.uniform(number),
            elements=lambda: self.constants.looked_at(number),
        )

    def miss(self, rule: str, root: Meta, refusal: Refusal, size: int = 1) -> None:
        """Note a match that was turned down; the first ones of each rule are kept."""
        count = self._misses.get(rule, 0)
        if count < NEAR_MISSES_PER_RULE:
            self._misses[rule] = count + 1
            values, place = dict(refusal.values), refusal.place
            self.near_misses.append(NearMiss(rule, root.tensor, str(refusal), values, size, refusal.passed, place))


def _compose(host: Host, texts: Sequence[str]) -> str:
    inner, outer = texts
    return host.composed(inner, outer)


def _uniform(host: Host, texts: Sequence[str]) -> str:
    """The value of a constant with one distinct value, in the form in which patterns name numbers."""
    meta = host.meta(texts[0])
    assert meta.constant is not None
    value = host.constants.uniform(meta.constant)
    return "" if value is None else number_text(value)


def _leaf(host: Host, texts: Sequence[str]) -> str:
    """The leaf that a constant is equal to."""
    return f"k{host.meta(texts[0]).constant}"


def number_text(value: float) -> str:
    """Equal numbers in single precision have equal texts."""
    return repr(float(np.float32(value)))
