from __future__ import annotations

import pytest

from smartmem_rules.rulebase.base import RuleBase, load_rules


@pytest.fixture(scope="session")
def base() -> RuleBase:
    return load_rules()
