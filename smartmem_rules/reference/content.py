"""What the reference says of every rule, operator, table and block: plain data for the templates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from smartmem_rules.analysis.derivation import derive
from smartmem_rules.analysis.types.symbolic import prove_types
from smartmem_rules.language import syntax as s
from smartmem_rules.language.blocks.fuse import PASSES
from smartmem_rules.language.blocks.keys import BlockRecord, keys_of
from smartmem_rules.language.blocks.schedule import CLASSES, CONTRACTIONS
from smartmem_rules.language.codes import EXPLANATIONS, Code
from smartmem_rules.language.printing.builtin_docs import ELEMENT_DOCS, GUARD_DOCS, LIST_DOCS
from smartmem_rules.language.printing.printer import (
    print_definition,
    print_equation,
    print_expression,
    print_guards,
    print_item,
    print_signature,
)
from smartmem_rules.language.schema import SUBJECTS, record_type
from smartmem_rules.language.vocabulary import BLOCK_WORDS
from smartmem_rules.records import dataclass
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase

Verdicts = Mapping[str, str]
"""The verification status of rules by name."""


@dataclass(frozen=True)
class Entry:
    """One named thing with the text that defines it; `facts` are shown as a table."""

    name: str
    anchor: str
    file: str
    line: int
    code: str
    summary: str
    facts: tuple[tuple[str, str], ...] = ()
    search: str = ""


@dataclass(frozen=True)
class Section:
    """A page."""

    title: str
    name: str
    entries: tuple[Entry, ...]


def sections(base: RuleBase, verdicts: Verdicts) -> list[Section]:
    """All pages in their order."""
    blocks: dict[str, Mapping[str, BlockRecord]] = {
        "Devices": base.devices,
        "Levels": base.levels,
        "Strategies": base.strategies,
        "Schedules": base.schedules,
    }
    blocks |= {"Fusion": base.fuses, "Layouts": base.layouts}
    return [
        Section("Operators", "operators", tuple(_operators(base))),
        Section("Rewrites", "rewrites", tuple(_rule(rule, base, verdicts) for rule in base.rewrites)),
        Section("Eliminations", "eliminations", tuple(_rule(rule, base, verdicts) for rule in base.eliminates)),
        Section("Index rules", "index_rules", tuple(_rule(rule, base, verdicts) for rule in base.index_rules)),
        Section("Kept operators", "keeps", tuple(_rule(rule, base, verdicts) for rule in base.keeps)),
        Section("Functions", "functions", tuple(_functions(base))),
        Section("Tables", "tables", tuple(_plain(table, "") for table in base.tables.values())),
        *(
            Section(title, title.lower(), tuple(_plain(one.block, one.block.comment) for one in found.values()))
            for title, found in blocks.items()
        ),
    ]


def language() -> dict[str, object]:
    """The built-in functions, the keys of blocks and the codes of messages."""
    functions = [("of lists and numbers", LIST_DOCS), ("of elements", ELEMENT_DOCS), ("of guards", GUARD_DOCS)]
    blocks = {kind: keys_of(record_type(kind)) for kind in BLOCK_WORDS if kind not in SUBJECTS}
    blocks |= {f"schedule for contraction, template {name}": keys_of(one) for name, one in CONTRACTIONS.items()}
    blocks |= {f"schedule for {name}": keys_of(one) for name, one in CLASSES.items()}
    blocks |= {f"fuse for {name}": keys_of(one) for name, one in PASSES.items()}
    return {"functions": functions, "blocks": blocks, "codes": [(str(code), EXPLANATIONS[code]) for code in Code]}


def _operators(base: RuleBase) -> list[Entry]:
    found = []
    for name in sorted(base.operators):
        for number, operator in enumerate(base.operators[name]):
            lines = [print_signature(operator)]
            lines += [
                f"    require {print_expression(condition)}" for condition in (*operator.requires, *operator.expects)
            ]
            lines += [f"    let {let.name} = {print_expression(let.value)}" for let in operator.lets]
            lines += [f"    {print_definition(equation)}" for equation in operator.equations]
            anchor = name if not number else f"{name}-{number + 1}"
            found.append(
                _entry(operator, name, anchor, "\n".join(lines), _onnx(operator), _operator_facts(base, operator))
            )
    return found


def _operator_facts(base: RuleBase, operator: s.Operator) -> list[tuple[str, str]]:
    facts = []
    derived = derive(base, operator)
    if derived is not None:
        facts += [("class", f"{derived.layout}: {derived.layout_reason}")]
        facts += [("mapping", f"{derived.mapping}: {derived.mapping_reason}")]
        facts += [("reduces", ", ".join(derived.reduces))] if derived.reduces else []
        facts += [("for example", derived.example)]
    return facts + ([("commutative", "patterns match both orders")] if operator.commutative else [])


def _onnx(operator: s.Operator) -> str:
    if operator.onnx is None:
        return "internal: no ONNX operator stands for it"
    binding = operator.onnx
    until = "on" if binding.until is None else f"to {binding.until}"
    return f"{binding.domain}::{binding.name}, opset {binding.since} {until}"


def _rule(rule: s.Rule, base: RuleBase, verdicts: Verdicts) -> Entry:
    lines = [print_equation(rule)]
    lines += [f"    where {print_guards(rule)}"] if rule.guards else []
    facts: list[tuple[str, str]] = []
    if isinstance(rule, s.Rewrite | s.Eliminate):
        facts.append(("rule set", rule.ruleset))
    if isinstance(rule, s.Rewrite):
        facts += [("relaxes", ", ".join(rule.relaxes))] if rule.relaxes else []
        facts += [("explores", "the right side need not be smaller")] if rule.explores else []
        facts += [("unsound", rule.unsound)] if rule.unsound is not None else []
    if isinstance(rule, s.Keep) and rule.defers:
        facts.append(("defers", "until the plan is made, which computes it where a kernel reads floats"))
    facts += [("tags", ", ".join(rule.tags))] if rule.tags else []
    facts += [("from", rule.cites)] if rule.cites is not None else []
    if isinstance(rule, s.Rewrite) and rule.unsound is None:
        facts.append(("types", _types(rule, base)))
    if not (isinstance(rule, s.Rewrite) and rule.unsound is not None):
        facts.append(("verified", verdicts.get(rule.name, "not yet: `smartmem verify` does it")))
    return _entry(rule, rule.name, rule.name, "\n".join(lines), rule.comment, facts)


def _types(rule: s.Rewrite, base: RuleBase) -> str:
    """How it is known that both sides have one type."""
    proof = prove_types(base, rule.left, rule.right, rule.guards)
    if proof is not None and proof.holds:
        return "both sides have one type, proved for all ranks and extents"
    return "both sides have one type at all operand types that were tried"


def _functions(base: RuleBase) -> list[Entry]:
    items: list[s.Function | s.Predicate | s.Constant] = [
        *base.functions.values(),
        *base.predicates.values(),
        *base.constants.values(),
    ]
    return [_plain(item, getattr(item, "comment", "")) for item in sorted(items, key=lambda item: item.name)]


def _plain(item: s.Function | s.Predicate | s.Constant | s.Table | s.Block, summary: str) -> Entry:
    return _entry(item, item.name, item.name, print_item(item), summary, [])


def _entry(item: s.Declaration, name: str, anchor: str, code: str, summary: str, facts: list[tuple[str, str]]) -> Entry:
    file = Path(item.span.file)
    shown = file.relative_to(rules_path()) if file.is_relative_to(rules_path()) else Path(file.name)
    words = " ".join([name, summary, code, *(value for _, value in facts)]).lower()
    return Entry(name, anchor, shown.as_posix(), item.span.line, code, summary, tuple(facts), words)
