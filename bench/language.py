"""How long the language's tools take: `python bench/language.py`.

Prints what an author waits for: the check of all shipped rules without and with the parse cache, the import of the
package, and the messages of the language server after one edit of a 500-line file. Seconds are those of the processor
in user mode (`user`) and of the clock (`clock`), the best of a few runs; on a busy machine only the first tell much.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.lsp.client import Client  # noqa: E402

RULE = """rewrite rule_{0} in algebra   # made up
    Mul(Add(x, {0}), {0}) => Add(Mul(x, {0}), {0})
    where rank(x) > 2
    explores

"""


def child(arguments: list[str], cache: str) -> tuple[float, float]:
    """Seconds of a process: in user mode, by the clock."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SMARTMEM_CACHE": cache}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, time.perf_counter() - began


def best(run: Callable[[], tuple[float, float]], times: int) -> dict[str, float]:
    """The least of several runs, each measure by itself."""
    runs = [run() for _ in range(times)]
    return {"user": min(user for user, _ in runs), "clock": min(clock for _, clock in runs)}


def checked(cold: bool, times: int) -> dict[str, float]:
    """`smartmem check rules`, from source texts alone or with what an earlier check kept."""
    command = ["-m", "smartmem_rules.cli", "check", str(ROOT / "rules")]
    with tempfile.TemporaryDirectory() as folder:
        if not cold:
            child(command, folder)
        return best(lambda: child(command, "off" if cold else folder), times)


def edited(times: int) -> dict[str, float]:
    """From an edit of a 500-line file to its messages, over stdio as an editor does it."""
    with tempfile.TemporaryDirectory() as folder:
        client = Client(Path(folder))
        client.start()
        uri = client.open("long.smr", "".join(RULE.format(number) for number in range(2, 102)))
        client.diagnostics()
        ticks = os.sysconf("SC_CLK_TCK")
        status = Path(f"/proc/{client.process.pid}/stat")
        runs = []
        for number in range(times):
            before, began = _user_ticks(status), time.perf_counter()
            client.edit(uri, (2, 17), (2, 18), str(number % 9 + 1))
            client.diagnostics()
            runs.append(((_user_ticks(status) - before) / ticks, time.perf_counter() - began))
        client.stop()
        return {"user": min(user for user, _ in runs), "clock": min(clock for _, clock in runs)}


def _user_ticks(status: Path) -> int:
    return int(status.read_text().rpartition(")")[2].split()[11])


def measured(times: int) -> dict[str, dict[str, float]]:
    """All numbers, in seconds."""
    return {
        "check of all shipped rules, no cache": checked(True, times),
        "check of all shipped rules, cached": checked(False, times),
        "import smartmem_rules": best(lambda: child(["-c", "import smartmem_rules"], "off"), times),
        "messages after an edit of 500 lines": edited(2 * times),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="runs of each")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measured(arguments.times)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return
    for name, seconds in found.items():
        print(f"{name:40} user {seconds['user']:6.3f} s   clock {seconds['clock']:6.3f} s")


if __name__ == "__main__":
    main()
