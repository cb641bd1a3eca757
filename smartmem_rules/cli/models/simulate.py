"""`smartmem simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli import choices
from smartmem_rules.cli.common import console, json_option, names, print_json, progress_display, reports_errors
from smartmem_rules.cli.tables import megabytes, table

LEVELS = ("none", "dnnfusion", "eliminate", "layout", "smartmem")


@click.command("simulate")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--device",
    default="adreno_740",
    show_default=True,
    shell_complete=choices.offered(choices.profiles),
    help="A device profile with a model of its memory.",
)
@click.option(
    "--levels",
    is_flag=False,
    flag_value=",".join(LEVELS),
    default="smartmem",
    show_default=True,
    metavar="[LIST]",
    shell_complete=choices.offered(choices.levels, separated=True),
    help="Levels, separated by commas; all of them without a list.",
)
@click.option(
    "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), help="Default: what the device prefers."
)
@click.option(
    "--memory",
    type=click.Choice(["device", "image", "buffer", "level"]),
    default="device",
    show_default=True,
    help="Where tensors lie: what the device prefers at all levels, images, buffers, or what each level says.",
)
@click.option("--rules", multiple=True, type=click.Path(path_type=Path), help="One more rule file; repeatable.")
@click.option(
    "--disable",
    multiple=True,
    metavar="RULE",
    shell_complete=choices.offered(choices.switchable, separated=True),
    help="Leave out a rule, a family or tag:WORD; repeatable.",
)
@click.option("--seed", default=0, show_default=True, help="Of the places of sampled windows.")
@click.option("--kernels", "by_kernel", is_flag=True, help="Show the kernels that take longest.")
@json_option
@reports_errors
def command(model: Path, levels: str, by_kernel: bool, as_json: bool, **how: Any) -> None:
    """Follow the memory accesses of MODEL's kernels through a model of a device that need not be here."""
    from smartmem_rules.views.simulated_levels import simulate_levels  # start-up time

    how["disable"] = names(how["disable"])
    with progress_display() as progress:
        data = simulate_levels(model, names([levels]), progress=progress, **how)
    if as_json:
        print_json(data)
        return
    screen = console()
    shown = table(
        f"{data['model']} on {data['device']}, {data['dtype']}",
        "level", "kernels", "accesses", "L1 misses", "L2 misses", "memory", "estimate", "error of accesses", "misses",
    )  # fmt: skip
    for level, one in data["levels"].items():
        memories = one["memories"]
        shown.add_row(
            level, str(one["kernels"]), f"{one['accesses'] / 1e6:.2f} M",
            f"{memories['texture_l1']['misses'] / 1e6:.2f} M", f"{memories['l2']['misses'] / 1e6:.2f} M",
            megabytes(one["bytes"]), f"{one['estimated_ms']:.2f} ms",
            f"{one['relative_error']['accesses']:.1%}", f"{one['relative_error']['misses']:.1%}",
        )  # fmt: skip
    screen.print(shown)
    if by_kernel:
        for level, one in data["levels"].items():
            longest = table(f"level {level}", "kernel", "accesses", "misses", "memory", "estimate", "bound by")
            for kernel in sorted(one["by_kernel"], key=lambda k: -k["estimated_ms"])[:20]:
                longest.add_row(
                    kernel["name"], f"{kernel['accesses'] / 1e6:.2f} M", f"{kernel['misses'] / 1e6:.2f} M",
                    megabytes(kernel["bytes"]), f"{kernel['estimated_ms']:.3f} ms", kernel["bound"],
                )  # fmt: skip
            screen.print(longest)
