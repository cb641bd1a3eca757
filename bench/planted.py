"""How well checks tell rounding from error: right outputs, and outputs with planted errors, of generated models.

    python bench/planted.py [--seeds 20]

Prints for each kind of model how many right outputs (ONNX Runtime without graph optimizations, and our plans in single
and half precision) and how many wrong ones pass, fail or are undecided, the widest bound relative to the output's
largest element, and the largest share of its bound that a right output's error takes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from smartmem_rules.api import optimize
from smartmem_rules.checking.compare import Comparer
from tests.checking.models import ILL, WELL, Net, drawn, planted, runtime

STATES = (True, None, False)


def measure(kind: Callable[[Net], str], seeds: int) -> str:
    """One row of the table."""
    right: Counter[bool | None] = Counter()
    wrong: Counter[bool | None] = Counter()
    bound = share = 0.0
    for seed in range(seeds):
        model, feeds, output = drawn(kind, seed)
        comparer = Comparer(model)
        exact = runtime(model, feeds, optimized=False)
        made = [("float32", exact)]
        made += [(dtype, optimize(model, dtype=dtype).run(feeds)[output]) for dtype in ("float32", "float16")]
        for dtype, array in made:
            verdict = comparer.compare(feeds, {output: array}, dtype)
            right[verdict.passed] += 1
            bound = max(bound, verdict.bound or 0.0) if dtype == "float32" else bound
            share = max(share, verdict.error_to_bound or 0.0)
        for _, array in planted(exact, np.random.default_rng(seed)):
            wrong[comparer.compare(feeds, {output: array}).passed] += 1
    counts = [" / ".join(str(counter[state]) for state in STATES) for counter in (right, wrong)]
    return f"| {kind.__name__} | {counts[0]} | {counts[1]} | {bound:.1e} | {share:.2f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    print("| model | right: passed / undecided / failed | wrong: passed / undecided / failed | bound | error / bound |")
    print("|---|---|---|---:|---:|")
    for kind in (*WELL, *ILL):
        print(measure(kind, seeds), flush=True)


if __name__ == "__main__":
    main()
