"""Small language models, and what ONNX Runtime generates with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx

from bench.zoo.decoders import SHAPES, decoder

TIE = 1e-4
"""Logits that are nearer to each other may change places."""


@cache
def model_of(name: str) -> onnx.ModelProto:
    return decoder(SHAPES[name])


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What ONNX Runtime generates.

    Attributes:
        gaps: between the two greatest logits of each step.
    """

    tokens: list[int]
    gaps: list[float]

    def agrees(self, tokens: Sequence[int], tie: float = TIE) -> bool:
        """Whether tokens are these, up to the first tie."""
        for got, wanted, gap in zip(tokens, self.tokens, self.gaps, strict=True):
            if got != wanted:
                return gap < tie
        return True


def by_onnxruntime(
    model: onnx.ModelProto,
    prompt: Sequence[int],
    tokens: int,
    further: Mapping[str, Any] | None = None,
    with_past: onnx.ModelProto | None = None,
) -> Expected:
    """Greedy tokens of one sequence by ONNX Runtime without its optimizer, in a loop over past and present.

    Args:
        further: inputs that stay the same over the steps.
        with_past: takes the tokens behind the prompt, where the model takes the prompt alone.
    """
    session = session_of(model)
    later = session if with_past is None else session_of(with_past)
    cached: dict[str, Any] = {
        value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
        for value in session.get_inputs()
        if value.name.startswith("past_key_values.") and value.name not in (further or {})
    }
    past, given = 0, np.array([prompt], np.int64)
    found, gaps = [], []
    for _ in range(tokens):
        count = given.shape[1]
        feeds = {
            "input_ids": given,
            "attention_mask": np.ones((1, past + count), np.int64),
            "position_ids": np.arange(past, past + count)[None],
            "cache_position": np.arange(past, past + count),
            **cached,
            **(further or {}),
        }
        names = [value.name for value in session.get_outputs()]
        wanted = {value.name: feeds[value.name] for value in session.get_inputs()}
        outputs = dict(zip(names, session.run(None, wanted), strict=True))
        presents = {name: array for name, array in outputs.items() if name.startswith("present.")}
        cached |= {name.replace("present", "past_key_values"): array for name, array in presents.items()}
        session = later
        past += count
        logits = np.asarray(outputs["logits"])[0, -1]
        second, first = np.sort(logits)[-2:]
        found.append(int(logits.argmax()))
        gaps.append(float(first - second))
        given = np.array([[found[-1]]], np.int64)
    return Expected(tokens=found, gaps=gaps)


def session_of(model: onnx.ModelProto) -> Any:
    """A model in ONNX Runtime, without its optimizer."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
