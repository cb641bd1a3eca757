"""The table of docs/certificates.md: how much of the plans of the paper's models is certified.

`python bench/certificates.py --write docs/certificates.md` makes a certificate of each plan and replays it, each in a
process of its own, so that the second knows nothing of the first; `NAME ...` does some models only.  What `--json FILE`
holds already is not done again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from markdown_tables import markdown, replace_table

SECONDS = 3600
TABLE = "certified"


def main() -> int:
    """Certify, then print or write; 1 if a certificate is refused."""
    from smartmem_rules.graph.zoo import NETWORKS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of `smartmem zoo`; by default the paper's")
    parser.add_argument("--json", type=Path, default=Path("build/certificates.json"))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make or arguments.replay:
        (name,) = arguments.models
        print(json.dumps(make(name, arguments.make) if arguments.make else replay(name, arguments.replay)))
        return 0
    rows: dict[str, dict[str, Any]] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    for name in arguments.models or NETWORKS:
        if name not in rows:
            rows[name] = certified(name)
            print(name, rows[name], file=sys.stderr, flush=True)
            arguments.json.write_text(json.dumps(rows, indent=1))
    text = table({name: rows[name] for name in NETWORKS if name in rows})
    if arguments.write:
        replace_table(arguments.write, TABLE, text)
    else:
        print(text)
    return int(any(row["refused"] is not None for row in rows.values()))


def certified(name: str) -> dict[str, Any]:
    """A model's certificate, made by one process and replayed by another."""
    with tempfile.TemporaryDirectory(prefix="smartmem-") as folder:
        file = Path(folder) / "certificate.json"
        made = in_own_process("--make", file, name)
        return made | in_own_process("--replay", file, name)


def in_own_process(what: str, file: Path, name: str) -> dict[str, Any]:
    """What `make` or `replay` gives."""
    command = [sys.executable, __file__, what, str(file), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def make(name: str, file: Path) -> dict[str, Any]:
    """Write the certificate of a model's plan for the device that is here."""
    from smartmem_rules.api import plan_only
    from smartmem_rules.graph.zoo import shipped_model

    plan_only(shipped_model(name), certificate=file)
    return {"bytes": file.stat().st_size}


def replay(name: str, file: Path) -> dict[str, Any]:
    """Check it."""
    from smartmem_rules.api import certify
    from smartmem_rules.certificate.terms import Refused
    from smartmem_rules.graph.zoo import shipped_model

    constants = json.loads(file.read_text())["graph"]["constants"]
    computed = sum(one["is"] != one["name"] for one in constants)
    try:
        return certify(shipped_model(name), file).data() | {"refused": None, "computed": computed}
    except Refused as reason:
        return {"refused": str(reason)}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The rows and their sum as markdown."""
    header = "model | nodes | certified | kernels | certified | steps | rules | constants computed | file, KiB"
    lines = []
    for name, row in rows.items():
        if row["refused"] is None:
            counts = ("nodes", "certified", "kernels", "certified_kernels", "steps")
            figures = [*(row[key] for key in counts), len(row["rules"]), row["computed"], round(row["bytes"] / 1024)]
            lines.append([name, *map(str, figures)])
        else:
            lines.append([name, f"refused: {row['refused']}", *[""] * 7])
    good = [row for row in rows.values() if row["refused"] is None]
    sums = [sum(row[key] for row in good) for key in ("nodes", "certified", "kernels", "certified_kernels", "steps")]
    rules = len({rule for row in good for rule in row["rules"]})
    ends = [rules, sum(row["computed"] for row in good), round(sum(row["bytes"] for row in good) / 1024)]
    return markdown(header, [*lines, ["**all**", *(f"**{figure}**" for figure in (*sums, *ends))]])


if __name__ == "__main__":
    sys.exit(main())
