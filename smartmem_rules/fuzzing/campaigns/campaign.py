"""Many cases on several processes, what failed made small and kept, and the summary of it all."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from smartmem_rules.fuzzing.campaigns.answers import case_of
from smartmem_rules.fuzzing.campaigns.worker import SECONDS, Worker
from smartmem_rules.fuzzing.case import Case
from smartmem_rules.fuzzing.judge import CRASH, HANG, Verdict
from smartmem_rules.fuzzing.reduction import Reducer
from smartmem_rules.fuzzing.requests import Extras, Request
from smartmem_rules.records import dataclass


@dataclass(frozen=True)
class Failure:
    """A case that failed.

    Attributes:
        request: what makes the case again.
        kept: the reduced case, where it was reduced.
    """

    request: Request
    verdict: Verdict
    mode: str
    kept: str = ""


@dataclass(kw_only=True)
class Summary:
    """What became of the cases of a run, and of which operators they were made."""

    verdicts: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    processor_seconds: float = 0.0
    wall_seconds: float = 0.0
    interrupted: bool = False

    @property
    def total(self) -> int:
        return self.verdicts.total()

    def add(self, answer: Answer) -> None:
        """Count one case."""
        verdict = answer.verdict
        self.verdicts[verdict.kind] += 1
        self.operators.update(answer.extras.get("operators", ()))
        self.modes[str(answer.extras.get("mode", "?")).partition("/")[0]] += 1
        self.processor_seconds += verdict.seconds
        if verdict.kind == "refused":
            self.refusals[refusal_kind(verdict.detail)] += 1

    def data(self) -> dict[str, object]:
        """JSON data."""
        return {
            "total": self.total,
            "verdicts": dict(self.verdicts),
            "levels": dict(self.modes),
            "operators": dict(self.operators.most_common()),
            "refusals": dict(self.refusals.most_common()),
            "processor_seconds": round(self.processor_seconds, 1),
            "wall_seconds": round(self.wall_seconds, 1),
            "failures": [
                {
                    "request": f.request,
                    "mode": f.mode,
                    "kind": f.verdict.kind,
                    "detail": f.verdict.detail,
                    "kept": f.kept,
                }
                for f in self.failures
            ],
        }


@dataclass(frozen=True)
class Answer:
    """A judged case: the request that made it, and what the worker said beside the verdict."""

    request: Request
    verdict: Verdict
    extras: Extras


def refusal_kind(message: str) -> str:
    """A refusal without its places and names, for counting."""
    lines = message.strip().splitlines() or [""]
    line = lines[1].strip() if len(lines) > 1 and "cannot be imported" in lines[0] else lines[0]
    return line[:110]


def drawn_requests(source: str, first: int, count: int) -> list[Request]:
    """The cases of a source for consecutive seeds."""
    return [{"source": source, "seed": seed} for seed in range(first, first + count)]


def file_requests(folder: Path, first: int, count: int) -> list[Request]:
    """The models of a folder, each with a drawn mode."""
    files = sorted(folder.glob("*.onnx"))[:count]
    return [{"file": str(path), "seed": first + place} for place, path in enumerate(files)]


def answers_here(requests: Iterable[Request], jobs: int, seconds: float = SECONDS) -> Iterator[Answer]:
    """Judge cases on some processes of this computer, in the order in which they get ready."""
    waiting = iter(requests)
    lock, ready = threading.Condition(), list[Answer]()
    open_threads = jobs

    def work() -> None:
        nonlocal open_threads
        with Worker(seconds) as worker:
            while True:
                with lock:
                    request = next(waiting, None)
                if request is None:
                    break
                verdict, extras = worker.ask(request)
                with lock:
                    ready.append(Answer(request, verdict, extras))
                    lock.notify()
        with lock:
            open_threads -= 1
            lock.notify()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    while True:
        with lock:
            while not ready and open_threads:
                lock.wait()
            some, ready[:] = list(ready), []
            finished = not some and not open_threads
        if finished:
            return
        yield from some


def answers_by_dask(requests: Sequence[Request], scheduler: str, seconds: float = SECONDS) -> Iterator[Answer]:
    """Judge cases on the workers of a Dask scheduler, each of which starts a process of its own for them.

    Args:
        scheduler: its address, `tcp://HOST:PORT`; the workers have this package installed.
    """
    from distributed import Client, as_completed

    batches = [list(requests[k : k + 20]) for k in range(0, len(requests), 20)]
    with Client(scheduler) as client:  # type: ignore[no-untyped-call]
        submitted = [client.submit(_batch, batch, seconds, pure=False) for batch in batches]
        for future in as_completed(submitted):  # type: ignore[no-untyped-call]
            yield from future.result()


def _batch(requests: Sequence[Request], seconds: float) -> list[Answer]:
    return list(answers_here(requests, 1, seconds))


def run(
    answers: Iterable[Answer],
    folder: Path | None,
    told: Callable[[Summary], None] = lambda summary: None,
    until: float = float("inf"),
) -> Summary:
    """Count answers; reduce and keep what failed.

    Args:
        folder: where failures go; None reduces nothing.
        told: is called after each case.
        until: the time (`time.monotonic`) at which to stop.
    """
    summary, begin = Summary(), time.monotonic()
    try:
        for answer in answers:
            summary.add(answer)
            if answer.verdict.failed:
                kept = "" if folder is None else str(keep(answer, folder))
                mode = str(answer.extras.get("mode", ""))
                summary.failures.append(Failure(answer.request, answer.verdict, mode, kept))
            summary.wall_seconds = time.monotonic() - begin
            told(summary)
            if time.monotonic() > until:
                break
    except KeyboardInterrupt:  # what was judged so far is a result, too
        summary.interrupted = True
    return summary


def keep(answer: Answer, folder: Path, tries: int = 120) -> Path:
    """Write the smallest case that fails as this one did; where making it small fails, the case itself."""
    with Worker() as worker:
        if answer.verdict.kind in (CRASH, HANG):
            # what ends a process may also end the one that draws the case
            verdict, _ = worker.ask({**answer.request, "save": str(folder / "whole")})
            if verdict.failed:
                path = folder / f"undrawn-{answer.request.get('seed', 0)}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"request": answer.request, "verdict": answer.verdict.detail}))
                return path
        case = case_of(answer.request)
        small, verdict = reduced(case, answer.verdict, worker, tries)
        line = f"{answer.verdict.kind}, from {json.dumps(answer.request)}; now {verdict.detail}"
        return small.save(folder, line)


def reduced(case: Case, verdict: Verdict, worker: Worker, tries: int) -> tuple[Case, Verdict]:
    """The smallest case that still fails in the same way, with its verdict."""
    small = Reducer(lambda c: worker.judge_case(c).same_failure(verdict), tries).reduce(case)
    return small, worker.judge_case(small)
