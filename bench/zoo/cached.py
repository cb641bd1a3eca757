"""Exports language models of transformers with their cache, without weights: `python bench/zoo/cached.py`.

They are small ones, for the tests: what exporters write around attention and cache does not depend on the sizes. Needs
the extra `zoo`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from zoo.export import OPSET, export_named

LAYERS, WIDTH, HEADS, VOCABULARY = 2, 64, 4, 512
SEQUENCES, TOKENS, PAST = 2, 3, 5
"""What is traced: it must not matter."""
SPREAD = 0.2
"""The standard deviation of weights: greater than that of training's beginning, so that logits differ."""


@dataclass(frozen=True)
class Case:
    """A network, and how many heads its keys have."""

    make: Callable[[], nn.Module]
    kv_heads: int


class WithCache(nn.Module):
    """A network of the transformers package whose cache is a list of tensors."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.m = network

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(LAYERS):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        made = self.m(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        layers = made.past_key_values.layers
        return (made.logits, *(tensor for layer in layers for tensor in (layer.keys, layer.values)))


def pythia() -> nn.Module:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH, attn_implementation="eager", initializer_range=SPREAD,
    )  # fmt: skip
    return GPTNeoXForCausalLM(config)


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS // 2, intermediate_size=2 * WIDTH, attn_implementation="eager",
        initializer_range=SPREAD,
    )  # fmt: skip
    return LlamaForCausalLM(config)


MODELS = {"pythia_tiny": Case(pythia, HEADS), "llama_tiny": Case(llama, HEADS // 2)}


def main() -> int:
    """Export the models that are named, or all."""
    makers = {name: partial(exported, case) for name, case in MODELS.items()}
    return export_named(__doc__, makers, "examples/models/cached")


def exported(case: Case) -> onnx.ModelProto:
    """The ONNX graph of a network at random weights, with inputs and outputs named as optimum names them."""
    torch.manual_seed(0)
    cache = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    past = [torch.randn(SEQUENCES, case.kv_heads, PAST, WIDTH // HEADS) for _ in cache]
    positions = torch.arange(PAST, PAST + TOKENS).repeat(SEQUENCES, 1)
    inputs = (torch.ones_like(positions), torch.ones(SEQUENCES, PAST + TOKENS, dtype=torch.int64), positions, *past)
    tokens = {0: "batch_size", 1: "sequence_length"}
    whole = "past_sequence_length + sequence_length"
    axes = {
        "input_ids": tokens,
        "position_ids": tokens,
        "logits": tokens,
        "attention_mask": {0: "batch_size", 1: whole},
    }
    axes |= {f"past_key_values.{name}": {0: "batch_size", 2: "past_sequence_length"} for name in cache}
    axes |= {f"present.{name}": {0: "batch_size", 2: whole} for name in cache}
    file = io.BytesIO()
    torch.onnx.export(
        WithCache(case.make()).eval(), inputs, file, opset_version=OPSET,
        input_names=["input_ids", "attention_mask", "position_ids", *(f"past_key_values.{name}" for name in cache)],
        output_names=["logits", *(f"present.{name}" for name in cache)], dynamic_axes=axes, dynamo=False,
    )  # fmt: skip
    return onnx.load_from_string(file.getvalue())


if __name__ == "__main__":
    sys.exit(main())
