"""A node at special values by ONNX's reference evaluator, by ONNX Runtime without optimizations, and by a plan on PoCL.

ONNX Runtime runs in a process of its own, which some values end.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from onnx.compose import add_prefix
from onnx.reference import ReferenceEvaluator

import smartmem_rules
from smartmem_rules.errors import SmartmemError

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_SECONDS = 120


@dataclass(frozen=True)
class Answer:
    """What an implementation gives for one set of inputs.

    Attributes:
        arrays: its outputs; None where there are none.
        why: in a word why there are none: `none` (it does not have the operator in this type), `refused`, `error`, or
            the signal that ended it.
    """

    arrays: tuple[Array, ...] | None
    why: str = ""


NONE = Answer(None, "none")


def by_evaluator(model: onnx.ModelProto, feeds: Sequence[Feeds]) -> list[Answer]:
    """ONNX's reference evaluator; what it raises says that it does not have the node."""
    answers = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            evaluator = ReferenceEvaluator(model)
        except Exception:  # other people's code: whatever it raises, it does not take the node
            return [NONE] * len(feeds)
        for one in feeds:
            try:
                answers.append(_typed(evaluator.run(None, dict(one)), model))
            except Exception:
                answers.append(NONE)
    return answers


def _typed(results: Any, model: onnx.ModelProto) -> Answer:
    """The evaluator's results in the model's types: it computes some halves in wider types and does not round them."""
    kinds = [value.type.tensor_type.elem_type for value in model.graph.output]
    arrays = [np.asarray(result) for result in results]
    dtypes = [
        helper.tensor_dtype_to_np_dtype(kind) if kind else array.dtype
        for kind, array in zip(kinds, arrays, strict=True)
    ]
    return Answer(tuple(array.astype(dtype) for array, dtype in zip(arrays, dtypes, strict=True)))


def by_plan(models: Sequence[onnx.ModelProto], feeds: Sequence[Sequence[Feeds]]) -> list[list[Answer]]:
    """One plan of all the models, side by side, on the device that is there; each alone where that is refused."""
    try:
        plan = smartmem_rules.optimize(_side_by_side(models), device="auto")
    except SmartmemError:
        if len(models) == 1:
            return [[Answer(None, "refused")] * len(feeds[0])]
        return [by_plan([model], [own])[0] for model, own in zip(models, feeds, strict=True)]
    answers: list[list[Answer]] = []
    for number, (model, own) in enumerate(zip(models, feeds, strict=True)):
        others = {f"m{n}_{name}": a for n, rest in enumerate(feeds) if n != number for name, a in rest[0].items()}
        names = [f"m{number}_{value.name}" for value in model.graph.output]
        answers.append([_planned(plan, {**others, **_renamed(one, number)}, names) for one in own])
    return answers


def _planned(plan: Any, feeds: Feeds, names: Sequence[str]) -> Answer:
    try:
        results = plan.run(feeds)
    except SmartmemError:
        return Answer(None, "refused")
    return Answer(tuple(np.asarray(results[name]) for name in names))


def _renamed(feeds: Feeds, number: int) -> dict[str, Array]:
    return {f"m{number}_{name}": array for name, array in feeds.items()}


def _side_by_side(models: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """One model of the models' nodes; names begin with the model's number."""
    made = onnx.ModelProto()
    made.CopyFrom(models[0])
    for field in ("node", "initializer", "input", "output", "value_info"):
        made.graph.ClearField(field)
    for number, model in enumerate(models):
        own = add_prefix(model, f"m{number}_").graph
        made.graph.node.extend(own.node)
        made.graph.initializer.extend(own.initializer)
        made.graph.input.extend(own.input)
        made.graph.output.extend(own.output)
    return made


def by_onnxruntime(model: onnx.ModelProto, feeds: Sequence[Feeds]) -> list[Answer]:
    """ONNX Runtime's CPU provider; where inputs end the process, another one goes on with those behind them.

    Args:
        feeds: ordinary numbers first.
    """
    answers: list[Answer] = []
    narrow = [_is_bfloat16(value) for value in model.graph.output]
    processes = get_context("fork")
    while len(answers) < len(feeds):
        receiver, sender = processes.Pipe(duplex=False)
        rest = feeds[len(answers) :]
        child = processes.Process(
            target=_work, args=(sender, _with_singles(model).SerializeToString(), rest), daemon=True
        )
        child.start()
        sender.close()
        for _ in rest:
            try:
                answers.append(receiver.recv() if receiver.poll(_SECONDS) else Answer(None, "hangs"))
            except EOFError:
                child.join(10)
                answers.append(Answer(None, _signal(child.exitcode)))
                break
        child.kill()
        child.join(10)
        if answers[0].why == "error":  # of ordinary numbers: it takes the node and has no such kernel
            return [NONE] * len(feeds)
    return [_narrowed(answer, narrow) for answer in answers]


def _narrowed(answer: Answer, narrow: Sequence[bool]) -> Answer:
    """The answer with those outputs in bfloat16 that are so in the model."""
    if answer.arrays is None:
        return answer
    pairs = zip(answer.arrays, narrow, strict=True)
    return Answer(tuple(array.astype(BFLOAT16) if is_narrow else array for array, is_narrow in pairs))


def _signal(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"


def _work(sender: Connection, model: bytes, feeds: Sequence[Feeds]) -> None:
    import onnxruntime

    signal.signal(signal.SIGFPE, signal.SIG_DFL)  # PoCL has a handler, behind which a wrong division goes on
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:
        for _ in feeds:
            sender.send(NONE)
        return
    for one in feeds:
        try:
            sender.send(Answer(_run(session, one)))
        except Exception:
            sender.send(Answer(None, "error"))


def _run(session: Any, feeds: Feeds) -> tuple[Array, ...]:
    given = {name: array.astype(np.float32) if array.dtype == BFLOAT16 else array for name, array in feeds.items()}
    return tuple(map(np.asarray, session.run(None, given)))


def _with_singles(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs and outputs in single precision where they are bfloat16, which its Python cannot pass."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    (node,) = made.graph.node
    narrow = [value for value in (*made.graph.input, *made.graph.output) if _is_bfloat16(value)]
    for value in narrow:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    names = {value.name: f"{value.name}_narrow" for value in narrow}
    given = [value.name for value in made.graph.input if value.name in names]
    results = [value.name for value in made.graph.output if value.name in names]
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    before = [helper.make_node("Cast", [name], [names[name]], to=onnx.TensorProto.BFLOAT16) for name in given]
    after = [helper.make_node("Cast", [names[name]], [name], to=onnx.TensorProto.FLOAT) for name in results]
    whole = [*before, node, *after]
    kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in whole]
    del made.graph.node[:]
    made.graph.node.extend(kept)
    return made


def _is_bfloat16(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16
