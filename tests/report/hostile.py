"""A model whose names try to end the page's elements, to break out of attributes, or to be too long for anything."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto, helper, save

ENDS_SCRIPT = "</script><script>document.title='broken'</script>"
QUOTES = """'"><img src=x onerror="document.title='broken'">&amp;"""
LONG = "/very" * 2000
OTHER = "名前\u202e\u0000\ud7ff{{ figures }}"


def model(path: Path) -> Path:
    """y = exp(tanh(relu(x))) - x, and a Shape that is computed at import."""
    nodes = [
        helper.make_node("Relu", [ENDS_SCRIPT], [QUOTES], name=ENDS_SCRIPT),
        helper.make_node("Tanh", [QUOTES], ["t"], name=QUOTES),
        helper.make_node("Exp", ["t"], [OTHER], name=LONG),
        helper.make_node("Shape", [ENDS_SCRIPT], ["extents"], name="shape"),
        helper.make_node("Reshape", [OTHER, "extents"], ["same"], name=OTHER),
        helper.make_node("Sub", ["same", ENDS_SCRIPT], [LONG], name="sub"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 8)) for name in (ENDS_SCRIPT, LONG)]
    graph = helper.make_graph(nodes, ENDS_SCRIPT, ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path
