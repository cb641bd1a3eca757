"""What tests of plans share."""

from __future__ import annotations

import pytest

from tests.plan.running import Mode

MODES = [Mode("none"), Mode("none", "image"), Mode("smartmem"), Mode("smartmem", "image"), Mode(device="adreno_740")]


@pytest.fixture(params=MODES, ids=str)
def mode(request: pytest.FixtureRequest) -> Mode:
    """Unfused and fused kernels, in buffers and in images, and those of a texture GPU."""
    assert isinstance(request.param, Mode)
    return request.param
