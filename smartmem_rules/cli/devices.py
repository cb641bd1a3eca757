"""`smartmem devices`."""

from __future__ import annotations

import click
from rich.markup import escape

from smartmem_rules.cli.common import console, json_option, print_json, reports_errors
from smartmem_rules.cli.tables import table


@click.command("devices")
@json_option
@reports_errors
def command(as_json: bool) -> None:
    """List the OpenCL devices with their limits and the profiles that describe them."""
    from smartmem_rules.rulebase.base import load_rules  # start-up time
    from smartmem_rules.runtime.devices import automatic, devices, profile_of  # start-up time

    base = load_rules()
    here = devices()
    auto = automatic(here).place
    found = [(device, profile_of(device, base).name) for device in here]
    if as_json:
        print_json(
            {
                "devices": [{**device.data(), "profile": profile} for device, profile in found],
                "auto": auto,
                "profiles": sorted(base.devices),
            }
        )
        return
    for device, profile in found:
        made = table(f"{device.place}  {escape(device.name)}", "", "")
        made.show_header = False
        made.columns[1].justify = "left"
        for name, value in (
            ("platform", escape(device.platform)),
            ("driver", escape(f"{device.driver}, {device.version}")),
            ("type", device.kind),
            ("profile", profile),
            ("images", f"{device.image_width} x {device.image_height} texels" if device.images else "none"),
            ("compute units", str(device.compute_units)),
            ("largest work-group", str(device.work_group)),
            ("local memory", f"{device.local_memory / 1024:.0f} KiB"),
            ("global memory", f"{device.global_memory / 2**20:.0f} MiB"),
            ("largest buffer", f"{device.largest_allocation / 2**20:.0f} MiB"),
            ("half arithmetic", "yes" if device.half else "no, halves are only stored"),
            ("sub-groups", "yes" if device.subgroups else "no"),
            *([("refused", escape(device.refusal))] if device.refusal else []),
        ):
            made.add_row(name, value)
        console().print(made)
    console().print(f"auto is {auto}; profiles: {', '.join(sorted(base.devices))}", markup=False)
