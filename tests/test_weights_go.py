"""Weights go while they are packed: a plan in the making holds one copy of them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.graph.model import Graph
from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan.scheduling import Scheduled
from smartmem_rules.stages import Unmeasured


class Seen:
    """Looks whether the imported graph is still there when launches are scheduled."""

    takes_constants = False

    def __init__(self) -> None:
        self.held = True

    def imported(self, graph: Graph) -> None:
        self._graph = weakref.ref(graph)

    def scheduled(self, scheduled: Scheduled) -> None:
        del scheduled
        gc.collect()
        self.held = self._graph() is not None


def test_nobody_holds_the_imported_graph_while_weights_are_packed() -> None:
    weight = numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "product", ends[:1], ends[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    seen = Seen()
    make_plan(Request(model, (), "pocl", "smartmem", "float32", "auto", (), {}), Unmeasured(), watch=seen)
    assert not seen.held
