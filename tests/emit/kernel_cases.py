"""Small models, each for one template of codegen/ in one kind of memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto

from smartmem_rules.emit.c.program import render
from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from tests.plan.building import build
from tests.plan.models import Array, Node, i64, model, normal, whole
from tests.plan.programs import rules


@dataclass(frozen=True, kw_only=True)
class KernelCase:
    """A model and how it is planned.

    Attributes:
        templates: what its launches are, in order: the template of a single kernel, the form of a joint launch.
        device: a profile; the kernels of `nvidia` hold PTX, which only that driver compiles.
    """

    nodes: list[Node]
    feeds: dict[str, Array]
    templates: str
    constants: dict[str, Array] = field(default_factory=dict)
    outputs: str = "y"
    memory: str = "buffer"
    device: str = "pocl"
    level: str = "smartmem"
    dtype: str = "float32"
    opset: int = 18

    @property
    def holds_ptx(self) -> bool:
        """Whether only NVIDIA's compiler takes the kernels."""
        return self.device == "nvidia"

    @property
    def proto(self) -> ModelProto:
        """The model."""
        return model(self.nodes, self.feeds, self.outputs, self.constants, self.opset)

    def plan(self) -> Plan:
        """The plan for the device profile as it stands in the rules, whatever this computer has."""
        base = rules()
        graph = import_model(self.proto, base, {})
        return build(graph, base, base.devices[self.device], self.level, self.dtype, self.memory)


def launched(launch: Launch) -> str:
    """The template of a single kernel, the form of a launch of several."""
    return launch.form if launch.schedule is None else launch.schedule.template


def bodies(plan: Plan) -> str:
    """All kernels of a plan, without the prelude."""
    prelude = render("prelude.cl")
    parts = []
    for launch, source in zip(plan.launches, plan.sources, strict=True):
        _, _, body = source.text.partition(prelude)
        parts.append(f"// {launch.name}: global {source.global_size}, local {source.local_size}\n{body.strip()}\n")
    return "\n".join(parts)


ADRENO = "adreno_740"
X = {"x": normal(6, 10)}
PRODUCT: list[Node] = [("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")]
LEFT = {"x": normal(10, 48)}
RIGHT = {"w": normal(48, 24, seed=1), "b": normal(24)}
SHORT = {"x": normal(6, 5)}
FEW = {"w": normal(5, 9), "b": normal(9)}
DEPTHWISE: list[Node] = [("Conv", "x w", "c", {"pads": [1, 1, 1, 1], "group": 8}), ("Relu", "c", "y")]
PIXELS = {"x": normal(1, 8, 6, 6)}
WINDOWS = {"w": normal(8, 1, 3, 3)}
POINTWISE: list[Node] = [("Tanh", "x", "a"), ("Add", "a b", "y")]
SOFTMAX: list[Node] = [("Softmax", "x", "y")]
ATTENTION: list[Node] = [
    ("Transpose", "k", "t", {"perm": [0, 2, 1]}),
    ("MatMul", "q t", "s"),
    ("Mul", "s c", "m"),
    ("Softmax", "m", "a", {"axis": -1}),
    ("MatMul", "a v", "y"),
]
HEADS = {name: normal(2, 12, 8, seed=seed) for seed, name in enumerate("qkv")}
ONE_TOKEN = {"q": normal(2, 1, 16), "k": normal(2, 5, 16, seed=1), "v": normal(2, 5, 16, seed=2)}
SCALE = {"c": normal()}
RECURRENCE: list[Node] = [("RNN", "x w r", "y", {"hidden_size": 4})]
STEPS = {"x": normal(3, 1, 4)}
GATE = {"w": normal(1, 4, 4), "r": normal(1, 4, 4, seed=1)}
PERCEPTRON: list[Node] = [("MatMul", "x u", "a"), ("Relu", "a", "h"), ("MatMul", "h v", "b"), ("Add", "b x", "y")]
HIDDEN = {"u": normal(8, 16), "v": normal(16, 8)}
BRANCHES: list[Node] = [("MatMul", "x u", "y"), ("Softmax", "z", "s"), ("Transpose", "s", "t", {"perm": [1, 0]})]
TWO = {"x": normal(12, 16), "z": normal(9, 7, seed=3)}
ROWS_THEN_COLUMNS: list[Node] = [("MatMul", "x u", "a"), ("Softmax", "a", "b", {"axis": 0}), ("MatMul", "b v", "y")]

