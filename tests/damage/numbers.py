"""Blocks of the shipped files in which one number is another one, and a model with kernels of all forms."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.keys import Key
from smartmem_rules.language.printing.printer import print_item
from smartmem_rules.language.schema import keys_of_block
from smartmem_rules.planned import PlanOptions
from tests.damage.trees import built_in

_NUMBERS = (0, 1, 2, 3, 7, 64, 1 << 20, 10**17, 0.5, 1e-9, 1e30)
_NAME = "drawn_block"
_TARGETS = {"cpu": "pocl", "gpu": "nvidia", "texture_gpu": "adreno_740"}


def block_with_another_number(draw: random.Random) -> tuple[str, PlanOptions]:
    """A rule file with one block and a level that uses it, and the options with which a plan does so."""
    blocks = _blocks()
    block = draw.choice([one for one in blocks if one.kind != "matrix"])
    keys = [key for key in keys_of_block(block) if key.kind == "number"]
    if not keys:
        return "", {}
    key = draw.choice(keys)
    changed = replace(block, name=_NAME, entries=_entries(block, key, draw))
    level = next(one for one in blocks if (one.kind, one.name) == ("level", "smartmem"))
    named = "drawn_level"
    if block.kind == "level":
        level, text = replace(changed, name=named), ""
    else:
        text = print_item(changed)
        level = replace(level, name=named, entries=tuple(_naming(entry, block.name) for entry in level.entries))
    device = _TARGETS.get(_word(block, "kind"), draw.choice(list(_TARGETS.values())))
    options: PlanOptions = {"device": _NAME if block.kind == "device" else device, "level": named}
    if block.kind == "schedule":
        options["disable"] = [block.name]
    return f"{text}\n{print_item(level)}\n", options


@cache
def _blocks() -> tuple[s.Block, ...]:
    kinds = ("device", "schedule", "fuse", "layout", "level")
    items = [item for module in built_in() for item in module.items]
    return tuple(item for item in items if isinstance(item, s.Block) and item.kind in kinds)


def _word(block: s.Block, key: str) -> str:
    return next((str(entry.values[0]) for entry in block.entries if entry.key == key), "")


def _naming(entry: s.Entry, name: str) -> s.Entry:
    return replace(entry, values=tuple(_NAME if value == name else value for value in entry.values))


def _entries(block: s.Block, key: Key, draw: random.Random) -> tuple[s.Entry, ...]:
    """The entries of the block, one number of the key another one; the key is added where it is absent."""
    given = [number for number, entry in enumerate(block.entries) if entry.key == key.name]
    number = draw.choice(given) if given else len(block.entries)
    old = block.entries[number].values if given else (1,) * max(1, key.least)
    place = draw.randrange(len(old))
    entry = replace(block.entries[0], key=key.name, values=(*old[:place], draw.choice(_NUMBERS), *old[place + 1 :]))
    return (*block.entries[:number], entry, *block.entries[number + 1 :])


@cache
def mixed_model() -> bytes:
    """A small model with convolutions, a pool, normalised rows, an attention, a recurrence and quantized products."""
    random_numbers = np.random.default_rng(0)
    constants: list[TensorProto] = []
    nodes = []

    def node(operator: str, inputs: str, output: str, **attributes: object) -> None:
        nodes.append(helper.make_node(operator, inputs.split(), [output], **attributes))

    def constant(name: str, value: object) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(name: str, *shape: int) -> str:
        return constant(name, (random_numbers.standard_normal(shape) * 0.1).astype(np.float32))

    def shape(name: str, *extents: int) -> str:
        return constant(name, np.array(extents, np.int64))

    node("Conv", f"image {weights('w1', 16, 8, 3, 3)}", "c1", pads=[1, 1, 1, 1])
    node("Relu", "c1", "r1")
    node("Conv", f"r1 {weights('w2', 16, 1, 3, 3)}", "c2", pads=[1, 1, 1, 1], group=16)
    node("MaxPool", "c2", "p1", kernel_shape=[2, 2], strides=[2, 2])
    node("Conv", f"p1 {weights('w3', 32, 16, 1, 1)}", "c3")
    node("Reshape", f"c3 {shape('rows', 1, 32, 36)}", "c4")
    node("Transpose", "c4", "x", perm=[0, 2, 1])
    node("LayerNormalization", f"x {weights('scale', 32)}", "n", axis=-1)
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        node("MatMul", f"n {weights(f'w{name}', 32, 32)}", f"{name}1")
        node("Reshape", f"{name}1 {shape(f'heads{name}', 1, 36, 2, 16)}", f"{name}2")
        node("Transpose", f"{name}2", name, perm=order)
    node("MatMul", "q k", "scores")
    node("Softmax", "scores", "shares", axis=-1)
    node("MatMul", "shares v", "o1")
    node("Transpose", "o1", "o2", perm=[0, 2, 1, 3])
    node("Reshape", f"o2 {shape('joined', 1, 36, 32)}", "o3")
    node("Add", "o3 x", "y")
    node("Transpose", "y", "steps", perm=[1, 0, 2])
    node("LSTM", f"steps {weights('wl', 1, 32, 32)} {weights('rl', 1, 32, 8)}", "states", hidden_size=8)
    node("MatMul", f"y {weights('wide', 32, 48)}", "z")
    node("ReduceSum", f"z {shape('axes', 1)}", "sums", keepdims=0)
    zero = constant("zero", np.uint8(128))
    node("QuantizeLinear", f"y {constant('step', np.float32(0.05))} {zero}", "bytes")
    few = constant("few", random_numbers.integers(0, 255, (32, 16)).astype(np.uint8))
    node("MatMulInteger", f"bytes {few} {zero} {constant('offset', np.uint8(3))}", "products")
    outputs = {"states": TensorProto.FLOAT, "sums": TensorProto.FLOAT, "products": TensorProto.INT32}
    wanted = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in outputs.items()]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 8, 12, 12])
    graph = helper.make_graph(nodes, "mixed", [image], wanted, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
