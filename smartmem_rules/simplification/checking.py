"""Compares a simplified model with the model that it comes from, by ONNX Runtime on random inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx

from smartmem_rules.collector import return_free_memory
from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.loading import all_nodes
from smartmem_rules.graph.weights import graph_tensors, is_external
from smartmem_rules.runtime.feeds import Array, compare
from smartmem_rules.runtime.reference import ENDS_WHERE_EMPTY, complete_file
from smartmem_rules.simplification.cutting import ChangedNode, Compared, Cut, cut_of
from smartmem_rules.simplification.drawn import Drawn
from smartmem_rules.simplification.encoding import INSIDE, is_inside
from smartmem_rules.simplification.feeding import RUNS, CheckError, Feeds, Inputs
from smartmem_rules.simplification.files import ONE_FILE
from smartmem_rules.simplification.in_doubles import InDoubles
from smartmem_rules.simplification.in_place import read_in_place
from smartmem_rules.simplification.options import SimplifyError
from smartmem_rules.simplification.report import Check
from smartmem_rules.simplification.types import precisions_of

TOLERANCES = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-9}
"""The largest error relative to an output's largest magnitude, by the least precise type that it was computed in.

Outputs that are no floats have to be equal.
"""
_REFERENCE = "ONNX Runtime"
_FOLDER = "session.model_external_initializers_file_folder_path"


class DifferentError(SmartmemError):
    """A simplified model computes something else than its input; the message says where."""


class DifferentIfEmptyError(DifferentError):
    """A simplified model computes something else where an extent is 0, and only there as far as was seen."""


class Checker:
    """A model that simplified models are compared with; it runs once.

    Nodes that ONNX Runtime does not run are left out of all of these models (`cutting`).
    """

    def __init__(self, path: Path, declared: onnx.ModelProto, bounds: Mapping[str, int], place: Path) -> None:
        """Args:
            path: the model's file.
            declared: the model, for the types of its inputs and the precision of its outputs.
            bounds: for integer inputs how many values they can take, where that is known.
            place: a folder for weights that the models describe, as long as the checker is used.

        Raises:
            CheckError: ONNX Runtime is not installed, or does not run the model.
            SimplifyError: described weights cannot be written.
        """
        self._path = path
        self._in_doubles = InDoubles(path)
        self._drawn = Drawn(place)
        self._precisions = precisions_of(declared)
        self._cut: Cut | None = None
        try:
            model = _Session(path, self._drawn)
        except CheckError:
            declared, _ = read_in_place(path)
            self._drawn.complete(declared, path.parent)  # ONNX Runtime takes no Constant that describes its tensor
            self._cut = cut_of(declared, _loads)
            if self._cut is None:
                raise
            model = _Session(path, self._drawn, self._cut)
            declared = self._cut.remainder(declared).model
        self._runs: list[tuple[Feeds, list[Array]]] = []
        reason = ""
        inputs = Inputs.of(declared, bounds)
        for feeds in inputs.draws():
            reason = self._run(model, feeds) or reason
            if len(self._runs) == RUNS:
                break
        if not self._runs:
            raise CheckError(f"ONNX Runtime cannot run {path} on random inputs, so nothing can be checked: {reason}")
        self._full = len(self._runs)
        if not any(node.op_type in ENDS_WHERE_EMPTY for node in all_nodes(declared.graph.node)):
            for feeds in inputs.empty_draws(self.feeds):
                self._run(model, feeds)
        self._tensors = model.compared
        model.close()

    def _run(self, model: _Session, feeds: Feeds) -> str:
        """Run the model; why ONNX Runtime does not, empty where it does: the extents or the indices do not fit."""
        try:
            self._runs.append((feeds, model.run(feeds)))
        except Exception as error:  # ONNX Runtime's own classes
            return " ".join(str(error).split())
        return ""

    @property
    def left_out(self) -> Mapping[str, str]:
        """The nodes that ONNX Runtime does not run, by their first result, and what they are called."""
        return {} if self._cut is None else dict(zip(self._cut.nodes, self._cut.described, strict=True))

    @property
    def feeds(self) -> Feeds:
        """The inputs of the first run."""
        return self._runs[0][0]

    def check(self, path: Path) -> Check:
        """Compare a model.

        Raises:
            DifferentError: it does not run, or an output is off by more than rounding explains.
            SimplifyError: described weights cannot be written.
        """
        results: list[list[Any]] = []
        try:
            other = _Session(path, self._drawn, self._cut)
            for feeds, _ in self._runs:
                results.append(other.run(feeds))
            compared = other.compared
            other.close()
        except SimplifyError:
            raise
        except ChangedNode as error:
            raise DifferentError(str(error)) from error
        except Exception as error:
            reason = " ".join(str(error).split())
            kind = DifferentIfEmptyError if len(results) >= self._full else DifferentError
            raise kind(f"ONNX Runtime does not run the simplified model: {reason}") from error
        try:
            return self._compared(compared, results, ())
        except DifferentError:
            varying = self._varying()
            if not varying:
                raise
        return self._compared(compared, results, varying)

    def _varying(self) -> tuple[str, ...]:
        """The outputs that two runs of the model itself give differently."""
        model = _Session(self._path, self._drawn, self._cut)
        pairs = zip(self._tensors, model.run(self.feeds), model.run(self.feeds), strict=True)
        return tuple(tensor.original for tensor, one, other in pairs if not _is_same(one, other))

    def _compared(self, compared: Sequence[Compared], results: Sequence[list[Any]], varying: tuple[str, ...]) -> Check:
        worst, in_doubles = 0.0, dict[str, None]()
        labels = [tensor.label for tensor in self._tensors]
        for number, ((feeds, values), found) in enumerate(zip(self._runs, results, strict=True)):
            expected = dict(zip(labels, values, strict=True))
            for tensor, made in zip(compared, found, strict=True):
                where, name = f"{tensor.label}, run {number}", tensor.original
                one = expected[tensor.label]
                try:
                    error = _error(where, one, made, self._precisions.get(name, ""), name in varying)
                except DifferentError as difference:
                    if self._is_rounding(feeds, name, one, made):
                        in_doubles[name] = None
                        continue
                    kind = DifferentIfEmptyError if number >= self._full else DifferentError
                    raise kind(str(difference)) from None
                worst = max(worst, error)
        left_out = tuple(self.left_out.values())
        return Check(
            reference=_REFERENCE,
            runs=len(results),
            max_relative_error=worst,
            varying=varying,
            in_doubles=tuple(in_doubles),
            left_out=left_out,
        )

    def _is_rounding(self, feeds: Feeds, name: str, expected: Any, found: Any) -> bool:
        """Whether ONNX Runtime's own rounding explains how two results for an output differ."""
        if self._cut is not None or not is_of_floats(expected) or not is_of_floats(found):
            return False
        same_type = (expected.dtype, expected.shape) == (found.dtype, found.shape)
        return same_type and self._in_doubles.agree(feeds, name, expected, found)


