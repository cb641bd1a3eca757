"""Attributes that a model leaves out have the values that ONNX, or ONNX Runtime for its own operators, says."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from onnx import helper

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.identity import bindings

state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")

ELSEWHERE = {("com.microsoft", "GroupQueryAttention", "smooth_softmax"): "-1 is said for 0"}
"""Defaults that mean the same as ours, and why."""


def schema_defaults() -> dict[tuple[str, str], list[tuple[int, dict[str, Any]]]]:
    """What attributes are where they are left out, by operator: for each version of it, by name."""
    found = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        given = {
            name: helper.get_attribute_value(attribute.default_value)
            for name, attribute in schema.attributes.items()
            if attribute.default_value.type
        }
        found[schema.domain or "ai.onnx", schema.name].append((schema.since_version, given))
    for schema in state.get_all_operator_schema():
        if schema.domain == "com.microsoft":
            given = {}
            for name, attribute in schema.attributes.items():
                if attribute._default_value:
                    proto = onnx.AttributeProto.FromString(attribute._default_value)
                    given[name] = helper.get_attribute_value(proto)
            found[schema.domain, schema.name].append((schema.since_version, given))
    return found


def numbers() -> Iterator[tuple[str, str, int, int | None, str, float]]:
    """The attributes of definitions whose default is a number, with the versions that a definition is for."""
    for overloads in load_rules().operators.values():
        for operator in overloads:
            for binding in bindings(operator):
                for attribute in operator.attributes:
                    value = getattr(attribute.default, "value", None)
                    if isinstance(value, int | float):
                        yield binding.domain, binding.name, binding.since, binding.until, attribute.name, value


def test_defaults_are_those_of_the_schemas() -> None:
    """`SkipLayerNormalization` had ONNX's usual 1e-5 where ONNX Runtime has 1e-12."""
    schemas, compared = schema_defaults(), 0
    wrong = []
    for domain, name, since, until, attribute, value in numbers():
        versions = schemas.get((domain, name), [])
        meant = [given for version, given in versions if until is None or version <= until]
        said = [given[attribute] for given in meant if isinstance(given.get(attribute), int | float)]
        compared += bool(said)
        differs = said and not any(math.isclose(value, one, rel_tol=1e-6) for one in said)
        if differs and (domain, name, attribute) not in ELSEWHERE:
            wrong.append(f"{domain}::{name} from {since}: {attribute} is {value}, not {said}")
    assert wrong == []
    assert compared > 150
