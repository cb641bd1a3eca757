"""A model with inputs and the way it is planned: what is tried, kept in files and tried again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from smartmem_rules.graph.weights import with_weights
from smartmem_rules.graph.zoo import materialized_model
from smartmem_rules.limits import DEFAULT_LIMITS
from smartmem_rules.records import dataclass

Array = np.ndarray[Any, np.dtype[Any]]
LEVELS = ("none", "dnnfusion", "eliminate", "layout", "smartmem")
MEMORIES = ("auto", "buffer", "image")
SELF = "self"
"""The system that is our own engine."""


@dataclass(frozen=True, kw_only=True)
class Mode:
    """How a model is planned.

    Attributes:
        level, memory, dtype, device: as `optimize` takes them; the device is a profile, or `auto`.
        debug: the kernels check each read and write against the bounds of its tensor.
        dims: least and greatest extents of the model's symbolic dimensions.
        units: the compute capability whose matrix units are emulated; none by default.
        cores: compute units of the device that the plan is made for; 0: those of the device.
        sizes: draws the sizes of kernels from those that a tuner may choose; 0: the cost model's.
        weights: draws the weights of the choice of layouts; 0: the shipped ones.
        steps: for how many steps a loop is unrolled whose end depends on data.
        system: who computes the model; the rest counts only for `self`, our own engine.
    """

    level: str = "smartmem"
    memory: str = "auto"
    dtype: str = "float32"
    device: str = "auto"
    debug: bool = False
    dims: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    units: str = ""
    cores: int = 0
    sizes: int = 0
    weights: int = 0
    steps: int = DEFAULT_LIMITS.steps
    system: str = SELF

    def __str__(self) -> str:
        if self.system != SELF:
            return self.system
        extras = [*(["debug"] if self.debug else []), *([f"units {self.units}"] if self.units else [])]
        extras += [f"cores {self.cores}"] if self.cores else []
        extras += [f"sizes {self.sizes}"] if self.sizes else []
        extras += [f"weights {self.weights}"] if self.weights else []
        extras += [f"steps {self.steps}"] if self.steps != DEFAULT_LIMITS.steps else []
        extras += [f"{n}={a}..{b}" for n, (a, b) in self.dims.items()]
        return "/".join([self.level, self.memory, self.dtype, self.device, *extras])


@dataclass(frozen=True)
class Case:
    """One thing to try."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    mode: Mode

    def save(self, folder: Path, line: str = "") -> Path:
        """Write NAME.onnx, NAME.npz (the inputs by number; their names are in the text) and NAME.json.

        Args:
            line: what is wrong, for the reader.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.onnx"
        onnx.save(self.model, str(path))
        names = list(self.feeds)
        # as tensors of ONNX: numpy's files do not hold bfloat16 and the like
        stored = [numpy_helper.from_array(self.feeds[name], name).SerializeToString() for name in names]
        arrays: dict[str, Any] = {f"i{k}": np.frombuffer(s, np.uint8) for k, s in enumerate(stored)}
        np.savez_compressed(path.with_suffix(".npz"), **arrays)
        described = {"line": line, "mode": asdict(self.mode)}
        path.with_suffix(".json").write_text(json.dumps(described, indent=1) + "\n")
        return path


def load_case(path: Path) -> Case:
    """A case from a file that `Case.save` wrote, or any model with `.npz` inputs by name beside it.

    Raises:
        GraphError: the file is no model, or its weights are missing or damaged.
    """
    model = with_weights(materialized_model(path), path.parent)
    described: dict[str, Any] = {"mode": {}}
    if path.with_suffix(".json").exists():
        described = json.loads(path.with_suffix(".json").read_text())
    feeds: dict[str, Array] = {}
    if path.with_suffix(".npz").exists():
        with np.load(path.with_suffix(".npz")) as stored:
            for name in stored.files:
                if path.with_suffix(".json").exists():
                    tensor = onnx.TensorProto.FromString(stored[name].tobytes())
                    feeds[tensor.name] = numpy_helper.to_array(tensor)
                else:
                    feeds[name] = stored[name]
    return Case(path.stem, model, feeds, _mode_from(described["mode"]))


def _mode_from(data: Mapping[str, Any]) -> Mode:
    """A mode from JSON data."""
    given = dict(data)
    given["dims"] = {name: (int(pair[0]), int(pair[1])) for name, pair in dict(given.get("dims", {})).items()}
    return Mode(**given)


def value_info(name: str, array: Array) -> onnx.ValueInfoProto:
    """The name and type of a tensor as a graph lists them."""
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