class Checking:
    """A checker that is made in the background."""

    def __init__(self, path: Path, model: onnx.ModelProto, place: Path) -> None:
        self._path, self._model, self._place = path, model, place
        self._background = ThreadPoolExecutor(1)
        self._made: Future[Checker] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._background.shutdown()

    def begin(self, bounds: Mapping[str, int]) -> None:
        """Run the model, unless that has begun."""
        if self._made is None:
            self._made = self._background.submit(Checker, self._path, self._model, bounds, self._place)

    def wait(self) -> None:
        """Wait for what has begun, whatever came of it."""
        wait([] if self._made is None else [self._made])

    def checker(self) -> Checker:
        """What has begun; raises CheckError if ONNX Runtime did not run the model."""
        assert self._made is not None
        return self._made.result()


def tolerance_of(dtype: str, precision: str) -> float:
    """The largest relative error of an output of type `dtype` whose way to it has floats of `precision`."""
    return TOLERANCES.get(precision, TOLERANCES[dtype]) if dtype in TOLERANCES else 0.0


def is_of_floats(value: Any) -> bool:
    """Whether a result is a tensor that rounding changes."""
    return isinstance(value, np.ndarray) and value.dtype.name in TOLERANCES


def _error(where: str, expected: Any, found: Any, precision: str, varies: bool) -> float:
    """The error of an output, 0 where it varies; raises DifferentError if rounding does not explain it."""
    if not isinstance(expected, np.ndarray):  # sequences, optional values
        if not varies and not _is_same(expected, found):
            raise DifferentError(f"{where}: the values differ")
        return 0.0
    if (expected.dtype, expected.shape) != (found.dtype, found.shape):
        raise DifferentError(f"{where}: {found.dtype}{list(found.shape)} in place of {expected.dtype}"
                             f"{list(expected.shape)}")  # fmt: skip
    if varies:
        return 0.0
    if expected.dtype.kind not in "biufc" and expected.dtype.name not in TOLERANCES:
        if not np.array_equal(expected, found):
            raise DifferentError(f"{where}: the values differ")
        return 0.0
    error, _ = compare(found, expected)
    if not error <= tolerance_of(expected.dtype.name, precision):
        raise DifferentError(f"{where}: the relative error is {error:.2e}")
    return error


