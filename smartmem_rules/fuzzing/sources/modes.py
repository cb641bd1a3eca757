"""How a drawn model is planned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smartmem_rules.fuzzing import drawn_weights
from smartmem_rules.fuzzing.case import LEVELS, Mode

_PROFILES = ("auto", "auto", "auto", "auto", "auto", "adreno_740", "nvidia")
"""Device profiles whose kernels run on a CPU, too, for which most plans are made here."""

_UNITS = ("", "8.0", "9.0")
"""Compute capabilities whose matrix units are emulated for plans of NVIDIA's profile."""
_CORES = (0, 0, 1, 1, 4, 64)
"""Compute units that plans for CPUs are made for; 0 stands for the computer's own."""
_WITH_DRAWN_SIZES = 0.2
"""Of the plans."""
_WITH_DRAWN_WEIGHTS = 0.1
"""Of the plans whose level chooses layouts; their sizes are the cost model's."""


def draw_mode(random: np.random.Generator) -> Mode:
    """A level, a memory, an element type and a device; the default plan most often."""
    level = str(random.choice(LEVELS, p=(0.12, 0.12, 0.12, 0.12, 0.52)))
    device = str(random.choice(_PROFILES))
    memory = str(random.choice(("auto", "buffer", "image"), p=(0.4, 0.3, 0.3)))
    if device == "nvidia":
        memory = "auto"
    mode = Mode(
        level=level,
        memory=memory,
        dtype=str(random.choice(("float32", "float16", "bfloat16"), p=(0.8, 0.13, 0.07))),
        device=device,
        debug=bool(random.random() < 0.15),
        units=str(random.choice(_UNITS)) if device == "nvidia" else "",
        sizes=int(random.integers(1, 1 << 30)) if random.random() < _WITH_DRAWN_SIZES else 0,
        cores=int(random.choice(_CORES)) if device == "auto" else 0,
    )
    if level in drawn_weights.LEVELS and random.random() < _WITH_DRAWN_WEIGHTS:
        return replace(mode, sizes=0, weights=int(random.integers(1, 1 << 30)))
    return mode


def texture_mode(random: np.random.Generator) -> Mode:
    """A plan for a GPU whose tensors lie in images, most often all of those that can."""
    return replace(
        draw_mode(random),
        device="adreno_740",
        memory=str(random.choice(("image", "image", "auto"))),
        dtype=str(random.choice(("float32", "float32", "float16"))),
        units="",
    )
