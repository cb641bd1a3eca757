"""The tracer against kernels that run: each emitted kernel is made to write down what it accesses, and PoCL runs it."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan.kernel.storage import stored_bytes
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.simulate.launch import TracedLaunch, Window, trace
from smartmem_rules.simulate.memory import MemoryModel
from smartmem_rules.stages import Unmeasured

pytestmark = pytest.mark.sampled(24)

cl = pytest.importorskip("pyopencl")

LIMIT = 1 << 21
LOG = """
#define SMR_LIMIT %d
static int smr_log2(__global int* log, int which, int x, int y) {
    const int at = atomic_inc(log);
    if (at < SMR_LIMIT) { log[1 + 3 * at] = which; log[2 + 3 * at] = x; log[3 + 3 * at] = y; }
    return x;
}
static int smr_texel(__global int* log, int which, int2 at, int width, int height) {
    if (at.x >= 0 && at.y >= 0 && at.x < width && at.y < height) smr_log2(log, which, at.x, at.y);
    return 0;
}
#define read_imagef(p, s, c) (smr_texel(smr_log, ID_##p, c, W_##p, H_##p), read_imagef(p, s, c))
#define write_imagef(p, c, v) (smr_texel(smr_log, ID_##p, c, W_##p, H_##p), write_imagef(p, c, v))
"""


def _weights(random, *shape):
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


def _attention():
    """Windows, queries, keys and values, softmax, normalisation: 2 x 14 rows of 12, in windows of 7."""
    random = np.random.default_rng(1)
    constants = {
        "w": _weights(random, 12, 36), "b": _weights(random, 36), "g": _weights(random, 12), "h": _weights(random, 12),
        "to_windows": np.array([4, 7, 12]), "heads": np.array([4, 7, 3, 2, 6]), "whole": np.array([2, 14, 12]),
        "s0": np.array(0), "s1": np.array(1), "s2": np.array(2),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Reshape", ["x", "to_windows"], ["windows"]),
        node("MatMul", ["windows", "w"], ["qkv0"]),
        node("Add", ["qkv0", "b"], ["qkv"]),
        node("Reshape", ["qkv", "heads"], ["split"]),
        node("Transpose", ["split"], ["moved"], perm=[2, 0, 3, 1, 4]),
        node("Gather", ["moved", "s0"], ["q"], axis=0),
        node("Gather", ["moved", "s1"], ["k"], axis=0),
        node("Gather", ["moved", "s2"], ["v"], axis=0),
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["weights"], axis=-1),
        node("MatMul", ["weights", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "whole"], ["joined"]),
        node("LayerNormalization", ["joined", "g", "h"], ["y"], axis=-1),
    ]
    return nodes, constants, [2, 14, 12], [2, 14, 12]


def _convolutions():
    """A padded convolution of stride 2, a depthwise one, a squeeze."""
    random = np.random.default_rng(2)
    constants = {"w": _weights(random, 10, 3, 3, 3), "d": _weights(random, 10, 1, 3, 3), "axes": np.array([2, 3])}
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Conv", ["r", "d"], ["p"], pads=[1, 1, 1, 1], group=10),
        node("ReduceMean", ["p", "axes"], ["m"], keepdims=1),
        node("Sigmoid", ["m"], ["g"]),
        node("Mul", ["p", "g"], ["y"]),
    ]
    return nodes, constants, [1, 3, 13, 13], [1, 10, 7, 7]


def _model(made):
    nodes, constants, given, result = made
    initializers = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", given), ("y", result))]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _instrumented(source, names, tensors):
    """The text with a log as its last parameter."""
    start = source.text.index("__kernel")
    head, kernel = source.text[:start], source.text[start:]
    sizes = []
    for i, name in enumerate(names):
        layout, shape = tensors[name].layout, tensors[name].type.shape
        width, height = layout.image_size(shape) if layout.memory == "image" else (0, 0)
        sizes += [f"#define ID_p{i} {i}", f"#define W_p{i} {width}", f"#define H_p{i} {height}"]
    signature, body = kernel.split(") {", 1)
    body = _note_buffers(body)
    return head + LOG % LIMIT + "\n".join(sizes) + "\n" + signature + ", __global int* smr_log) {" + body


def _note_buffers(body):
    """`p3[e]` and `(p3 + e)`, where the log keeps the offset and, as y, the width."""
    made, at = [], 0
    pattern = re.compile(r"\*\(__global (?:const )?(?:smr_)?float(\d)\*\)\(p(\d+) \+ |\bp(\d+)\[")
    while (match := pattern.search(body, at)) is not None:
        made.append(body[at : match.start()])
        opening = "(" if match.group(1) else "["
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(body[end], 0)
            end += 1
        inner = _note_buffers(body[match.end() : end - 1])
        number = match.group(2) or match.group(3)
        made.append(f"{match.group(0)}smr_log2(smr_log, {number}, {inner}, {match.group(1) or 1}){body[end - 1]}")
        at = end
        del opening
    return "".join(made) + body[at:]


def _ran(source, names, tensors, queue):
    context = queue.context
    program = cl.Program(context, _instrumented(source, names, tensors)).build()
    arguments = []
    for argument in source.arguments:
        tensor = tensors[argument.tensor]
        if tensor.layout.memory == "image":
            form = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT)
            size = tensor.layout.image_size(tensor.type.shape)
            arguments.append(cl.create_image(context, cl.mem_flags.READ_WRITE, form, shape=size))
        else:
            held = np.zeros(stored_bytes(tensor) + 64, dtype=np.uint8)
            if tensor.packed is not None:
                flat = tensor.packed.reshape(-1).view(np.uint8)
                held[: len(flat)] = flat[: len(held)]
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            arguments.append(cl.Buffer(context, flags, hostbuf=held))
    log = np.zeros(1 + 3 * LIMIT, dtype=np.int32)
    device_log = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=log)
    kernel = cl.Kernel(program, source.entry)
    kernel(queue, source.global_size, source.local_size, *arguments, device_log)
    cl.enqueue_copy(queue, log, device_log)
    queue.finish()
    assert log[0] <= LIMIT
    return Counter(map(tuple, log[1 : 1 + 3 * log[0]].reshape(-1, 3).tolist()))


def _traced(source, names, tensors, device):
    launch = TracedLaunch.of(source, tensors, device.wave)
    found = Counter()
    for access in trace(launch, Window(np.arange(launch.groups)), device, merge=False):
        if access.space.kind not in ("global", "image"):
            continue
        which = list(launch.parameters).index(access.space.name)
        chosen = access.mask.astype(bool)
        first = access.place[0][chosen]
        second = access.place[1][chosen] if len(access.place) > 1 else np.full(len(first), access.width)
        found.update(zip([which] * len(first), first.tolist(), second.tolist(), strict=True))
    return found


@pytest.fixture(scope="module")
def queue():
    devices = [d for p in cl.get_platforms() for d in p.get_devices() if d.image_support]
    if not devices:
        pytest.skip("no OpenCL device with images")
    return cl.CommandQueue(cl.Context(devices[:1]))


@pytest.mark.parametrize("memory", ["image", "buffer"])
@pytest.mark.parametrize("level", ["none", "dnnfusion", "smartmem"])
@pytest.mark.parametrize("made", [_attention, _convolutions])
def test_every_access_of_every_kernel(made, level, memory, queue):
    model = _model(made())
    onnx.checker.check_model(model)
    plan, _ = make_plan(Request(model, (), "adreno_740", level, "float32", memory, (), {}), Unmeasured())
    device = MemoryModel.of(load_rules().devices["adreno_740"])
    seen = 0
    for launch, source in zip(plan.launches, plan.sources, strict=True):
        names = [a.tensor for a in source.arguments]
        ran = _ran(source, names, plan.tensors, queue)
        traced = _traced(source, names, plan.tensors, device)
        assert traced == ran, f"{launch.name}: {(traced - ran).most_common(3)} {(ran - traced).most_common(3)}"
        seen += ran.total()
    assert seen > 1000
