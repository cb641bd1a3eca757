"""What an editor shows over a name."""

from __future__ import annotations

from smartmem_rules.analysis.derivation import derive
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expansion import family_name
from smartmem_rules.language.printing.builtin_docs import DOCS, KEYWORDS
from smartmem_rules.language.printing.printer import (
    print_definition,
    print_equation,
    print_expression,
    print_guards,
    print_item,
    print_let,
    print_signature,
)
from smartmem_rules.language.schema import keys_of_kind
from smartmem_rules.language.vocabulary import BLOCK_WORDS
from smartmem_rules.lsp.library import Library
from smartmem_rules.lsp.symbols import Symbol
from smartmem_rules.rulebase.verdicts import recorded


def hover(library: Library, symbol: Symbol) -> str | None:
    """Markdown about a name, None where nothing is known of it."""
    definitions = [one.item for one in library.definitions(symbol)]
    if symbol.kind == "operator" and not any(isinstance(one, s.OperatorFamily) for one in definitions):
        return operator_text(library, symbol.name)
    if not definitions:
        return word_text(symbol.name)
    item = definitions[0]
    match item:
        case s.Rewrite() | s.Eliminate() | s.IndexRule() | s.Derive() | s.Keep():
            return f"{rule_text(item)}\n\n{status_text(library, item.name)}"
        case s.Function() | s.Predicate() | s.Analysis() | s.Constant():
            comment = getattr(item, "comment", "")
            return code(print_item(item).split("   # ")[0]) + (f"\n\n{comment}" if comment else "")
        case s.Input(type=s.TensorType()) | s.Attribute() | s.Input():
            return code(f"{symbol.name}: {_kind(item)}")
        case s.Let(name=name, value=value):
            return code(f"let {name} = {print_expression(value)}")
        case s.RuleLet():
            return code(print_let(item))
        case s.EquationSyntax():
            return code(print_definition(item))
        case s.Block() | s.Table() | s.Ruleset() | s.OperatorFamily():
            return code(print_item(item))
        case s.PatternVariable():
            return "a tensor that the left side binds"
        case _:
            return word_text(symbol.name)


def operator_text(library: Library, name: str) -> str | None:
    """Signature, class and equations of all overloads of an operator."""
    base = library.rules()
    parts = []
    for operator in base.operators.get(name, ()):
        text = code("\n".join([print_signature(operator), *(f"    {print_definition(e)}" for e in operator.equations)]))
        derived = derive(base, operator)
        if derived is not None:
            text += f"\n\n**{derived.layout}**, **{derived.mapping}**: {derived.layout_reason}"
        parts.append(text)
    return "\n\n---\n\n".join(parts) or None


def rule_text(rule: s.Rule) -> str:
    """Equation, guards and what a rule relaxes."""
    lines = [f"{rule.name}" + (f"   # {rule.comment}" if rule.comment else ""), f"    {print_equation(rule)}"]
    lines += [f"    where {print_guards(rule)}"] if rule.guards else []
    if isinstance(rule, s.Rewrite):
        lines += [f"    relaxes {', '.join(rule.relaxes)}"] if rule.relaxes else []
        lines += ["    explores"] if rule.explores else []
        lines += [f"    unsound: {rule.unsound}"] if rule.unsound is not None else []
    if isinstance(rule, s.Keep) and rule.defers:
        lines.append("    defers")
    lines += [f"    cites {rule.cites}"] if rule.cites is not None else []
    return code("\n".join(lines))


def status_text(library: Library, name: str) -> str:
    """What verification last said of a rule, or of each member of a family."""
    base = library.rules()
    verdicts = recorded(base)
    members = [rule.name for rule in base.rules() if family_name(rule.name) == name or rule.name == name]
    if not any(member in verdicts for member in members):
        return f"not verified as it stands: `smartmem verify --rule {name}`"
    if members == [name]:
        return f"verified: {verdicts[name]}"
    return "\n".join(f"- `{member}`: {verdicts.get(member, 'not verified')}" for member in members)


def word_text(word: str) -> str | None:
    """What a built-in function, a keyword or a key of a block means."""
    if word in DOCS:
        call, meaning = DOCS[word]
        return f"{code(call)}\n\n{meaning}"
    if word in KEYWORDS:
        return f"`{word}`: {KEYWORDS[word]}"
    meanings = [
        f"`{kind}` block: {key.meaning}" for kind in BLOCK_WORDS for key in keys_of_kind(kind) if key.name == word
    ]
    return "\n\n".join(meanings) or None


def _kind(item: s.Syntax) -> str:
    if isinstance(item, s.Attribute):
        default = f" = {print_expression(item.default)}" if item.default is not None else ""
        return f"{item.kind}{default}"
    if isinstance(item, s.Input) and item.type is not None:
        shape = ", ".join(print_expression(extent) for extent in item.type.shape)
        return f"{item.type.dtype}[{shape}]{'?' if item.optional else ''}"
    return str(getattr(item, "constant", ""))


def code(text: str) -> str:
    """A block of rule text."""
    return f"```smr\n{text}\n```"
