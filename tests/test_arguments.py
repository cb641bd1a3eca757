"""Arguments of other types than `optimize` takes are refused before anything is done, all in one message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smartmem_rules as sm

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"dtype": np.float16}, r"dtype is <class 'numpy.float16'>; give the name of a type, as text"),
    ({"device": None}, r"device is None; give the name of a device or of a profile"),
    ({"rules": "mine.smr"}, r"rules is 'mine.smr'; give a list of files"),
    ({"disable": None}, r"disable is None; give a list of names"),
    ({"dims": [1]}, r"dims is \[1\]; give the extents by the names of dimensions"),
    ({"limits": 3}, r"limits is 3; give a Limits"),
    ({"level": 1, "memory": 2}, r"level is 1; .*\nmemory is 2"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_types_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sm.optimize(b"no model is read", **options)
