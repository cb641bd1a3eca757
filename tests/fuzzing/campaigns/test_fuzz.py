"""A short run of the generator, and the failures that earlier runs found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from smartmem_rules.fuzzing.campaigns.campaign import Answer, answers_by_dask, answers_here, drawn_requests, run
from smartmem_rules.fuzzing.case import load_case
from smartmem_rules.fuzzing.judge import Verdict, judge

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.onnx"))
FIRST_SEED = 1
MODELS = 200
PARTS = (
    ("small", 0), ("small", 1), ("small", 2), ("computed", 0), ("controlled", 0), ("listed", 0), ("large", 0),
    ("quantised", 0), ("integer", 0),
)  # fmt: skip
"""Sources of equally many models, each a test of its own, so that several processes share them."""
SAMPLES = {"small": 8, "computed": 8, "listed": 8, "large": 6, "controlled": 7, "quantised": 7, "integer": 5}
"""Of sources whose models take long or that have several parts, how many a part draws without `--all`."""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_kept_cases_are_right(path: Path) -> None:
    verdict = judge(load_case(path))
    assert verdict.kind == "right", verdict.detail


@pytest.mark.parametrize(("source", "part"), PARTS)
def test_drawn_models_are_right(source: str, part: int, fresh_seeds: bool, examples: int, all_cases: bool) -> None:
    """What fails is reproduced by `python bench/fuzz.py --source SOURCE --seed SEED --count 1`."""
    each = (examples or MODELS) // len(PARTS)
    first = int.from_bytes(os.urandom(4), "little") if fresh_seeds else FIRST_SEED
    count = each if examples or all_cases else min(each, SAMPLES.get(source, each))
    requests = drawn_requests(source, first + part * each, count)
    summary = run(answers_here(requests, jobs=1), folder=None)
    failed = [f"{f.request} ({f.mode}) {f.verdict.kind}: {f.verdict.detail}" for f in summary.failures]
    assert not failed, "\n".join(failed)
    assert summary.verdicts["right"] > 0.8 * summary.total, summary.data()


def test_without_a_device_nothing_is_drawn(tmp_path: Path) -> None:
    script = Path(__file__).parents[3] / "bench" / "fuzz.py"
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path / "none")}
    asked = [sys.executable, str(script), "--count", "100000"]
    run = subprocess.run(asked, env=environment, capture_output=True, text=True, timeout=100)
    assert run.returncode == 2
    assert run.stderr.startswith("this computer has no OpenCL device"), run.stderr


def test_an_interrupted_run_has_judged_what_it_has_judged() -> None:
    def answers() -> Iterator[Answer]:
        yield Answer({"source": "small", "seed": 1}, Verdict("right"), {})
        raise KeyboardInterrupt

    summary = run(answers(), folder=None)
    assert (summary.total, summary.interrupted) == (1, True)


def test_workers_of_a_cluster_judge_what_one_process_judges() -> None:
    distributed = pytest.importorskip("distributed")
    requests = drawn_requests("small", FIRST_SEED, 2)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        answers = list(answers_by_dask(requests, cluster.scheduler_address))
    assert [(a.request, a.verdict.kind) for a in answers] == [(request, "right") for request in requests]
