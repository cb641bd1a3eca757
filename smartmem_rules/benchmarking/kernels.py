"""Where the time of a plan goes, kernel by kernel."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from smartmem_rules.api import OptimizedPlan
from smartmem_rules.benchmarking.roof import Roof


def kernel_profile(plan: OptimizedPlan, roof: Roof, feeds: Mapping[str, Any], runs: int = 5) -> list[dict[str, Any]]:
    """A row for each kernel: {kernel, form, origin, ms, share, gflops, gbytes_per_s, roof_share}.

    Bytes are those of operands and results in memory; what a cache saves or a window reads twice is not in them.
    """
    rows = [plan.profile(feeds) for _ in range(runs)]
    times = [statistics.median(row[place][1] for row in rows) for place in range(len(rows[0]))]
    total = sum(times) or 1.0
    launched = [one.launch for one in plan.plan.enqueues if all(one.source.global_size)]
    return [
        {
            "kernel": launch.name,
            "form": launch.form,
            "origin": list(launch.origin),
            "schedule": {} if launch.schedule is None else {"name": launch.schedule.name, **launch.schedule.sizes()},
            "ms": time,
            "share": time / total,
            "gflops": launch.operations / max(time, 1e-9) * 1e-6,
            "gbytes_per_s": launch.bytes_moved / max(time, 1e-9) * 1e-6,
            "roof_share": roof.share(launch.operations, launch.bytes_moved, time),
        }
        for launch, time in zip(launched, times, strict=True)
    ]
