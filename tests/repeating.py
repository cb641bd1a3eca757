"""Cases that run only what other cases run as well: `repeating.txt` names them, and they wait for `--all`.

Of each test function at least one case stays. A case is a repetition if other tests that run without `--all` have all
that it has: lines and branches of Python and of the kernels' templates, operators with the types of their tensors,
rules that fire, forms of kernels with their schedules, and where the tensors of these lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

FILE = Path(__file__).with_suffix(".txt")


def repetitions() -> frozenset[str]:
    """The names of the cases, as pytest has them."""
    lines = FILE.read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("# "))


def without_repetitions(
    sample: Iterable[pytest.Item], items: Iterable[pytest.Item], named: frozenset[str]
) -> set[pytest.Item]:
    """The tests of a sample that are no repetitions.

    Args:
        items: all tests of the files from which the sample is.
        named: the names of the repetitions.

    Raises:
        pytest.UsageError: a file of tests has no test of a name, or a function of the sample has no case that is left.
    """
    taken, known = list(sample), {item.nodeid for item in items}
    left = {item for item in taken if item.nodeid not in named}
    files = {name.partition("::")[0] for name in known}
    unknown = sorted(name for name in named - known if name.partition("::")[0] in files)
    if unknown:
        raise pytest.UsageError(f"{FILE.name}: there is no test {unknown[0]}; write its new name, or take the line out")
    gone = sorted({_function(item) for item in taken} - {_function(item) for item in left})
    if gone:
        raise pytest.UsageError(f"{FILE.name}: no case of {gone[0]} would run; take one of its lines out")
    return left


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
