"""What counts as the same outputs."""

from __future__ import annotations

import pytest

from tests.torch_backend.torch_extra import torch

from smartmem_rules.torch_backend.agreement import disagreement  # isort: skip


@pytest.mark.parametrize(
    ("found", "wanted", "said"),
    [
        ([1.0, 2.0], [1.0, 2.00001], None),
        ([1.0, 2.0], [1.0, 2.1], "largest difference is 0.1"),
        ([1.0, float("nan")], [1.0, float("nan")], None),
        ([1.0, float("inf")], [1.0, -float("inf")], "infinite"),
        ([1.0, float("nan")], [1.0, 2.0], "infinite values or NaN"),
        ([1, 2], [1, 3], "1 of 2 elements differ"),
        ([1, 2], [1, 2], None),
        ([1, 2], [1.0, 2.0], "instead of torch.float32"),
        ([1.0], [1.0, 1.0], "shape"),
    ],
)
def test_differences_beyond_rounding_are_named(found: list[float], wanted: list[float], said: str | None) -> None:
    problem = disagreement([torch.tensor(found)], [torch.tensor(wanted)], torch.float32)
    assert problem is None if said is None else problem is not None and said in problem
