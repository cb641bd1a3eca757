"""Constants that a model only describes: computed once, by who asks for them or ahead of that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import smartmem_rules
from smartmem_rules.explanation.making import Watch
from smartmem_rules.graph.described import Ahead, Described, Tensors, some
from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.scheduling import Scheduled
from smartmem_rules.rulebase.base import load_rules

SIZE = 40


class Counted:
    """Describes ten numbers and counts how often they are computed."""

    def __init__(self, value: float, rest: float | None = None, gate: threading.Event | None = None) -> None:
        self.values = np.full(10, value if rest is None else rest, np.float32)
        self.values[0] = value
        self.times = 0
        self.gate = gate

    def array(self) -> np.ndarray:
        if self.gate is not None:
            self.gate.wait(10)
        self.times += 1
        return self.values

    def first(self) -> np.ndarray:
        return self.values[:2]


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.001)
    return holds()


def test_a_thread_computes_so_many_bytes_ahead_and_goes_on_when_one_is_taken() -> None:
    ahead = Ahead(most=2 * SIZE)
    made = [Counted(i) for i in range(5)]
    arrays = [ahead.add(one, SIZE) for one in made]
    assert eventually(lambda: [one.times for one in made] == [1, 1, 0, 0, 0])
    time.sleep(0.02)
    assert [one.times for one in made] == [1, 1, 0, 0, 0]
    assert arrays[0].array()[0] == 0
    assert eventually(lambda: [one.times for one in made] == [1, 1, 1, 0, 0])
    assert arrays[4].array()[0] == 4  # who asks computes what the thread has not come to
    assert [one.times for one in made] == [1, 1, 1, 0, 1]
    assert arrays[4].array() is arrays[4].array()
    for one in arrays[:4]:
        one.array()
    assert [one.times for one in made] == [1, 1, 1, 1, 1]


def test_what_is_being_computed_is_waited_for() -> None:
    gate = threading.Event()
    one = Counted(3, gate=gate)
    array = Ahead().add(one, SIZE)
    threading.Timer(0.02, gate.set).start()
    assert array.array()[0] == 3
    assert one.times == 1


def test_many_threads_get_one_array() -> None:
    ahead, made = Ahead(most=SIZE), [Counted(i) for i in range(40)]
    arrays = [ahead.add(one, SIZE) for one in made]
    seen: list[list[np.ndarray]] = [[] for _ in range(4)]

    def ask(place: int) -> None:
        order = np.random.default_rng(place).permutation(40)
        found = {int(i): arrays[i].array() for i in order}
        seen[place].extend(found[i] for i in range(40))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.times == 1 for one in made)
    assert all(a is b for others in seen[1:] for a, b in zip(seen[0], others, strict=True))


def test_nothing_is_computed_that_nobody_wants() -> None:
    gate = threading.Event()
    ahead, made = Ahead(), [Counted(0, gate=gate), Counted(1), Counted(2)]
    arrays = [ahead.add(one, SIZE) for one in made]
    ahead.only(arrays[2:])
    gate.set()
    assert eventually(lambda: made[2].times == 1)
    assert made[1].times == 0
    ahead.stop()
    late = Counted(4)
    asked = ahead.add(late, SIZE)
    time.sleep(0.02)
    assert late.times == 0
    assert asked.array()[0] == 4


@pytest.mark.parametrize(("value", "rest", "varies"), [(1, 2, True), (1, None, False), (np.nan, None, True)])
def test_a_few_elements_may_tell_that_not_all_are_equal(value: float, rest: float | None, varies: bool) -> None:
    one = Counted(value, rest)
    table = Tensors[str]()
    table.describe("a", Described(one, SIZE, Ahead(most=0)))
    assert table.varies("a") is varies
    assert one.times == 0


def test_tables_know_names_without_computing() -> None:
    one = Counted(1)
    table = Tensors[str]({"given": np.zeros(2)})
    table.describe("a", Described(one, SIZE, Ahead(most=0)))
    other = some(table)
    third = some(table, ["a"]).with_more({"b": np.ones(1)})
    other.take_from(table, "copy", "a")
    assert (list(other), list(third), "a" in other, len(other)) == (["given", "a", "copy"], ["a", "b"], True, 3)
    del other["a"]
    assert one.times == 0
    assert other["copy"] is table["a"] is third["a"] is dict(third)["a"]
    assert one.times == 1


def described_model() -> onnx.ModelProto:
    """A product with a large weight that is drawn from a distribution."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(256, 512))
    weight.data_location = TensorProto.EXTERNAL
    entries = {"location": "seeded-normal", "offset": "3", "std": "0.5", "mean": "0", "min": "-1", "max": "1"}
    for key, value in entries.items():
        weight.external_data.add(key=key, value=value)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (4, 256)), ("y", (4, 512))))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_graph_has_the_values_that_its_model_describes() -> None:
    graph = import_model(described_model(), load_rules())
    drawn = np.random.Generator(np.random.PCG64(3)).standard_normal((256, 512), dtype=np.float32)
    np.testing.assert_array_equal(graph.constants["w"], np.clip(drawn * np.float32(0.5) + np.float32(0), -1, 1))


def test_weights_go_while_they_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[set[str]] = []

    def scheduled(self: Watch, scheduled: Scheduled) -> None:
        left.append({*scheduled.planning.program.constants, *scheduled.planning.graph.constants})

    monkeypatch.setattr(Watch, "scheduled", scheduled)
    smartmem_rules.optimize(described_model(), device="pocl", anew=True)
    assert left == [set()]
