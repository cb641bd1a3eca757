"""`smartmem calibrate`."""

from __future__ import annotations

from typing import Any

import click

from smartmem_rules.cli.common import console, device_option, json_option, print_json, reports_errors


@click.command("calibrate")
@device_option
@click.option(
    "--seconds", default=10.0, show_default=True, type=click.FloatRange(min=0.1), help="At most about so long."
)
@click.option("--forget", "forgets", is_flag=True, help="Go back to the figures of the rules.")
@json_option
@reports_errors
def command(device: str, seconds: float, forgets: bool, as_json: bool) -> None:
    """Measure what the cost model needs to know of a CPU, and keep it for this device and driver.

    Every later `optimize` on the device plans by these figures instead of those of the device's block in the rules.
    SMARTMEM_CALIBRATION=off leaves them out.
    """
    from smartmem_rules.pipeline import rules_of  # start-up time
    from smartmem_rules.runtime.calibration.calibrate import calibrate  # start-up time
    from smartmem_rules.runtime.calibration.store import forget, keep  # start-up time
    from smartmem_rules.runtime.devices import choose  # start-up time

    base = rules_of((), ())
    chosen = choose(device, base.devices)
    if forgets:
        gone = forget(chosen)
        if as_json:
            print_json({"device": chosen.name, "driver": chosen.driver, "forgotten": gone})
        else:
            console().print("the calibration is gone" if gone else "there was no calibration")
        return
    measured = calibrate(chosen, base, seconds)
    path = keep(chosen, measured)
    data: dict[str, Any] = {**measured.data(), "file": str(path), "register_width": measured.lanes}
    if as_json:
        print_json(data)
    else:
        _print(data)


def _print(data: dict[str, Any]) -> None:
    from smartmem_rules.cli.tables import table  # start-up time

    screen = console()
    tiles = table(f"multiply-adds of one core of {data['device']}", "lanes", "rows", "columns", "GFLOP/s")
    for one in data["tiles"]:
        tiles.add_row(str(one["lanes"]), str(one["rows"]), str(one["columns"]), f"{one['gflops']:.1f}")
    screen.print(tiles)
    reads = table("reads", "cores", "KiB of each", "GB/s of all")
    for one in data["bandwidths"]:
        reads.add_row(str(one["cores"]), str(one["bytes"] >> 10), f"{one['gbytes_per_s']:.1f}")
    screen.print(reads)
    screen.print(
        f"launch {data['launch_us']:.1f} us, barrier {data['barrier_ns']:.0f} ns, load {data['load_ns']:.2f} ns, "
        f"prefetch {data['prefetch_ns']:.2f} ns, texels {data['image_gbytes_per_s']:.1f} GB/s, "
        f"exponential {data['exponential_ns']:.2f} ns"
    )
    screen.print(
        f"products in registers of {data['register_width']} floats; measured in {data['seconds']:.1f} s with a load of "
        f"{data['load_average']:.1f}, kept in {data['file']}",
        soft_wrap=True,
    )
