"""The PyTorch models of `torch_models.py`: of timm and transformers, random weights, batch 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TIMM = {
    "test_byobnet": 160, "test_coatnet": 160, "test_convnext": 160, "test_convnext2": 160, "test_convnext3": 160,
    "test_efficientnet": 160, "test_efficientnet_evos": 160, "test_efficientnet_gn": 160, "test_efficientnet_ln": 160,
    "test_mambaout": 160, "test_maxvit": 160, "test_nfnet": 160, "test_resnet": 160, "test_vit": 160, "test_vit2": 160,
    "test_vit3": 160, "test_vit4": 160, "test_vit_relpos": 160, "resnet18": 96, "resnet26d": 96, "mobilenetv2_050": 96,
    "mobilenetv3_small_050": 96, "mobilenetv4_conv_small_050": 96, "regnetx_002": 96, "regnety_002": 96, "vgg11": 64,
    "densenet121": 64, "ghostnet_100": 96, "mobileone_s0": 96, "repvgg_a0": 64, "mixer_s32_224": 224,
    "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224, "convmixer_768_32": 64, "poolformer_s12": 96,
    "edgenext_xx_small": 96, "mobilevit_xxs": 96, "levit_128s": 224, "pvt_v2_b0": 96, "fastvit_t8": 96,
    "efficientformer_l1": 224, "lcnet_035": 96, "resmlp_12_224": 224, "gmlp_ti16_224": 224, "xcit_nano_12_p16_224": 224,
    "swin_tiny_patch4_window7_224": 224,
}  # fmt: skip
"""Models of timm by name, and the side of their square images in pixels."""

TEXT: dict[str, dict[str, Any]] = {
    "Bert": {"intermediate_size": 64}, "Roberta": {"intermediate_size": 64}, "Electra": {"intermediate_size": 64},
    "DistilBert": {"dim": 32, "n_heads": 4, "n_layers": 2, "hidden_dim": 64}, "Albert": {"intermediate_size": 64},
    "MPNet": {"intermediate_size": 64}, "MobileBert": {"intermediate_size": 64, "intra_bottleneck_size": 32},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4}, "GPTNeoX": {"intermediate_size": 64},
    "Llama": {"intermediate_size": 64}, "Mistral": {"intermediate_size": 64, "num_key_value_heads": 2},
    "Qwen2": {"intermediate_size": 64, "num_key_value_heads": 2}, "OPT": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "Gemma": {"intermediate_size": 64, "num_key_value_heads": 2, "head_dim": 8}, "Phi": {"intermediate_size": 64},
    "Bloom": {"n_layer": 2, "n_head": 4}, "XGLM": {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64},
    "Deberta": {"intermediate_size": 64}, "RoFormer": {"intermediate_size": 64}, "Ernie": {"intermediate_size": 64},
    "ConvBert": {"intermediate_size": 64},
}  # fmt: skip
"""Models of transformers by the beginning of their classes' names, and what is small about each besides `SMALL`."""
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
LENGTH = 16
ZEROS = 0.05
"""The spread of parameters that timm sets to 0: biases, factors of layers, the last layer of some models."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A model and its inputs.

    Attributes:
        module: in evaluation mode.
        inputs: draws the inputs by a seed.
        named: arguments that stay the same.
    """

    module: Any
    inputs: Callable[[int], tuple[Any, ...]]
    named: dict[str, Any] = field(default_factory=dict)


def names() -> list[str]:
    """All models."""
    return [*(f"timm {name}" for name in TIMM), *(f"transformers {name}" for name in TEXT)]


def example(name: str) -> Example:
    """A model with random weights and its inputs."""
    import torch

    torch.manual_seed(0)
    library, _, model = name.partition(" ")
    if library == "timm":
        return _image_model(model)
    return _text_model(model)


def _image_model(name: str) -> Example:
    import timm
    import torch

    side = TIMM[name]
    module = timm.create_model(name, pretrained=False).eval()
    with torch.no_grad():
        for parameter in module.parameters():  # where a factor is 0 nothing before it would be compared
            if not parameter.any():
                parameter.normal_(std=ZEROS)

    def inputs(seed: int) -> tuple[Any, ...]:
        return (torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(seed)),)

    return Example(module=module, inputs=inputs)


def _text_model(name: str) -> Example:
    import torch
    import transformers

    config_class = getattr(transformers, f"{name}Config")
    config = config_class(**(SMALL | TEXT[name] | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}))
    module = getattr(transformers, f"{name}Model")(config).eval()

    def inputs(seed: int) -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(seed)
        return (torch.randint(3, SMALL["vocab_size"], (1, LENGTH), generator=generator),)

    return Example(module=module, inputs=inputs, named={"use_cache": False} if _has_cache(config) else {})


def _has_cache(config: Any) -> bool:
    return hasattr(config, "use_cache")
