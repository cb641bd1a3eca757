"""What docs/language.md says of attributes that a pattern does not name."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from smartmem_rules.cli import main
from tests.with_all import with_all

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
WRONG = """
rewrite loses_times in algebra
    Scaled(Neg(x); by = b) => Neg(Scaled(x; by = b))
    explores
"""
SHIPPED_PREDICATE = """
rewrite asks_without_import in algebra
    Neg(Scaled(c; by = b, times = 1)) => Scaled(Neg(c); by = b, times = 1)
    where constant(c), non_negative(c), min(shape(c)) > 0
    explores
"""


def test_unnamed_attributes_are_any_on_the_left_and_defaults_on_the_right(tmp_path: Path) -> None:
    (block,) = re.findall(r"  ```smr\n((?:(?!```).)*negated_scale.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    path = tmp_path / "page.smr"
    path.write_text(block + WRONG + SHIPPED_PREDICATE)
    result = CliRunner().invoke(main, ["verify", str(path), "--json", "--trials", str(with_all(200, 60))])
    verdicts = {rule["name"]: rule["verdict"] for rule in json.loads(result.stdout)["rules"]}
    assert verdicts.pop("loses_times") == "failed"
    assert set(verdicts) == {"negated_scale", "scale_by_default", "negated_sum", "asks_without_import"}
    assert set(verdicts.values()) <= {"proved", "tested"}
