"""Many searches for rewrites, side by side in processes or on a Dask cluster, and what is left of all they find."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context

from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.verification.discovery.discover import RULESET, Discovered, Discovery, discover, underivable
from smartmem_rules.verification.discovery.naming import name_of
from smartmem_rules.verification.semantics.terms import Application, Term, subterms


@dataclass(frozen=True, kw_only=True)
class Search:
    """One search, as a worker gets it: what `discover` takes, and the rule files and switched-off rules of the base."""

    operators: tuple[str, ...]
    size: int
    seed: int
    seconds: float
    files: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


def sets_of(operators: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Every `count` of the operators; all of them where there are no more."""
    return list(itertools.combinations(dict.fromkeys(operators), min(count, len(set(operators)))))


def run_search(search: Search) -> Discovery:
    """One search. Raises ValueError where an operator is unknown."""
    base = load_rules(search.files, search.disabled)
    return discover(base, search.operators, search.size, search.seed, search.seconds)


def discover_each(
    searches: Sequence[Search],
    jobs: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Discovery:
    """All that some searches over one rule base find, without what follows from the rest.

    Args:
        jobs: processes; by default one for each core.
        scheduler: the address of a Dask scheduler whose workers search instead.

    Raises:
        ValueError: an operator is unknown, or the package for `scheduler` is missing.
        OSError: no scheduler answers.
    """
    found: list[Discovery] = []
    results = _by_dask(searches, scheduler) if scheduler is not None else _here(searches, jobs or os.cpu_count() or 1)
    for discovery in results:
        found.append(discovery)
        if progress is not None:
            progress(len(found), len(searches))
    return merged(found, searches[0])


def merged(found: Sequence[Discovery], search: Search) -> Discovery:
    """The rules of several searches; of each that follows from more general ones nothing is left."""
    base = load_rules(search.files, search.disabled)
    working = replace(base, rewrites=list(base.rewrites))
    total = Discovery(
        terms=sum(one.terms for one in found),
        pairs=sum(one.pairs for one in found),
        derivable=sum(one.derivable for one in found),
        refuted=sum(one.refuted for one in found),
        reorderings=sum(one.reorderings for one in found),
        seconds=sum(one.seconds for one in found),
    )
    for rule in sorted((rule for one in found for rule in one.rules), key=_generality):
        if not underivable([(rule.left, rule.right)], working):
            total.derivable += 1
            continue
        name = name_of(rule.left, {known.name for known in working.rewrites})
        text = rule.text.replace(f"rewrite {rule.name} ", f"rewrite {name} ", 1)
        kept = replace(rule, name=name, text=text, rule=replace(rule.rule, name=name))
        total.rules.append(kept)
        working.rewrites.append(replace(kept.rule, ruleset=RULESET))
    return total


def _generality(rule: Discovered) -> tuple[int, str]:
    return _applications(rule.left) + _applications(rule.right), rule.text


def _applications(term: Term) -> int:
    return sum(isinstance(part, Application) for part in subterms(term))


def _here(searches: Sequence[Search], jobs: int) -> Iterator[Discovery]:
    if jobs == 1 or len(searches) == 1:
        yield from map(run_search, searches)
        return
    with ProcessPoolExecutor(min(jobs, len(searches)), get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_search, search) for search in searches]):
            yield future.result()


def _by_dask(searches: Sequence[Search], scheduler: str) -> Iterator[Discovery]:
    try:
        from distributed import (
            Client,  # the extra `dask`
            as_completed as completed,
        )
    except ImportError:
        raise ValueError("--scheduler needs the package distributed: pip install 'smartmem-rules[dask]'") from None
    with Client(scheduler) as client:  # type: ignore[no-untyped-call]
        futures = client.map(run_search, list(searches), pure=False)
        results: Iterable[tuple[object, Discovery]] = completed(futures, with_results=True)  # type: ignore[no-untyped-call]
        for _, discovery in results:
            yield discovery
