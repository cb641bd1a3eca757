"""How well plans that test themselves find wrong kernels: planted miscompilations, and right kernels.

    python bench/self_test.py [NAME ...] [--faults 100] [--device pocl] [--seed 1] [--json build/self_test.json]

First the self-test of each model as it is: every finding would be a false alarm. Then faults are planted, each in the
text of one kernel as the OpenCL compiler sees it (tests/runtime/selftest/faults.py), drawn over models, kernels, kinds
and places. A fault counts that changes an output of the whole model for random inputs by more than `WRONG` of its
largest element: the others are none, or nobody could see them. One that stops the process cannot be missed, and is
drawn again; so is one whose kernel does not compile. `--write docs/self_test.md` puts the tables there. With `--c`
libsmartmem is asked instead: each fault goes into the text of a plan file, which it opens. Exit code 1 if a fault was
missed or a right kernel accused.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from markdown_tables import markdown, replace_table
from networks import path

from smartmem_rules import optimize
from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.plan.probe import Probe
from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.plan_file import save_plan
from smartmem_rules.runtime.programs.compiling import BuildError, Programs
from smartmem_rules.runtime.selftest.testing import asker_of, self_test
from tests.runtime.c.library import CError, open_plan
from tests.runtime.selftest.faults import FAULTS, changed

WRONG = 1e-4
"""The error relative to the largest magnitude from which on outputs are wrong (docs/checking.md)."""
MODELS = ("mobilenetv2", "swin_tiny", "convnext_tiny", "mmoe", "regnetx_032", "llama_block")
SECONDS = 300
WRONG_KERNEL = 16
"""The status of a plan with a wrong kernel that nothing replaces."""
TABLE = "self_test"


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One fault.

    Attributes:
        error: of the model's outputs, relative to the largest; infinite where they are no numbers.
        found: whether the self-test says so.
        refused: why it does not count.
    """

    model: str
    kernel: str = ""
    kind: str = ""
    error: float = 0.0
    found: bool = False
    said: str = ""
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The self-test of a model as it is."""

    model: str
    device: str
    kernels: int
    unasked: int
    exact: int
    false_alarms: int
    seconds: float


class Subject:
    """A model on a device, one of whose kernels can be exchanged."""

    def __init__(self, name: str, device: str, by_c: bool) -> None:
        self.name = name
        self.by_c = by_c
        plan = optimize(path(name), device=device, probes=True)
        self.executor: Executor = plan.prepare()
        self.plan = self.executor.plan
        self.feeds = plan.random_feeds()
        self.right = self.executor.run(self.feeds)

    def plain(self) -> Plain:
        """The self-test, when the kernels have been compiled."""
        report = self_test(self.executor)
        start = time.perf_counter()
        said = self._said_by_c(self.plan) if self.by_c else ""
        seconds = time.perf_counter() - start if self.by_c else report.seconds
        kernels = {probe.launches for probe in self.plan.probes}
        exact = sum(all(a.bound == 0 for probe in self._of(one) for a in probe.answers) for one in kernels)
        return Plain(
            model=self.name,
            device=report.device,
            kernels=report.asked,
            unasked=report.unasked,
            exact=exact,
            false_alarms=len(said.splitlines()) if self.by_c else len(report.findings),
            seconds=seconds,
        )

    def planted(self, seed: int) -> Planted:
        """A fault of a seed."""
        random_ = random.Random(seed)
        launches = random_.choice(sorted({probe.launches for probe in self.plan.probes}))
        kind = random_.choice(list(FAULTS))
        enqueue = self.plan.enqueues[launches[0]]
        about: dict[str, Any] = {"model": self.name, "kernel": enqueue.launch.name, "kind": kind}
        text = changed(enqueue.source.text, kind, random_)
        if text is None:
            return Planted(**about, refused="no place")
        source = replace(enqueue.source, text=text)
        try:
            error = self._error(launches, source)
        except BuildError:
            return Planted(**about, refused="does not compile")
        if not error > WRONG:
            return Planted(**about, refused="no effect")
        if self.by_c:
            said = self._said_by_c(self._with(launches, source))
        else:
            said = "; ".join(str(one) for one in asker_of(self.executor).of_other(self._of(launches), source))
        return Planted(**about, error=error, found=bool(said), said=said)

    def _with(self, launches: tuple[int, ...], source: Source) -> Plan:
        """The plan with another text in some launches, and nothing that could run instead."""
        enqueues = list(self.plan.enqueues)
        for number in launches:
            own = enqueues[number]
            enqueues[number] = replace(own, source=replace(own.source, text=source.text), spares=())
        return replace(self.plan, enqueues=enqueues)

    def _said_by_c(self, plan: Plan) -> str:
        """What libsmartmem says of a plan's kernels when it opens the plan; empty: all are right."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.plan"
            save_plan(plan, file)
            try:
                with open_plan(file, device=self.executor.device.place, self_test=1) as opened:
                    return str(opened.self_test)
            except CError as error:
                if error.status != WRONG_KERNEL:
                    raise
                return str(error.text)

    def _of(self, launches: tuple[int, ...]) -> list[Probe]:
        return [probe for probe in self.plan.probes if probe.launches == launches]

    def _error(self, launches: tuple[int, ...], source: Source) -> float:
        """How far the outputs are from the right ones with another kernel in some launches."""
        built = self.executor.built
        programs = Programs(built.context, built.device, [source], [source.entry])
        with self.executor._contexts.taken() as context:
            before = context._made
            context._made = list(before)
            for number in launches:
                own = replace(self.plan.enqueues[number].source, text=source.text)
                name = self.plan.enqueues[number].launch.name
                context._made[number] = context._launch(replace(built, programs=programs), name, own)
            context.set_extents({}, anew=True)
            try:
                return _apart(context.run(self.feeds, {}), self.right)
            finally:
                context._made = before
                context.set_extents({}, anew=True)


