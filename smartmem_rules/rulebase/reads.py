"""How many reads of definitions are proved to stay inside their tensors, kept by the content of the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smartmem_rules.language.cache import Findings, digest_of
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.identity import is_shipped


@dataclass(frozen=True)
class ReadCount:
    """Reads without `else`: all, and those that are proved for all extents."""

    proved: int = 0
    total: int = 0

    def __str__(self) -> str:
        text = f"reads proved: {self.proved} of {self.total}"
        rest = self.total - self.proved
        return text if not rest else f"{text} ({rest} compared with the extents whenever an operator is instantiated)"


def count_reads(base: RuleBase, files: Sequence[Path] = ()) -> ReadCount:
    """The reads of the definitions of some files, or of all built-in ones."""
    from smartmem_rules.analysis.reads import all_reads, proved_reads  # start-up time
    from smartmem_rules.analysis.satisfiability import has_solver  # start-up time

    kept = Findings("reads")
    own = {path.resolve() for path in files}
    functions = digest_of(*(repr(base.functions[name]) for name in sorted(base.functions)))
    proved = total = 0
    seen: set[object] = set()
    for overloads in base.operators.values():
        for operator in overloads:
            file = operator.span.file
            meant = Path(file).resolve() in own if own else is_shipped(file)
            if not meant or (operator.name, operator.span) in seen:
                continue
            seen.add((operator.name, operator.span))
            key = digest_of(repr(operator), functions, str(has_solver()))
            known = kept.get(key)
            if known is None:
                reads = all_reads(operator)
                known = [len(reads & proved_reads(base, operator).proved), len(reads)]
                kept.put(key, known)
            proved, total = proved + known[0], total + known[1]
    kept.save()
    return ReadCount(proved, total)
