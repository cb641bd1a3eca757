"""Runs the blocks of a page in a folder of their own, and compares what they print with what the page shows."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, Block

LINKED = ("bench", "examples", "rules", "runtime", "smartmem_rules", "tests")
"""What the commands of the documents name, as if they were called in a checkout."""
_SECONDS = 900


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of a `console` block with what the page shows of its output."""

    command: str
    shown: str


def skip_where_missing(needed: Iterable[str]) -> None:
    """Skip the test if a program or a module is not here."""
    for name in needed:
        if shutil.which(name) is None and importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}, which is not installed here")


def run_blocks(blocks: Iterable[Block], folder: Path) -> None:
    """Run blocks in a folder in their order; Python blocks share their names."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        if "file" in block.notes:
            (folder / block.notes["file"]).write_text(block.text, "utf-8")
        elif block.language == "python":
            exec(compile(block.code, block.place, "exec"), names)
        elif block.language == "console" and "instead" not in block.notes:
            run_shell(block.notes.get("first", ""), folder, block.place)
            for step in steps(block.text):
                compare(step, run_shell(step.command, folder, block.place), block.place)
        else:
            run_shell(block.code, folder, block.place)


def run_shell(script: str, folder: Path, place: str) -> str:
    """What a script prints; an error in it fails the test, and what it exports is there for the next one."""
    exports = folder / ".exports"
    before = f". {exports}\n" if exports.exists() else ""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{before}trap 'export -p > {exports}' EXIT\n{script}"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"{place}: exit code {done.returncode} of\n{script}\n{done.stdout}"
    return done.stdout


def environment() -> dict[str, str]:
    """The tests' Python and this checkout come first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    modules = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PATH": path, "PYTHONPATH": modules, "COLUMNS": "120"}


def steps(text: str) -> Iterator[Step]:
    """The commands of a `console` block: `$` begins each, and a line that ends with a backslash goes on."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        lines = part.splitlines()
        end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
        yield Step(command="\n".join(lines[:end]), shown="\n".join(lines[end:]))


def compare(step: Step, printed: str, place: str) -> None:
    """What is shown has to be printed, up to the breaks of lines; `...` stands for anything."""
    wanted = ".*?".join(re.escape(" ".join(part.split())) for part in re.split(r"\s*\.\.\.\s*", step.shown.strip()))
    found = " ".join(printed.split())
    assert re.fullmatch(wanted.replace(".*?", r"\s?.*?\s?"), found), (
        f"{place}: `{step.command}` prints\n{printed}\nand the page shows\n{step.shown}"
    )
