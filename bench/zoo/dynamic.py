"""Exports transformers with open dimensions, without weights: `python bench/zoo/dynamic.py -o examples/models/dynamic`.

BERT and Pythia take sequences of any length, the encoder of Whisper (whose positions are fixed) batches of any size.
Needs the extra `zoo`.
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

EXPORTED_LENGTH = 13
"""Of the sequence that is traced: it must not matter."""


@dataclass(frozen=True)
class Case:
    """A network, its inputs, and the names of their axes that stay open."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, torch.Tensor]]
    axes: dict[int, str]


class First(nn.Module):
    """The first result of a network of the transformers package."""

    def __init__(self, network: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.m = network
        self.names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.m(**dict(zip(self.names, inputs, strict=True)), return_dict=False)[0]
        return result


def bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    network = BertModel(BertConfig(attn_implementation="eager"), add_pooling_layer=False)
    return First(network, ("input_ids", "attention_mask", "token_type_ids"))


def pythia() -> nn.Module:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    config = GPTNeoXConfig(
        vocab_size=50304,
        hidden_size=512,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=2048,
        attn_implementation="eager",
        use_cache=False,
    )
    return First(GPTNeoXForCausalLM(config), ("input_ids", "attention_mask"))


def whisper() -> nn.Module:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=384,
        encoder_layers=4,
        encoder_attention_heads=6,
        encoder_ffn_dim=1536,
        attn_implementation="eager",
    )
    return First(WhisperEncoder(config), ("input_features",))


def tokens(count: int) -> dict[str, torch.Tensor]:
    """Token numbers, and a mask and segment numbers where `count` asks for them."""
    names = ("input_ids", "attention_mask", "token_type_ids")[:count]
    return {name: torch.ones(2, EXPORTED_LENGTH, dtype=torch.int64) for name in names}


SEQUENCES = {0: "batch", 1: "sequence"}
MODELS = {
    "bert_base": Case(bert, lambda: tokens(3), SEQUENCES),
    "pythia_70m": Case(pythia, lambda: tokens(2), SEQUENCES),
    "whisper_tiny_encoder": Case(whisper, lambda: {"input_features": torch.randn(2, 80, 3000)}, {0: "batch"}),
}


def main() -> int:
    """Export the models that are named, or all."""
    makers = {name: partial(exported, case) for name, case in MODELS.items()}
    return export_named(__doc__, makers, "examples/models/dynamic")


def exported(case: Case) -> onnx.ModelProto:
    """The ONNX graph of a network at random weights."""
    torch.manual_seed(0)
    inputs = case.inputs()
    file = io.BytesIO()
    torch.onnx.export(
        case.make().eval(),
        tuple(inputs.values()),
        file,
        opset_version=OPSET,
        input_names=list(inputs),
        output_names=["output"],
        dynamic_axes={name: case.axes for name in (*inputs, "output")},
        dynamo=False,
    )
    return onnx.load_from_string(file.getvalue())


if __name__ == "__main__":
    sys.exit(main())
