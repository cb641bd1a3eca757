"""The time of each launch of a plan, and of the models of their nodes in other systems, in turns."""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import node_peers
import numpy as np
import onnx
import pyopencl as cl
from node_models import Piece
from onnx import TensorProto, helper
from served import NAMES, PAUSE, Refused, Served, timed

from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.feeds import Array

PEERS = NAMES[1:]
Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How times are taken.

    Attributes:
        threads: of each system; with one the time of the processor counts, with more the clock.
        folder: for models and inputs.
    """

    threads: int
    turns: int
    folder: Path

    @property
    def clock(self) -> Clock:
        """What tells the seconds."""
        return time.process_time if self.threads == 1 else time.perf_counter

    def served(self, name: str, model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Served | Refused]:
        """The other systems, each with a model in a process of its own, or with the reason why it does not run it."""
        path, inputs = self.folder / f"{name}.onnx", self.folder / f"{name}.npz"
        onnx.save(model, str(path))
        np.savez(inputs, **dict(feeds))  # type: ignore[arg-type]
        found: list[Served | Refused] = []
        for system in PEERS:
            try:
                environment = {"OMP_NUM_THREADS": str(self.threads)}
                found.append(Served(system, path, inputs, self.threads, environment, node_peers.__file__))
            except Refused as reason:
                found.append(reason)
        return found


@dataclass(frozen=True, kw_only=True)
class Times:
    """Medians in milliseconds, behind what a call of nothing takes.

    Attributes:
        ours: of each launch.
        peers: of the other systems on the model of the launch's nodes, or why there is none.
    """

    ours: Mapping[int, float]
    peers: Mapping[str, float | str]


class OurLaunches:
    """The launches of a plan, run one by one over the tensors of a run."""

    def __init__(self, executor: Executor, feeds: Mapping[str, Array], clock: Clock) -> None:
        """Args:
        executor: of a plan that has run on the feeds.
        """
        self._clock = clock
        self._executor = executor
        self._feeds = feeds
        self._found: dict[int, list[float]] = defaultdict(list)
        self._numbers = {launch.name: number for number, launch in enumerate(executor.plan.launches)}
        program = cl.Program(executor.built.context, "kernel void nothing() {}").build()
        self._nothing = cl.Kernel(program, "nothing")

    def turn(self, number: int) -> None:
        """Some runs of one launch, behind those before it: what it writes in place is as in a run then."""
        with self._executor.taken() as context:
            place = next(i for i, one in enumerate(context.launches) if self._numbers[one.name] == number)
            context.upload(self._feeds)
            context.enqueue(context.queue, context.launches[:place])
            context.queue.finish()
            time.sleep(PAUSE)

            def run() -> None:
                context.enqueue(context.queue, context.launches[place : place + 1])
                context.queue.finish()

            self._found[number] += timed(run, self._clock)

    def call(self) -> list[float]:
        """The milliseconds of some launches of a kernel that does nothing."""
        with self._executor.taken() as context:

            def run() -> None:
                cl.enqueue_nd_range_kernel(context.queue, self._nothing, (1,), None)
                context.queue.finish()

            return timed(run, self._clock)

    def median(self, number: int) -> float:
        """Of the runs of a launch so far, in milliseconds."""
        return statistics.median(self._found[number])

    @property
    def numbers(self) -> list[int]:
        """Of the launches in the plan, without those that have nothing to do at these extents."""
        with self._executor.taken() as context:
            return [self._numbers[one.name] for one in context.launches]


def calls(ours: OurLaunches, timing: Timing) -> dict[str, float]:
    """The milliseconds of a call of nearly nothing by each system: a kernel without code, a model of one number."""
    number = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "nothing", number[:1], number[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    peers = timing.served("nothing", model, {"x": np.ones(1, np.float32)})
    own: list[float] = []
    for _ in range(timing.turns):
        own += ours.call()
        for peer in peers:
            if isinstance(peer, Refused):
                raise peer
            peer.turn()
    found = [peer.close() for peer in peers if isinstance(peer, Served)]
    return dict(zip(NAMES, [statistics.median(own), *found], strict=True))


def measured(
    ours: OurLaunches, launches: Sequence[int], piece: Piece | None, called: Mapping[str, float], timing: Timing
) -> Times:
    """Launches whose nodes make equal models, and that model in the other systems, in turns.

    Args:
        piece: the model; without one only our launches are timed.
        called: what `calls` gave.
    """
    peers = [] if piece is None else timing.served(f"piece{launches[0]}", piece.model, piece.feeds)
    for _ in range(timing.turns):
        for number in launches:
            ours.turn(number)
        for peer in peers:
            if isinstance(peer, Served):
                peer.turn()
    found: dict[str, float | str] = {}
    for name, peer in zip(PEERS, peers, strict=False):
        found[name] = max(0.0, peer.close() - called[name]) if isinstance(peer, Served) else str(peer)
    return Times(ours={number: max(0.0, ours.median(number) - called["ours"]) for number in launches}, peers=found)


def in_run(executor: Executor, feeds: Mapping[str, Array], runs: int) -> dict[str, float]:
    """The median milliseconds of each launch by name, on the device's clock, where all follow one another."""
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(runs):
        for name, spent in executor.profile(feeds):
            found[name].append(spent)
    return {name: statistics.median(spent) for name, spent in found.items()}


def processor_name() -> str:
    """Of the first core, as the system calls it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))


def load() -> str:
    """How many processes wanted a core in the last minute, and how many cores there are."""
    return f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores"
