"""What the stages of an optimization gave, as texts: of a model or a plan, and written to files."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Unpack

from smartmem_rules.explanation.inspected import Inspected, InspectionError
from smartmem_rules.graph.model import Graph
from smartmem_rules.plan.printer import launches_text, sources_text
from smartmem_rules.planned import PlanOptions, plan_only
from smartmem_rules.runtime.plan_file import is_plan_file, load_plan
from smartmem_rules.stages import STAGES, Progress
from smartmem_rules.whole_files import write_whole


def inspect_model(source: Any, progress: Progress | None = None, **options: Unpack[PlanOptions]) -> Inspected:
    """The stages of a model, without building its kernels, or those that a saved plan shows.

    Args:
        source: what `optimize` takes, or the path of a saved plan.
        options: arguments of `optimize`, for a model.
    """
    if not isinstance(source, Graph) and isinstance(source, (str, Path)) and is_plan_file(source):
        plan = load_plan(source)
        return Inspected(
            plan, {"launch": launches_text(plan.launches), "memory": str(plan), "emit": sources_text(plan)}
        )
    texts: dict[str, str] = {}
    plan = plan_only(source, progress, texts.__setitem__, **options)
    return Inspected(plan, {stage: texts[stage] for stage in STAGES if stage in texts})


def write_stages(inspected: Inspected, folder: Path, only: Collection[str] = ()) -> list[Path]:
    """Write a file for each stage, `05-fuse.txt`, and the OpenCL C of each launch, `kernels/012-NAME.cl`.

    Args:
        only: stages; all by default. The kernels belong to `emit`.

    Raises:
        InspectionError: a file cannot be written.
    """
    written: list[Path] = []
    texts = {
        folder / f"{STAGES.index(stage) + 1:02}-{stage}.txt": text
        for stage, text in inspected.stages.items()
        if not only or stage in only
    }
    if not only or "emit" in only:
        for number, enqueue in enumerate(inspected.plan.enqueues):
            name = re.sub(r"[^\w.-]", "_", enqueue.launch.name)
            texts[folder / "kernels" / f"{number:03}-{name}.cl"] = enqueue.source.text
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
            written.append(path)
    except OSError as error:
        raise InspectionError(f"{folder}: the stages cannot be written ({error.strerror or error})") from error
    return written
