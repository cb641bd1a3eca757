#!/usr/bin/env bash
# Made of docs/tutorials/own_operator.md, which says more; run it in an empty folder.
set -euo pipefail

# An operator of your own

# A model has an operator that ONNX does not know. At the end of this page it runs in one kernel with its neighbours, a
# rule of yours finds the same operator where a model wrote it out, and `smartmem verify` has proved that rule.

# You need a checkout in which `make demo` has run once, and its commands on the path:

# Work in an empty folder. `examples/tutorials/own_operator.sh` does all of this page at once.

# The model

# Squareplus is a smooth form of Relu: `(x + sqrt(x² + beta)) / 2`. This model calls it by name, in a domain of its own,
# and then writes it out by ONNX's operators, as an exporter may. Save it as `model.py`:
cat > model.py <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
constants = {
    "a": random.standard_normal((64, 256)) / 8,
    "b": random.standard_normal((256, 64)) / 16,
    "beta": np.array(4.0),
    "half": np.array(0.5),
}
nodes = [
    helper.make_node("MatMul", ["x", "a"], ["hidden"], "up"),
    helper.make_node("Transpose", ["hidden"], ["turned"], "turn", perm=[1, 0]),
    helper.make_node("Squareplus", ["turned"], ["activated"], "by_name", domain="my.domain", beta=4.0),
    helper.make_node("Transpose", ["activated"], ["back"], "turn_back", perm=[1, 0]),
    helper.make_node("MatMul", ["back", "b"], ["down"], "down"),
    helper.make_node("Mul", ["down", "down"], ["square"], "square"),
    helper.make_node("Add", ["square", "beta"], ["shifted"], "shift"),
    helper.make_node("Sqrt", ["shifted"], ["root"], "root"),
    helper.make_node("Add", ["down", "root"], ["sum"], "sum"),
    helper.make_node("Mul", ["sum", "half"], ["y"], "written_out"),
]
graph = helper.make_graph(
    nodes,
    "feed_forward",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [128, 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [128, 64])],
    [numpy_helper.from_array(array.astype(np.float32), name) for name, array in constants.items()],
)
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.domain", 1)]
onnx.save(helper.make_model(graph, opset_imports=opsets), "block.onnx")
END

# Nothing covers the operator yet, so there is no plan, and the message says what is missing:
echo; echo '$ python model.py'
python model.py
echo; echo '$ smartmem optimize block.onnx || echo "exit code $?"'
smartmem optimize block.onnx || echo "exit code $?"

# The definition

# An operator is what it computes, element by element. Save this as `squareplus.smr`:
cat > squareplus.smr <<'END'
operator Squareplus<T: float>(x: T[*S]; beta: float = 4.0) -> y: T[*S] {
    onnx my.domain::Squareplus ;
    y[*i] = (x[i] + sqrt(x[*i] * x[*i] + beta)) / 2
}
END

# `x: T[*S]` is a tensor of any float type `T` and any shape `S`; `beta` is an attribute with its default.

# `onnx` names the node that it stands for.

# `*i` is one index for each axis of the result. One star is missing, and `smartmem check` finds it:
echo; echo '$ smartmem check squareplus.smr || echo "exit code $?"'
smartmem check squareplus.smr || echo "exit code $?"

# Mended, the file is right:
cat > squareplus.smr <<'END'
operator Squareplus<T: float>(x: T[*S]; beta: float = 4.0) -> y: T[*S] {
    onnx my.domain::Squareplus ;
    y[*i] = (x[*i] + sqrt(x[*i] * x[*i] + beta)) / 2
}
END
echo; echo '$ smartmem check squareplus.smr'
smartmem check squareplus.smr

# `reads proved` says that no element outside of a tensor is ever read, for all shapes.

# The plan

# `--rules` adds the file to the built-in rules. Class, kernel, index map and reference follow from the definition:
echo; echo '$ smartmem optimize block.onnx --rules squareplus.smr'
smartmem optimize block.onnx --rules squareplus.smr

# Ten operators are one kernel; the two Transposes have become the way in which it reads. The last line is the check:
# the kernel's outputs are compared with the model computed in double precision, where your definition stands for your
# operator. [How a check tells rounding from error](../checking.md) says how a function of numpy can stand for it instead.

# A rule, and why it is wrong

# The model's second Squareplus is written out. A rewrite finds it. Add this to `squareplus.smr`:
cat > squareplus.smr <<'END'
operator Squareplus<T: float>(x: T[*S]; beta: float = 4.0) -> y: T[*S] {
    onnx my.domain::Squareplus ;
    y[*i] = (x[*i] + sqrt(x[*i] * x[*i] + beta)) / 2
}

rewrite squareplus in recognise              # (x + sqrt(x * x + b)) * c = squareplus(x; b)
    Mul(Add(x, Sqrt(Add(Mul(x, x), b))), c) => Squareplus(x; beta = value(b))
    where constant(b), prod(shape(b)) == 1, rank(b) <= rank(x),
        constant(c), prod(shape(c)) == 1, rank(c) <= rank(x)
    relaxes reassociation
END

# `check` has nothing to say: both sides have one type. But `verify` computes both sides, and they differ:
echo; echo '$ smartmem verify squareplus.smr --rule squareplus || echo "exit code $?"'
smartmem verify squareplus.smr --rule squareplus || echo "exit code $?"

# The rule takes any `c`, and it is right for a half only. The counterexample is the smallest that was found; a snippet of
# Python that repeats it follows. Mend the rule:
cat > squareplus.smr <<'END'
operator Squareplus<T: float>(x: T[*S]; beta: float = 4.0) -> y: T[*S] {
    onnx my.domain::Squareplus ;
    y[*i] = (x[*i] + sqrt(x[*i] * x[*i] + beta)) / 2
}

rewrite squareplus in recognise              # (x + sqrt(x * x + b)) / 2 = squareplus(x; b)
    Mul(Add(x, Sqrt(Add(Mul(x, x), b))), 0.5) => Squareplus(x; beta = value(b))
    where constant(b), prod(shape(b)) == 1, rank(b) <= rank(x)
    relaxes reassociation
END
echo; echo '$ smartmem check squareplus.smr'
smartmem check squareplus.smr
echo; echo '$ smartmem verify squareplus.smr --rule squareplus --prove'
smartmem verify squareplus.smr --rule squareplus --prove

# `proved` means for all real numbers, and random instances agree up to rounding. Without z3 (`pip install z3-solver`) the
# verdict is `tested`. [Verification](../verification.md) says what each verdict rests on.

# What became of a node

# `explain` names the kernel that a node ended in, and the rules on the way:
echo; echo '$ smartmem explain block.onnx written_out --rules squareplus.smr'
smartmem explain block.onnx written_out --rules squareplus.smr

# A rule can be asked as well; where it nearly fired, the answer names the guard that failed.
echo; echo '$ smartmem explain block.onnx --rule squareplus --rules squareplus.smr'
smartmem explain block.onnx --rule squareplus --rules squareplus.smr

# Further

# [Writing rules](../../rules/README.md): what good rules look like.

# [The rule language](../language.md): definitions with sums, windows, scans, views.

# `examples/own_attention`, `examples/causal_mask` and their neighbours: larger operators and rules.
