"""Small models and a small rule base."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx
import pytest
from onnx import helper

from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.rulebase.base import RuleBase, collect

RULES = """
operator Add(a: T[*A], b: T[*B]) -> y: T[*broadcast(A, B)] { y[*i] = a[~i] + b[~i] }
operator Relu(x: T[*S]) -> y: T[*S] { y[*i] = max(x[*i], 0) }
operator Transpose<T: any>(x: T[*S]; perm: ints = reverse(range(rank(S)))) -> y: T[*permute(S, perm)] {
    view y[*i] = x[*unpermute(i, perm)]
}
operator Reshape<T: any>(x: T[*S], const shape: ints) -> y: T[*shape] {
    view y[*i] = x[*unravel(ravel(i, shape), S)]
}
operator Shape<T: any>(x: T[*S]) -> y: int64[rank(S)] { y[i] = cast(S[i], int64) }
operator Softmax<T: float>(x: T[*S]; axis: int = -1) -> y: T[*S] {
    onnx ai.onnx::Softmax 13.. ;
    let a = wrap(axis, rank(S))
    m[*i < put(S, [a], [1])] = max(k < S[a]) x[*put(i, [a], [k])]
    e[*i < S] = exp(x[*i] - m[*put(i, [a], [0])])
    s[*i < put(S, [a], [1])] = sum(k < S[a]) e[*put(i, [a], [k])]
    y[*i] = e[*i] / s[*put(i, [a], [0])]
}
operator Cast<T: any>(x: T[*S]; to: string) -> y: to[*S] { y[*i] = cast(x[*i], to) }
operator Scale(x: T[*S]; by: float = 2) -> y: T[*S] {
    onnx my.domain::Scale 1.. ;
    y[*i] = x[*i] * by
}
operator Hidden(x: T[*S]) -> y: T[*S] { internal  y[*i] = x[*i] }
"""

Build = Callable[..., onnx.ModelProto]


@pytest.fixture(scope="session")
def base() -> RuleBase:
    return collect([parse_text(RULES, "small.smr")], [])


@pytest.fixture
def build() -> Build:
    def make(
        nodes: Sequence[onnx.NodeProto],
        inputs: dict[str, Sequence[int | str | None]],
        outputs: Sequence[str],
        constants: Sequence[onnx.TensorProto] = (),
        opset: int = 17,
        functions: Sequence[onnx.FunctionProto] = (),
    ) -> onnx.ModelProto:
        given = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape) for n, shape in inputs.items()]
        wanted = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in outputs]
        graph = helper.make_graph(list(nodes), "small", given, wanted, list(constants))
        imports = [helper.make_opsetid("", opset), helper.make_opsetid("my.domain", 1)]
        return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=9)

    return make