def _apart(found: Mapping[str, Any], right: Mapping[str, Any]) -> float:
    errors = [0.0]
    for name, array in right.items():
        largest = float(np.abs(array.astype(np.float64)).max(initial=0.0))
        apart = np.abs(found[name].astype(np.float64) - array.astype(np.float64))
        errors.append(float("inf") if not np.isfinite(apart).all() else float(apart.max(initial=0.0)) / (largest or 1))
    return max(errors)


def work(name: str, device: str, by_c: bool, ends: Connection) -> None:
    """A process that has one model: gives its self-test, then for each seed what became of its fault."""
    subject = Subject(name, device, by_c)
    ends.send(subject.plain())
    while (seed := ends.recv()) is not None:
        ends.send(subject.planted(seed))


class Worker:
    """Such a process, which faults may stop; it is begun again then."""

    def __init__(self, name: str, device: str, by_c: bool) -> None:
        self.name, self.device, self.by_c = name, device, by_c
        self.plain = self._begin()

    def _begin(self) -> Plain:
        spawn = multiprocessing.get_context("spawn")
        self._ends, far = spawn.Pipe()
        self._process = spawn.Process(target=work, args=(self.name, self.device, self.by_c, far), daemon=True)
        self._process.start()
        far.close()
        found: Plain = self._ends.recv()
        return found

    def planted(self, seed: int) -> Planted:
        """What became of the fault of a seed."""
        try:
            self._ends.send(seed)
            if self._ends.poll(SECONDS):
                found: Planted = self._ends.recv()
                return found
        except (EOFError, OSError):
            pass
        self.end()
        self._begin()
        return Planted(model=self.name, refused="stops the process")

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.join()


def main() -> int:
    """Measure, print or write; 1 if something was missed or accused wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--c", action="store_true", help="by libsmartmem, which opens a plan with each fault")
    parser.add_argument("--json", type=Path, default=Path("build/self_test.json"))
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    plain: list[Plain] = []
    planted: list[Planted] = []
    share = -(-arguments.faults // len(arguments.models))
    for number, name in enumerate(arguments.models):
        worker = Worker(name, arguments.device, arguments.c)
        plain.append(worker.plain)
        print(worker.plain, flush=True)
        seed = 1_000_000 * arguments.seed + 10_000 * number
        counted = 0
        while counted < min(share, arguments.faults - sum(not one.refused for one in planted if one.model != name)):
            one = worker.planted(seed)
            print(seed, one, flush=True)
            planted.append(one)
            counted += not one.refused
            seed += 1
        worker.end()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    data = {"plain": [asdict(one) for one in plain], "planted": [asdict(one) for one in planted]}
    arguments.json.write_text(json.dumps(data, indent=1))
    text = table(plain, planted)
    if arguments.write is None:
        print(text)
    else:
        replace_table(arguments.write, TABLE, text)
    missed = [one for one in planted if not one.refused and not one.found]
    return int(bool(missed) or any(one.false_alarms for one in plain))


def table(plain: list[Plain], planted: list[Planted]) -> str:
    """What was found, by model and by kind of fault."""
    counted = [one for one in planted if not one.refused]
    rows = [
        [
            one.model, str(one.kernels), str(one.exact), str(one.unasked), f"{one.seconds:.2f}",
            str(one.false_alarms), f"{sum(f.found for f in counted if f.model == one.model)} of "
            f"{sum(f.model == one.model for f in counted)}",
        ]
        for one in plain
    ]  # fmt: skip
    header = "model | kernels asked | exact | launches not asked | seconds | false alarms | faults found"
    kinds = Counter(one.kind for one in counted)
    found = Counter(one.kind for one in counted if one.found)
    by_kind = [[kind, str(count), str(found[kind])] for kind, count in kinds.most_common()]
    refused = Counter(one.refused for one in planted if one.refused)
    others = ", ".join(f"{count} {reason}" for reason, count in refused.most_common())
    return "\n".join(
        [
            f"On {plain[0].device.split(', OpenCL')[0]}):",
            "",
            markdown(header, rows),
            "",
            markdown("fault | planted | found", by_kind),
            "",
            f"{sum(one.found for one in counted)} of {len(counted)} found. Drawn and not counted: {others or 'none'}.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
