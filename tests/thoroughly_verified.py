"""Plans of one test in some are checked element by element; those of all tests of other folders, and with `--all`.

The thorough check reads the text of every kernel and follows each of its accesses: a fifth of the time of a test that
makes plans. The other tests check as users do, by intervals. Which tests are thorough is the same always.
"""

from __future__ import annotations

import os
import zlib

import pytest

from smartmem_rules.environment import VERIFY
from tests.quickly_compiled import FOLDERS, lies_in

SHARE = 4


def is_verified_thoroughly(item: pytest.Item) -> bool:
    """Whether the plans of a test are checked element by element."""
    # another digest than that of which tests are compiled as users': the few tests of both would see less
    return not lies_in(item, (*FOLDERS, "numerics")) or zlib.adler32(item.nodeid.encode()) % SHARE == 0


def verify(thoroughly: bool) -> None:
    """Say how plans are checked that this process, and those that it starts, make from now on."""
    if thoroughly:
        os.environ[VERIFY.name] = "full"
    else:
        os.environ.pop(VERIFY.name, None)
