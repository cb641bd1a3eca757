"""Other systems as contenders: a process for each, started once for each model, checked before it is measured."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_rules.benchmarking.peer_systems import SYSTEMS
from smartmem_rules.errors import SmartmemError

Array = np.ndarray[Any, np.dtype[Any]]


class PeerError(SmartmemError):
    """A system is missing, or does not take a model; the message says which, and what to do."""


def missing(name: str) -> str | None:
    """What to install for a system; None where it is here."""
    absent = [package for package in SYSTEMS[name][1] if importlib.util.find_spec(package) is None]
    return f"{name} needs {' and '.join(absent)}: pip install {' '.join(absent)}" if absent else None


class Peer:
    """A system that has loaded a model, in a process of its own.

    Args:
        model: the path of an ONNX file with all its weights.
        device: the OpenCL device to take, where the system can.

    Raises:
        PeerError: the system is missing or does not take the model.
    """

    def __init__(self, name: str, model: str, feeds: Mapping[str, Array], threads: int, device: str) -> None:
        reason = missing(name)
        if reason is not None:
            raise PeerError(reason)
        self.name = name
        self._folder = tempfile.TemporaryDirectory(prefix="smartmem-peer-")
        folder = Path(self._folder.name)
        np.savez(folder / "inputs.npz", **dict(feeds))  # type: ignore[arg-type]
        self._errors = open(folder / "errors", "w+b")  # noqa: SIM115 - it lives as long as the process
        command = [sys.executable, "-m", "smartmem_rules.benchmarking.peer_systems", name, model]
        command += [str(folder / "inputs.npz"), str(folder / "outputs.npz"), str(threads), device]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment
        )
        try:
            hello = json.loads(self._answer())
        except BaseException:
            self.close()
            raise
        self.device: str = hello["device"]
        self.kernels: int | None = hello["kernels"]
        with np.load(folder / "outputs.npz") as archive:
            self.outputs = {output: archive[f"arr_{i}"] for i, output in enumerate(hello["outputs"])}

    def run(self) -> float:
        """One inference; its milliseconds as the other process saw them."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("run\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the answer tells why
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()
        self._folder.cleanup()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            last = said[-1] if said else f"it ended with code {self._process.returncode}"
            raise PeerError(f"{self.name} does not run this model: {last}")
        return line
