from __future__ import annotations

import pytest

from smartmem_rules.language.rulebase import RuleBase, load_rules


@pytest.fixture(scope="session")
def base() -> RuleBase:
    return load_rules()
