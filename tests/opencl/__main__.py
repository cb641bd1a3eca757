"""`python -m tests.opencl`: the correctness suite on each implementation of OpenCL, and a table of the results."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import xml.etree.ElementTree as tree
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.opencl.implementations import IMPLEMENTATIONS, Implementation
from tests.opencl.outcomes import Outcome, exit_code, table
from tests.opencl.places import ROOT, MissingError, command_of

_DESCRIBE = (
    "import json; from smartmem_rules.runtime.devices import devices; d = devices()[0]; "
    "print(json.dumps([d.platform, d.name, d.driver, [w.effect + ' ' + w.value for w in d.workarounds], "
    "d.refusal]))"
)
SECONDS = 1200
"""For one file of tests; a driver that takes longer hangs."""


def run_suite(one: Implementation, folder: Path, only: Sequence[str] = ()) -> Outcome:
    """All files of the suite and all models on an implementation, each in a process of its own."""
    outcome = Outcome(one.name)
    python = sys.executable
    try:
        described = _run(one, folder, [python, "-c", _DESCRIBE])
        lines = described.stdout.strip().splitlines()
        if described.returncode or not lines:
            said = described.stderr.strip().splitlines()
            raise MissingError(said[-1] if said else f"no device ({described.returncode})")
        outcome.platform, outcome.device, outcome.driver, outcome.workarounds, refusal = json.loads(lines[-1])
        if refusal:
            raise MissingError(f"its driver is refused: {refusal}")
    except MissingError as error:
        outcome.missing = str(error)
        return outcome
    for path in one.suite:
        if not only or any(word in path for word in only):
            _add_tests(outcome, one, folder, path)
    for model in one.models:
        if not only or model in only:
            command = [python, "-m", "smartmem_rules.cli", "optimize", f"examples/models/{model}.onnx", "--json"]
            done = _run(one, folder, command)
            if done.returncode:
                outcome.failed.append(f"{model} ({_ended(done.returncode)})")
            else:
                outcome.passed += 1
    return outcome


def run_command(names: Sequence[str], folder: Path, command: list[str]) -> int:
    """Run a command where it finds one implementation alone; its exit code, 2 where that is not to be had."""
    found = [one for one in IMPLEMENTATIONS if one.name in names]
    if len(found) != 1:
        print(f"name one of {', '.join(one.name for one in IMPLEMENTATIONS)}", file=sys.stderr)
        return 2
    try:
        whole, environment = command_of(found[0], folder, command)
    except MissingError as error:
        print(error, file=sys.stderr)
        return 2
    return subprocess.run(whole, env=environment, cwd=ROOT, check=False).returncode


def _add_tests(outcome: Outcome, one: Implementation, folder: Path, path: str) -> None:
    report = folder / f"{one.name}.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}"]
    done = _run(one, folder, [sys.executable, "-m", "pytest", path, *options])
    (folder / f"{one.name}-{Path(path).stem}.log").write_text(done.stdout + done.stderr)
    if not report.exists():
        outcome.failed.append(f"{path} ({_ended(done.returncode)})")
        return
    for case in tree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(f"{path}::{case.get('name')}")
        elif case.find("skipped") is not None:
            outcome.skipped += 1
        else:
            outcome.passed += 1


def _ended(status: int) -> str:
    if status == 124:
        return f"ended after {SECONDS} s"
    return f"ended by signal {-status if status < 0 else status - 128}" if status < 0 or status > 128 else "failed"


def _run(one: Implementation, folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    whole, environment = command_of(one, folder, ["timeout", str(SECONDS), *command])
    return subprocess.run(whole, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> None:
    """Run the suite and print the table; the exit code is 1 where an implementation that is here does not pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="implementations; all by default")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "opencl", help="where they are kept")
    parser.add_argument("--only", nargs="+", default=[], help="words in the paths of tests, or models")
    parser.add_argument("--json", type=Path, help="write the outcomes here, beside those of other implementations")
    parser.add_argument("--command", nargs=argparse.REMAINDER, help="run this, not the suite, on one implementation")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if given.command:
        sys.exit(run_command(given.names, folder, given.command))
    outcomes = []
    for one in IMPLEMENTATIONS:
        if given.names and one.name not in given.names:
            continue
        outcome = run_suite(one, folder, given.only)
        outcomes.append(outcome)
        print(f"{one.name}: {outcome.verdict}", flush=True)
        for name in outcome.failed:
            print(f"    {name}", flush=True)
        if given.json is not None:
            known = json.loads(given.json.read_text()) if given.json.exists() else {}
            given.json.write_text(json.dumps({**known, one.name: asdict(outcome)}, indent=1))
    print(f"\n{table(outcomes)}")
    sys.exit(exit_code(outcomes))


if __name__ == "__main__":
    main()
