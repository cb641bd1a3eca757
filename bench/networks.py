"""The models that the figures are about: the paper's 18 networks and others, and what is asked of their kernels."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "models"

PAPER = (
    "autoformer_s3", "biformer_tiny", "crossformer_s", "cswin_tiny", "efficientvit_b3", "flatten_swin_tiny", "smt_tiny",
    "swin_tiny", "vit_base", "conformer", "sd_text_encoder", "sd_unet", "sd_vae_decoder", "pythia_1b", "convnext_tiny",
    "regnetx_032", "resnext50", "yolov8n",
)  # fmt: skip
"""The networks of SmartMem's tables."""

OTHERS = ("bert_base", "efficientnet_b0", "lstm10", "mmoe", "mobilenetv2", "resnet50")

KERNELS = {
    "swin_tiny": (110, 60), "vit_base": (80, 50), "convnext_tiny": (81, 45), "resnext50": (55, 40),
    "regnetx_032": (82, 60), "efficientvit_b3": (101, 80), "conformer": (246, 150), "sd_text_encoder": (84, 50),
    "sd_unet": (322, 200), "sd_vae_decoder": (95, 80), "pythia_1b": (130, 70), "autoformer_s3": (148, 80),
    "crossformer_s": (155, 90), "cswin_tiny": (331, 170), "biformer_tiny": (237, 150), "flatten_swin_tiny": (130, 90),
    "smt_tiny": (164, 100), "yolov8n": (68, 60), "bert_base": (70, 24), "efficientnet_b0": (100, 66),
    "lstm10": (20, 1), "mmoe": (20, 1), "mobilenetv2": (55, 40),
}  # fmt: skip
"""Kernels of one inference: what is asked at least, and what is reached for."""

LARGEST_LAST = ("sd_text_encoder", "conformer", "cswin_tiny", "sd_vae_decoder", "sd_unet", "pythia_1b")


def named(names: list[str]) -> list[str]:
    """The models of a command line, all of them if it names none; the largest come last."""
    chosen = names or [*OTHERS, *PAPER]
    return sorted(chosen, key=lambda n: LARGEST_LAST.index(n) if n in LARGEST_LAST else -1)


def path(name: str) -> Path:
    """The file of a model."""
    return FOLDER / f"{name}.onnx"
