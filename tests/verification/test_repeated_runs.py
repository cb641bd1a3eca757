"""A seed says all that a verification draws: hashes of texts, which differ between processes, decide nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

LONG = ("concat_of_consecutive_slices", "cyclic_shift")
"""Rules whose instances take seconds to find."""


@pytest.mark.parametrize(
    "name", ["batch_normalization_into_conv", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in LONG)]
)
def test_runs_of_one_seed_draw_the_same_in_every_process(name: str) -> None:
    ask = [sys.executable, "-m", "smartmem_rules.cli", "verify", "--rule", name, "--trials", "20", "--json"]
    found = []
    for hashes in ("0", "1"):
        run = subprocess.run(
            ask, env={**os.environ, "PYTHONHASHSEED": hashes}, capture_output=True, text=True, check=True
        )
        (rule,) = json.loads(run.stdout)["rules"]
        found.append({name: value for name, value in rule.items() if name != "seconds"})
    assert found[0]["verdict"] == "tested"
    assert found[0] == found[1]
