"""What became of a model that was quantized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field

from smartmem_rules.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A product whose weight was quantized.

    Attributes:
        node: its name in the model.
        weight: the tensor that was quantized.
        bytes_before, bytes_after: of the weight; scales and zero points included.
        weight_error: the norm of what the weight lost, relative to its own.
        output_error: the same of the product with the left factor that the model itself gives it; None where it did
            not run.
    """

    node: str
    weight: str
    depth: int
    columns: int
    bytes_before: int
    bytes_after: int
    weight_error: float
    output_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class OutputError:
    """How far an output of the quantized model is from the model's own.

    Attributes:
        relative: the norm of the difference, relative to the output's own.
        largest: the largest difference, relative to the output's largest magnitude.
    """

    output: str
    relative: float
    largest: float


@dataclass(frozen=True, kw_only=True)
class Report:
    """What `smartmem quantize --json` prints.

    Attributes:
        form: `matmulnbits` or `qdq`.
        left: nodes with a constant factor that stay as they are, each with the reason.
        reference: what ran both models; empty where nothing did.
        random_inputs: the inputs that were drawn from `seed`.
        bytes_before, bytes_after: of all initializers.
    """

    weights: str
    block: int
    form: str
    layers: tuple[Layer, ...]
    left: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""
    seed: int = 0
    random_inputs: tuple[str, ...] = ()
    outputs: tuple[OutputError, ...] = ()
    bytes_before: int
    bytes_after: int
    seconds: float

    def data(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)
