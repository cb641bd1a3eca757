"""How to mend what other languages write in place of what stands in a rule file."""

from __future__ import annotations

import re
from collections.abc import Collection

from smartmem_rules.language.parsing.expectation import COMPARISONS

_INSTEAD = {
    "&": "write `and`, or a comma between two guards",
    "|": "write `or`",
    "!": "write `not`",
    "elif": "write `else if`",
    "//": "a comment begins with `#`",
    "/*": "a comment begins with `#`",
    "->": "write `=>`",
    "rule": "write `rewrite NAME in RULESET`",
    "def": "write `function`",
}
_ATTRIBUTE_AMONG_OPERANDS = re.compile(r"\brewrite\b.*\([^();]*\w\s*$", re.DOTALL)
_RANGELESS = re.compile(r"\b(sum|max|min|prod|mean|any|all)\s*\(\s*\*?[A-Za-z_]\w*\s*\)\s*[\w(]")


def hint(found: str, accepted: Collection[str], line: str, column: int, before: str) -> str | None:
    """A fix for what cannot stand at a place.

    Args:
        found: what stands there.
        accepted: the names of the terminals that could.
        line: the line of it, `column` counts from 1.
        before: all text of the item up to there.
    """
    rest = line[column - 1 :]
    for word in (rest[:2], found, rest[:1]):
        if word in _INSTEAD and (word != "->" or "__ANON_3" in accepted or "=>" in accepted):
            return _INSTEAD[word]
    if _RANGELESS.search(before):
        return "a reduction names its range: `sum(k < K) x[k]`"
    if re.search(r"\b(sum|max|min|prod|mean|any|all)\s*\([^()]*<[^()]*,[^()]*$", before):
        return "what is reduced stands behind the parentheses: `sum(k < K) x[k]`"
    if found == ">" and before.endswith("-"):
        return _INSTEAD["->"]
    if found in COMPARISONS:
        return "write `a < b and b < c`: comparisons do not chain"
    if found == "=" and "SEMICOLON" in accepted and _ATTRIBUTE_AMONG_OPERANDS.search(before):
        return "attributes stand behind the operands and a `;`: `Softmax(x; axis = 1)`"
    if found == "=" and "EQUAL" not in accepted:
        return "write `==` to compare"
    if found == ";" and "SEMICOLON" not in accepted:
        return "nothing ends with `;` here"
    if found in "+-*/" and "LPAR" in accepted and re.search(r"\brewrite\b[^=]*$", before):
        return "a pattern names operators: `Add(x, 0)`"
    return _missing(found, accepted, before)


def _missing(found: str, accepted: Collection[str], before: str) -> str | None:
    """What was left out before the place."""
    if "IN" in accepted and re.search(r"\brewrite\s+\w+\s*$", before):
        return "a rule names its rule set: `rewrite NAME in algebra`"
    if "STRING" in accepted and re.search(r"\bimport\s*$", before):
        return 'write the file between quotation marks: `import "other.smr"`'
    if "SEMICOLON" in accepted and re.search(r"\bonnx\s+\S+\s*$", before):
        return "an `onnx` clause ends with `;`"
    if "COLON" in accepted and re.search(r"\boperator\b[^{]*$", before):
        return "an operand has a type: `x: T[*S]`"
    if found == "[" and re.search(r"\bfor\b.*\bin\s*$", before):
        return "the members stand without brackets: `for Op in Relu, Exp { ... }`"
    if found == "," and "CELL" in accepted:
        return "the cells of a row stand apart by blanks, without commas"
    return None
