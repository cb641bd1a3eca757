"""Lines of a model's source."""

from __future__ import annotations

from smartmem_rules.torch_backend.sources import source_line


def test_the_innermost_line_is_shown() -> None:
    outer = '  File "a.py", line 3, in forward\n    x = self.head(x)\n'
    stack = outer + '  File "b.py", line 12, in forward\n    return x @ w\n'
    assert source_line(stack) == "b.py:12: return x @ w"


def test_without_a_stack_it_says_so() -> None:
    assert source_line(None) == "a line that PyTorch does not know"