CASES = {
    "panel": KernelCase(nodes=PRODUCT, feeds=LEFT, constants=RIGHT, templates="panel"),
    "panel_words": KernelCase(
        nodes=[("DequantizeLinear", "q s z", "w", {"axis": 1}), ("MatMul", "x w", "p"), ("Relu", "p", "y")],
        feeds={"x": normal(1, 84)},
        constants={
            "q": whole(84, 56, dtype="uint8", low=0, high=15),
            "s": np.linspace(0.1, 0.2, 56, dtype=np.float32),
            "z": whole(56, dtype="uint8", low=0, high=15, seed=1),
        },
        opset=19,
        templates="panel",
    ),
    "panel_bytes": KernelCase(
        nodes=[("MatMulInteger", "a b z", "y")],
        feeds={"a": whole(10, 64, dtype="uint8", low=0, high=255)},
        constants={"b": whole(64, 24, dtype="int8", low=-128, high=127), "z": np.array(7, np.uint8)},
        templates="panel",
    ),
    "panel_scores": KernelCase(nodes=ATTENTION, feeds=HEADS, constants=SCALE, templates="panel"),
    "panel_in_place": KernelCase(nodes=ATTENTION, feeds=ONE_TOKEN, constants=SCALE, templates="panel"),
    "rows": KernelCase(
        nodes=[("MatMul", "x w", "p"), ("Softmax", "p", "y")], feeds=LEFT, constants={"w": RIGHT["w"]}, templates="rows"
    ),
    "winograd": KernelCase(
        nodes=[("Conv", "x w", "y", {"pads": [1, 1, 1, 1]})],
        feeds={"x": normal(1, 32, 16, 16)},
        constants={"w": normal(32, 32, 3, 3)},
        templates="winograd",
    ),
    "group": KernelCase(nodes=PRODUCT, feeds=LEFT, constants=RIGHT, device="gpu", templates="group"),
    "group_scores": KernelCase(nodes=ATTENTION, feeds=HEADS, constants=SCALE, device="gpu", templates="group"),
    "group_ptx": KernelCase(nodes=PRODUCT, feeds=LEFT, constants=RIGHT, device="nvidia", templates="group"),
    "group_wgmma": KernelCase(
        nodes=[("MatMul", "x v", "h"), ("MatMul", "h w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")],
        feeds={"x": normal(1000, 8)},
        constants={"v": normal(8, 512), "w": normal(512, 512), "b": normal(512)},
        device="nvidia",
        dtype="float16",
        templates="tile group",
    ),
    "group_held": KernelCase(
        nodes=[("MatMul", "x u", "q"), ("MatMul", "x w", "k"), ("MatMul", "x z", "v"), *ATTENTION],
        feeds={"x": normal(2, 20, 64)},
        constants={**{name: normal(64, 32, seed=i) for i, name in enumerate("uwz")}, **SCALE},
        device="nvidia",
        dtype="float16",
        templates="group group",
    ),
    "group_image": KernelCase(
        nodes=[("LayerNormalization", "x g b", "h", {"axis": -1}), ("MatMul", "h w", "p"), ("Relu", "p", "y")],
        feeds={"x": normal(20, 32)},
        constants={"g": normal(32), "b": normal(32, seed=1), "w": normal(32, 40)},
        memory="image",
        device=ADRENO,
        templates="group",
    ),
    "tile_buffer": KernelCase(nodes=PRODUCT, feeds=SHORT, constants=FEW, device="gpu", templates="tile"),
    "tile_image": KernelCase(
        nodes=PRODUCT, feeds=SHORT, constants=FEW, memory="image", device=ADRENO, templates="tile"
    ),
    "pointwise_buffer": KernelCase(nodes=POINTWISE, feeds=X, constants={"b": normal(10)}, templates="pointwise"),
    "pointwise_gpu": KernelCase(
        nodes=POINTWISE, feeds=X, constants={"b": normal(10)}, device="gpu", templates="pointwise"
    ),
    "pointwise_image": KernelCase(
        nodes=[("Relu", "x", "r"), ("Add", "r b", "s"), ("Tanh", "s", "y")],
        feeds=X, constants={"b": normal(10)},
        memory="image", device=ADRENO, level="none", templates="pointwise pointwise pointwise",
    ),
    "window_buffer": KernelCase(nodes=DEPTHWISE, feeds=PIXELS, constants=WINDOWS, templates="pointwise"),
    "window_gpu": KernelCase(nodes=DEPTHWISE, feeds=PIXELS, constants=WINDOWS, device="gpu", templates="pointwise"),
    "window_image": KernelCase(
        nodes=[("Relu", "x", "r"), ("Conv", "r w", "c", {"pads": [1, 1, 1, 1], "group": 8}), ("Tanh", "c", "y")],
        feeds=PIXELS, constants=WINDOWS,
        memory="image", device=ADRENO, level="none", templates="pointwise pointwise pointwise",
    ),
    "shifted_window": KernelCase(
        nodes=[
            ("Slice", "x one end axis", "a"),
            ("Slice", "x zero one axis", "b"),
            ("Concat", "a b", "c", {"axis": 1}),
            ("Relu", "c", "y"),
        ],
        feeds=X,
        constants={"zero": i64(0), "one": i64(3), "end": i64(10), "axis": i64(1)},
        templates="pointwise",
    ),
    "gather": KernelCase(
        nodes=[("Gather", "x i", "y", {"axis": 1})],
        feeds={**X, "i": whole(3, dtype="int64", low=0)},
        templates="pointwise",
    ),
    "reduction_buffer": KernelCase(nodes=SOFTMAX, feeds={"x": normal(6, 19)}, templates="reduction"),
    "reduction_teams": KernelCase(nodes=SOFTMAX, feeds={"x": normal(6, 60)}, device="gpu", templates="reduction"),
    "reduction_shuffles": KernelCase(
        nodes=SOFTMAX, feeds={"x": normal(6, 60)}, device="nvidia", templates="reduction"
    ),
    "reduction_image": KernelCase(
        nodes=[("Relu", "x", "r"), ("Softmax", "r", "s"), ("MatMul", "s w", "y")],
        feeds={"x": normal(6, 20)}, constants={"w": normal(20, 8)},
        memory="image", device=ADRENO, level="none", templates="pointwise reduction tile",
    ),
    "scan": KernelCase(
        nodes=RECURRENCE, feeds=STEPS, constants=GATE, level="dnnfusion", templates="tile scan pointwise"
    ),
    "scan_gpu": KernelCase(nodes=RECURRENCE, feeds=STEPS, constants=GATE, device="gpu", templates="tile scan"),
    "scan_ordered": KernelCase(nodes=RECURRENCE, feeds=STEPS, constants=GATE, templates="ordered"),
    "chain": KernelCase(nodes=PERCEPTRON, feeds={"x": normal(20, 8)}, constants=HIDDEN, templates="chain"),
    "side_by_side": KernelCase(
        nodes=BRANCHES, feeds=TWO, constants={"u": normal(16, 16)}, outputs="y t", templates="beside"
    ),
    "side_by_side_in_groups": KernelCase(
        nodes=BRANCHES, feeds=TWO, constants={"u": normal(16, 16)}, outputs="y t", device="gpu", templates="beside"
    ),
    "ordered": KernelCase(
        nodes=ROWS_THEN_COLUMNS, feeds={"x": normal(10, 8)}, constants=HIDDEN, templates="ordered"
    ),
}  # fmt: skip
