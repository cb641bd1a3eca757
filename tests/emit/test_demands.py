"""What a plan asks of a device: its local memory is what its texts declare, and its instructions are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smartmem_rules.emit.demands import demands_of
from smartmem_rules.emit.plan import finish
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.simulate.source import parse
from tests.plan.branches import BRANCHES, CONSTANTS, FEEDS
from tests.plan.models import model
from tests.plan.programs import rules


def planned(device: str, memory: str, dtype: str = "float32") -> Plan:
    proto = model(BRANCHES, FEEDS, "b e", CONSTANTS)
    return finish(make_planning(Request(proto, (), device, "smartmem", dtype, memory, (), {}))[0])


@pytest.mark.parametrize(
    ("device", "memory", "dtype"),
    [
        ("nvidia", "buffer", "float32"),
        ("gpu", "image", "float32"),
        ("adreno_740", "image", "float16"),
    ],
)
def test_local_memory_is_what_the_texts_declare(device: str, memory: str, dtype: str) -> None:
    plan = planned(device, memory, dtype)
    declared = [parse(source.text, source.entry).local_bytes for source in plan.sources]
    asked = [source.local_bytes for source in plan.sources]
    # arrays are filled up to whole vectors
    assert all(0 <= mine - text < 16 * 8 for mine, text in zip(asked, declared, strict=True)), (asked, declared)
    assert [mine > 0 for mine in asked] == [text > 0 for text in declared]
    assert max(asked) > 0


@pytest.mark.parametrize("device", ["pocl", "adreno_740", "gpu"])
def test_a_plan_is_for_the_devices_of_its_profile(device: str) -> None:
    profile = rules().devices[device]
    demands = planned(device, "auto").demands
    assert (demands.names, demands.types) == (profile.match, profile.fallback)
    assert (demands.capability, demands.extensions) == ((0, 0), ())


def test_instructions_of_nvidia_need_its_capability() -> None:
    profile = rules().devices["nvidia"]
    assert profile.compute.shuffle
    assert tuple(profile.compute.shuffle_capability) == (7, 0)
    assert demands_of(profile, ()).capability == (7, 0)
    source = planned("nvidia", "buffer").sources[0]
    unit = next(one for one in rules().matrices.values() if one.name == "nvidia_f16")
    multiplying = replace(source, text=f"{source.text}\n{unit.multiply}")
    with_unit = replace(profile, units=(unit,))
    assert demands_of(with_unit, [source]).capability == (7, 0)
    assert demands_of(with_unit, [source, multiplying]).capability == (8, 0)
    needing = replace(unit, extension="cl_intel_subgroup_matrix_multiply_accumulate")
    found = demands_of(replace(profile, units=(needing,)), [multiplying])
    assert found.extensions == ("cl_intel_subgroup_matrix_multiply_accumulate",)
    plain = replace(profile.compute, shuffle="", half="")
    assert demands_of(replace(profile, compute=plain), [source]).capability == (0, 0)
    assert demands_of(profile, ()).arrays == profile.memory.array_memory > 0


def test_doubles_need_their_extension() -> None:
    proto = model([("Add", "x x", "y")], {"x": np.ones((3, 5))}, "y")
    plan = finish(make_planning(Request(proto, (), "pocl", "smartmem", "float32", "auto", (), {}))[0])
    assert plan.demands.extensions == ("cl_khr_fp64",)
