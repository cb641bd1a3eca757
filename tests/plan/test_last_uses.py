"""Weights are dropped while they are packed, each after its last reader, and only where nobody else has them."""

from __future__ import annotations

import numpy as np
import pytest

import smartmem_rules
from smartmem_rules.emit.plan import finish
from smartmem_rules.graph.importer import import_model
from smartmem_rules.pipeline import Request, make_planning
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.build import Planning
from smartmem_rules.plan.schedule.last_uses import LastUses
from tests.plan.models import model, normal
from tests.plan.programs import rules

X = normal(32, 48)
CONSTANTS = {"w": normal(48, 48, seed=1), "k": normal(16, 16, 3, 3, seed=2), "b": normal(32, 48, seed=3)}
PROTO = model(
    [
        ("MatMul", "x w", "p"),
        ("Softmax", "p", "q"),
        ("MatMul", "q w", "r"),
        ("Add", "r b", "y"),
        ("Conv", "i k", "z", {"pads": [1, 1, 1, 1]}),
    ],
    {"x": X, "i": normal(1, 16, 24, 24)},
    "y z",
    CONSTANTS,
)


def planned(level: str) -> Planning:
    return make_planning(Request(PROTO, (), "pocl", level, "float32", "auto", (), {}))[0]


def constants(plan: Plan) -> dict[str, bytes]:
    return {name: t.packed.tobytes() for name, t in plan.tensors.items() if t.packed is not None}


@pytest.mark.parametrize("level", ["none", "smartmem"])
def test_the_plan_is_the_same_and_the_weights_are_gone(level: str) -> None:
    planning = planned(level)
    own = planning.alone()
    plan, as_own = finish(planning), finish(own, owned=True)
    assert [one.source for one in plan.enqueues] == [one.source for one in as_own.enqueues]
    assert constants(plan) == constants(as_own)
    unpacked = {name for name in CONSTANTS if name in plan.tensors}
    assert unpacked == {"b"}
    assert own.program.constants.keys() == own.program.packable.keys() == unpacked
    assert planning.program.constants.keys() == CONSTANTS.keys()  # nobody's but the copy's are dropped


def test_a_weight_that_is_an_output_too_stays() -> None:
    feeds = {"i": normal(1, 16, 24, 24)}
    nodes = [("Identity", "k", "shown"), ("Conv", "i shown", "z", {"pads": [1, 1, 1, 1]})]
    found = smartmem_rules.optimize(model(nodes, feeds, "z shown", {"k": CONSTANTS["k"]})).run(feeds)
    np.testing.assert_array_equal(found["shown"], CONSTANTS["k"])


def test_a_constant_stays_until_its_last_reader() -> None:
    planning = planned("none")
    readers = [place for place, launch in enumerate(planning.launches) if "w" in launch.reads]
    table = dict(planning.program.constants)
    scheduler = planning.scheduler(dict(planning.tensors), None)
    uses = LastUses(planning.launches, [table], [])
    held = []
    for place, launch in enumerate(planning.launches):
        uses.after(place, launch, scheduler.schedule_launch(launch))
        held.append("w" in table)
    assert len(readers) == 2
    assert held == [place < readers[-1] for place in range(len(held))]


def test_a_graph_of_the_caller_keeps_its_constants() -> None:
    graph = import_model(PROTO, rules(), {})
    feeds = {"x": X, "i": normal(1, 16, 24, 24)}
    first, second = (smartmem_rules.optimize(graph, device="pocl", level=level) for level in ("none", "none"))
    assert graph.constants.keys() == CONSTANTS.keys()
    results = first.run(feeds), second.run(feeds)
    assert all(np.array_equal(results[0][name], results[1][name]) for name in ("y", "z"))
