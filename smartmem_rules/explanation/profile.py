"""Where the time of a plan goes, kernel by kernel."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING

from smartmem_rules.runtime.executor import Executor
from smartmem_rules.runtime.roof import Roof
from smartmem_rules.tensor.ranges import largest

if TYPE_CHECKING:  # start-up time
    from smartmem_rules.explanation.documents import KernelProfile


def kernel_profile(executor: Executor, roof: Roof, feeds: Mapping[str, object], runs: int = 5) -> list[KernelProfile]:
    """A row for each kernel: {kernel, form, origin, ms, share, gflops, gbytes_per_s, roof_share}.

    Bytes are those of operands and results in memory; what a cache saves or a window reads twice is not in them. They
    and the operations are those of the greatest extents of open dimensions.
    """
    rows = [executor.profile(feeds) for _ in range(runs)]
    times = [statistics.median(row[place][1] for row in rows) for place in range(len(rows[0]))]
    total = sum(times) or 1.0
    launched = [one.launch for one in executor.plan.enqueues if all(one.source.global_size)]
    return [
        {
            "kernel": launch.name,
            "form": launch.form,
            "origin": list(launch.origin),
            "schedule": {} if launch.schedule is None else {"name": launch.schedule.name, **launch.schedule.sizes()},
            "ms": time,
            "share": time / total,
            "gflops": largest(launch.operations) / max(time, 1e-9) * 1e-6,
            "gbytes_per_s": launch.bytes_moved / max(time, 1e-9) * 1e-6,
            "roof_share": roof.share(largest(launch.operations), launch.bytes_moved, time),
        }
        for launch, time in zip(launched, times, strict=True)
    ]
