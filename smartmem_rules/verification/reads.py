"""How many reads of definitions are proved to stay inside their tensors, kept by the content of the definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from smartmem_rules.analysis.satisfiability import has_solver
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.cache import Findings, digest_of
from smartmem_rules.records import dataclass
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase
from smartmem_rules.rulebase.digests import functions_named
from smartmem_rules.rulebase.identity import is_shipped
from smartmem_rules.verification.proof.reads.each_read import prove_each_read
from smartmem_rules.verification.proof.reads.open_reads import MOST_WAYS, ReadProofs
from smartmem_rules.verification.proof.reads.written_reads import reads_of

SHIPPED = "reads.json"
"""The file beside the built-in rules with what is proved of them; `python bench/proved_reads.py` writes it."""
WAYS_WHILE_CHECKING = 1500
"""Cases that `smartmem check` looks at for one definition of a user's file."""


@dataclass(frozen=True)
class ReadCount:
    """Reads without `else`: all, and those that are proved for all operands and attributes."""

    proved: int = 0
    total: int = 0

    def __str__(self) -> str:
        text = f"reads proved: {self.proved} of {self.total}"
        rest = self.total - self.proved
        return text if not rest else f"{text} ({rest} compared with the extents whenever an operator is instantiated)"


@dataclass(frozen=True, kw_only=True)
class OperatorReads:
    """The reads of one definition.

    Attributes:
        reasons: why each read that is not proved is not, and how many have that reason.
    """

    name: str
    proved: int
    total: int
    reasons: Mapping[str, int]


def count_reads(base: RuleBase, files: Sequence[Path] = ()) -> ReadCount:
    """The reads of the definitions of some files, or of all built-in ones.

    What is proved of built-in definitions ships with them. Other definitions are proved here, where z3 is installed.
    """
    kept = Findings("reads")
    known = shipped()
    proved = total = 0
    for operator in definitions(base, files):
        reads = len(reads_of(operator))
        key = digest(base, operator)
        found = known.get(key, kept.get(key))
        if found is None and has_solver() and not is_shipped(operator.span.file):
            found = len(_proofs(base, operator, WAYS_WHILE_CHECKING).proved)
            kept.put(key, found)
        proved, total = proved + (found or 0), total + reads
    kept.save()
    return ReadCount(proved, total)


def prove(base: RuleBase, operator: ast.Operator, most: int = MOST_WAYS) -> OperatorReads:
    """Prove the reads of one definition. Needs z3."""
    proofs = _proofs(base, operator, most)
    reasons: dict[str, int] = {}
    for span in proofs.total - proofs.proved:
        reason = proofs.left.get(span, "no case of types that are looked at reaches it")
        reasons[reason] = reasons.get(reason, 0) + 1
    return OperatorReads(name=operator.name, proved=len(proofs.proved), total=len(proofs.total), reasons=reasons)


def _proofs(base: RuleBase, operator: ast.Operator, most: int) -> ReadProofs:
    import z3  # type: ignore[import-untyped]

    return prove_each_read(base, operator, z3, most)


def definitions(base: RuleBase, files: Sequence[Path] = ()) -> Iterator[ast.Operator]:
    """The definitions of some files, or all built-in ones, each once."""
    own = {path.resolve() for path in files}
    seen: set[object] = set()
    for overloads in base.operators.values():
        for operator in overloads:
            file = operator.span.file
            meant = Path(file).resolve() in own if own else is_shipped(file)
            if meant and (operator.name, operator.span) not in seen:
                seen.add((operator.name, operator.span))
                yield operator


def digest(base: RuleBase, operator: ast.Operator) -> str:
    """The key of a definition: its content, and that of the functions that it names."""
    text = repr(operator)
    return digest_of(text, *functions_named([text], base.functions.keys(), lambda name: repr(base.functions[name])))


@cache
def shipped() -> Mapping[str, int]:
    """How many reads of each built-in definition are proved, by its key."""
    try:
        known = json.loads((rules_path() / SHIPPED).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return {str(key): int(value) for key, value in known.items()}
