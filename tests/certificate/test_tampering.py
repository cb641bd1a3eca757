"""Whatever is changed in a certificate, the checker refuses it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from smartmem_rules.certificate.certify import certify
from smartmem_rules.certificate.terms import Refused
from smartmem_rules.exchange.expressions import ExchangeError, read_map
from tests.certificate.making import Certified, certified
from tests.certificate.test_certify import attention, convolutions
from tests.with_all import with_all

Place = tuple[Any, ...]
SAID = frozenset({"origin", "name", "format", "model", "device", "level", "dtype"})
"""What a certificate says for readers, or under names that may be others."""


@pytest.fixture(scope="module")
def made() -> list[Certified]:
    return [certified(attention()), certified(convolutions())]


def places(data: Any, at: Place = ()) -> Iterator[Place]:
    """The places of all texts and numbers that mean something."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key not in SAID:
                yield from places(value, (*at, key))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from places(value, (*at, place))
    elif isinstance(data, str | int | float):
        yield at


def changed(certificate: dict[str, Any], place: Place, other: Any) -> dict[str, Any]:
    """The certificate with another value at a place."""
    copied = copy.deepcopy(certificate)
    holder = copied
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = other
    return copied


def value_at(certificate: Any, place: Place) -> Any:
    for key in place:
        certificate = certificate[key]
    return certificate


def refused(made: Certified, certificate: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        certify(made.graph, made.base, certificate)


@settings(max_examples=with_all(120, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_text_or_number_is_refused(data: st.DataObject, made: list[Certified]) -> None:
    one = made[data.draw(st.sampled_from(range(len(made))))]  # by number: a certificate is long to print
    section = data.draw(st.sampled_from(["steps", "graph", "kernels"]))
    place = data.draw(st.sampled_from([(section, *p) for p in places(one.certificate[section])]))
    value = value_at(one.certificate, place)
    alike = {value_at(one.certificate, (section, *p)) for p in places(one.certificate[section])}
    same_kind = sorted((v for v in alike if type(v) is type(value) and v != value), key=str)
    others = [value + 1] if isinstance(value, int | float) else [f"{value}?", ""]
    other = data.draw(st.sampled_from([*others, *same_kind]))
    if isinstance(value, bool) or other == value:
        return
    tampered = changed(one.certificate, place, other)
    if not _same_map(place, one.certificate, tampered):
        refused(one, tampered)


def _same_map(place: Place, one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether only an index map was changed, and is still the same: (4 + i) % 4 is i % 4."""
    if "map" not in place or not isinstance(value_at(other, place), int):
        return False
    whole = place[: place.index("map") + 1]
    try:
        return read_map(value_at(one, whole)) == read_map(value_at(other, whole))
    except (ExchangeError, ArithmeticError, ValueError, AssertionError):
        return False


def test_another_rule_is_refused(made: list[Certified]) -> None:
    one = made[0]
    steps = one.certificate["steps"]
    names = [rule.name for rule in one.base.rewrites]
    for number, step in enumerate(steps):
        if "rule" in step:
            for name in names[:: max(1, len(names) // 12)]:
                if name != step["rule"]:
                    refused(one, changed(one.certificate, ("steps", number, "rule"), name))


@pytest.mark.parametrize("number", [0, 1])
def test_a_step_less_is_refused(number: int, made: list[Certified]) -> None:
    one = made[number]
    for place in range(len(one.certificate["steps"])):
        shorter = copy.deepcopy(one.certificate)
        del shorter["steps"][place]
        refused(one, shorter)


def test_a_kernel_less_or_earlier_is_refused(made: list[Certified]) -> None:
    one = made[0]
    count = len(one.certificate["kernels"])
    for place in range(count):
        shorter = copy.deepcopy(one.certificate)
        del shorter["kernels"][place]
        refused(one, shorter)
    turned = copy.deepcopy(one.certificate)
    turned["kernels"].reverse()
    refused(one, turned)


def test_a_gap_that_is_not_said_is_refused_and_one_that_is_said_is_taken(made: list[Certified]) -> None:
    one = made[0]
    gap = copy.deepcopy(one.certificate)
    gap["kernels"][0]["unshown"] = "for a test"
    refused(one, gap)
    with pytest.raises(Refused, match="not certified, which is"):
        certify(one.graph, one.base, {**one.certificate, "uncertified": [{"node": "n", "reason": "none"}]})


def test_another_extent_of_a_loop_is_refused(made: list[Certified]) -> None:
    one = made[0]
    for number, kernel in enumerate(one.certificate["kernels"]):
        for loop, extent in kernel["loops"].items():
            for other in (extent - 1, extent + 1):
                refused(one, changed(one.certificate, ("kernels", number, "loops", loop), other))


def test_what_is_no_certificate_is_refused(made: list[Certified]) -> None:
    one = made[0]
    for broken in ({}, {"version": 1}, {**one.certificate, "steps": 3}, {**one.certificate, "version": 2}):
        refused(one, broken)
