"""A short run of the generator, and the failures that earlier runs found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from bench.fuzz import table, tree, write
from smartmem_rules.fuzzing.campaigns.answers import answer
from smartmem_rules.fuzzing.campaigns.campaign import Answer, answers_by_dask, answers_here, drawn_requests, run
from smartmem_rules.fuzzing.case import load_case
from smartmem_rules.fuzzing.judge import Verdict, judge
from smartmem_rules.fuzzing.requests import Request

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.onnx"))
FIRST_SEED = 1
MODELS = 200
PARTS = {"small": 3, "computed": 1, "controlled": 1, "listed": 1, "large": 1, "quantised": 1, "integer": 1}
"""Sources, and how many parts of the models each draws."""
TOGETHER = (("small", "computed"), ("controlled", "listed", "integer"), ("large", "quantised"))
"""Sources whose models one process judges: to start one and to make its first plan takes as long as ten models."""
SAMPLES = {"small": 3, "computed": 4, "listed": 4, "large": 2, "controlled": 3, "quantised": 3, "integer": 2}
"""How many models a part draws without `--all`."""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_kept_cases_are_right(path: Path) -> None:
    verdict = judge(load_case(path))
    assert verdict.kind == "right", verdict.detail


@pytest.mark.parametrize("sources", TOGETHER, ids="-".join)
def test_drawn_models_are_right(sources: tuple[str, ...], fresh_seeds: bool, examples: int, all_cases: bool) -> None:
    """What fails is reproduced by `python bench/fuzz.py --source SOURCE --seed SEED --count 1`."""
    each = (examples or MODELS) // sum(PARTS.values())
    first = int.from_bytes(os.urandom(4), "little") if fresh_seeds else FIRST_SEED
    requests: list[Request] = []
    for source in sources:
        count = each if examples or all_cases else min(each, SAMPLES[source])
        for part in range(PARTS[source]):
            requests += drawn_requests(source, first + part * each, count)
    # to start a process takes as long as a few models
    answers = list(answers_here(requests, jobs=1) if examples or all_cases else answers_of_this_process(requests))
    assert len(answers) == len(requests)
    for source in sources:
        summary = run([answer for answer in answers if answer.request["source"] == source], folder=None)
        failed = [f"{f.request} ({f.mode}) {f.verdict.kind}: {f.verdict.detail}" for f in summary.failures]
        assert not failed, "\n".join(failed)
        share = 0.8 if examples or all_cases else 0.4  # of few models, one that is refused is many
        assert summary.verdicts["right"] > share * summary.total > 0, summary.data()


def answers_of_this_process(requests: Iterable[Request]) -> Iterator[Answer]:
    """What a worker says of cases, without one."""
    for request in requests:
        said = answer(request, made=lambda: None)
        yield Answer(request, Verdict(**said["verdict"]), {"operators": said["operators"], "mode": said["mode"]})


def test_every_source_with_parts_is_drawn_once() -> None:
    assert sorted(source for sources in TOGETHER for source in sources) == sorted(PARTS) == sorted(SAMPLES)


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


def test_a_document_says_when_what_was_judged_and_of_which_tree(tmp_path: Path) -> None:
    summary = run([Answer({"source": "cut", "seed": 7}, Verdict("right"), {})], folder=None)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- fuzz cut -->\nthe run before\n<!-- end -->\nbehind\n")
    write(page, "cut", table(summary, "Cut models, seeds 7 to 7", "python bench/fuzz.py"))
    text = page.read_text()
    assert text.startswith("before\n<!-- fuzz cut -->\n**Cut models, seeds 7 to 7**, 20")
    assert text.endswith("`python bench/fuzz.py`\n<!-- end -->\nbehind\n")
    assert f", {tree()}: 1 models, " in text
    assert "the run before" not in text


def test_a_tree_is_named_by_its_commit() -> None:
    assert re.fullmatch(r"no commit|tree [0-9a-f]{7,40}( with changes)?", tree())


def test_each_mark_of_the_page_holds_a_result() -> None:
    page = (Path(__file__).parents[3] / "docs" / "fuzzing.md").read_text("utf-8")
    held = dict(re.findall(r"<!-- fuzz (\w+) -->\n(.*?)<!-- end -->", page, re.DOTALL))
    assert {"drawn", "cut"} <= set(held)
    assert [name for name, text in held.items() if "seeds " not in text or "`python bench/fuzz.py " not in text] == []
