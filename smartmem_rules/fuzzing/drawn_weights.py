"""Weights of the choice of layouts other than the shipped ones: what they choose has to be right, too."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from smartmem_rules.resources import rules_path

LEVELS = ("layout", "smartmem")
"""Levels that choose layouts."""
LEVEL = "drawn"
_LAYOUT = "drawn_weights"
_WEIGHTS: dict[str, tuple[float, ...]] = {
    "scattered_read": (0.25, 1, 4, 50),
    "strided_read": (0.25, 1, 2, 50),
    "scattered_write": (0.01, 1, 2, 50),
    "copies": (1, 1, 1, 0),
    "copy_gain": (1e-6, 0.1, 1, 6),
    "sweeps": (0, 1, 4),
    "configurations": (1, 4, 48),
    "least_gain": (0, 1, 1e9),
    "further_kernels": (0, 2),
}
"""Those of each key that are drawn from: cheap, as shipped, dear."""


def write_weights(path: Path, level: str, seed: int) -> None:
    """A rule file with the level `drawn`, which is one of `LEVELS` with other weights.

    Args:
        seed: draws the weights.
    """
    random = np.random.default_rng(seed)
    keys = "".join(f"    {key} {random.choice(values):.15g};\n" for key, values in _WEIGHTS.items())
    text = (rules_path() / "levels.smr").read_text()
    found = re.search(rf"(?ms)^level {level} \{{(.*?)^\}}", text)
    assert found is not None, f"levels.smr has no level {level}"
    entries = re.sub(r"(?m)^    layout \w+;", f"    layout {_LAYOUT};", found[1])
    path.write_text(f"layout {_LAYOUT} {{\n{keys}}}\n\nlevel {LEVEL} {{{entries}}}\n")