class _Session:
    """A model in ONNX Runtime as it is written: nothing is optimized.

    Attributes:
        compared: what a run gives, in this order.
    """

    def __init__(self, path: Path, drawn: Drawn, cut: Cut | None = None) -> None:
        try:
            source, folder, compared = _source(_without_links(path), drawn, cut)
            self._session = _session(source, folder)
        except (CheckError, ChangedNode, SimplifyError):
            raise
        except Exception as error:
            reason = " ".join(str(error).split())
            raise CheckError(f"ONNX Runtime does not load {path}, so nothing can be checked: {reason}") from error
        outputs = [output.name for output in self._session.get_outputs()]
        self.compared = compared or [Compared(f"the output {name!r}", name, name) for name in outputs]
        self._names = dict.fromkeys(one.tensor for one in self.compared)
        inputs = {value.name for value in self._session.get_inputs()}
        self._gone = set() if cut is None else cut.types.keys() - inputs

    def run(self, feeds: Feeds) -> list[Any]:
        given = {name: array for name, array in feeds.items() if name not in self._gone}
        found = dict(zip(self._names, self._session.run(list(self._names), given), strict=True))
        values = (found[one.tensor] for one in self.compared)
        return [np.array(one) if isinstance(one, np.ndarray) else one for one in values]

    def close(self) -> None:
        """Drop the weights now, and not when Python finds out that nobody needs them."""
        del self._session
        return_free_memory()


def _session(source: bytes | str, folder: Path) -> Any:
    """ONNX Runtime's session of a model whose data files are in a folder."""
    try:
        import onnxruntime  # start-up time
    except ImportError:
        raise CheckError(
            "onnxruntime is not installed, without which no result can be checked: pip install onnxruntime"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # a few runs: what makes many of them quick takes memory, and processors from others
    options.enable_mem_pattern = False
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry(_FOLDER, str(folder))
    onnxruntime.set_seed(1)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _loads(model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime loads a small model, which holds all its data."""
    try:
        _session(model.SerializeToString(), Path())
    except CheckError:
        raise
    except Exception:  # ONNX Runtime's own classes
        return False
    return True


def _source(path: Path, drawn: Drawn, cut: Cut | None) -> tuple[bytes | str, Path, Sequence[Compared]]:
    """A model as ONNX Runtime loads it, the folder of its data files, and what is compared of it.

    No list of that is given for all of its outputs.

    Args:
        cut: what is left out of the model.
    """
    model, _ = read_in_place(path)
    folder = drawn.complete(model, path.parent)
    compared: Sequence[Compared] = ()
    if cut is not None:
        left = cut.remainder(model)
        model, compared = left.model, left.compared
    if model.ByteSize() >= ONE_FILE:
        if cut is not None:
            raise CheckError(
                f"ONNX Runtime does not run {path}, and without what it does not run the model is too large"
            )
        return complete_file(path, drawn.folder), path.parent, ()
    for _, tensor in graph_tensors(model.graph):
        for place, entry in enumerate(tensor.external_data):
            if entry.key == INSIDE:
                del tensor.external_data[place]
                break
    return model.SerializeToString(), folder, compared


def _without_links(path: Path) -> Path:
    """The file itself where all weights are in there: ONNX Runtime follows no link that leaves the model's folder."""
    if not path.is_symlink():
        return path
    model, _ = read_in_place(path)
    outside = any(is_external(tensor) and not is_inside(tensor) for _, tensor in graph_tensors(model.graph))
    return path if outside else path.resolve()


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        same = isinstance(other, np.ndarray) and one.dtype == other.dtype and one.shape == other.shape
        return bool(same and (one.tobytes() == other.tobytes() or np.array_equal(one, other)))
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
