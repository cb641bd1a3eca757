"""Discovery measured: the printed rules of DNNFusion and the shipped algebraic rules, all taken away, found again.

python bench/discovery.py [--seconds 60] [--seed 1]
"""

from __future__ import annotations

import argparse

from rediscovery import rediscover

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.discovery.discover import Discovery


def show(operators: tuple[str, ...], found: Discovery) -> None:
    """One search."""
    print(
        f"{', '.join(operators)}: {found.terms} terms, {found.pairs} pairs, {len(found.rules)} rules, "
        f"{found.derivable} derivable, {found.refuted} refuted, {found.seconds:.0f} s",
        flush=True,
    )


def main() -> None:
    """Search, and print what was found again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for one search")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = rediscover(load_rules(), seconds=options.seconds, seed=options.seed, progress=show)
    for name, source in found.printed.items():
        print(f"{'found ' if source else 'missed'} {name}")
    again = [name for name, source in found.shipped.items() if source]
    printed, shipped = found.counts
    print(f"{printed} of {len(found.printed)} printed rules, {shipped} shipped rules: {', '.join(again)}")


if __name__ == "__main__":
    main()
