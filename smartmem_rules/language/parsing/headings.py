"""What is wrong with the first line of an item, or with what an item consists of."""

from __future__ import annotations

import re

from smartmem_rules.language.expressions import Span
from smartmem_rules.language.fixes import Edit, Fix, advice, before, behind, edit, inserted, replacement
from smartmem_rules.language.parsing.stops import Stop

_GUARD_WORDS = ("require", "requires", "assert", "given", "provided", "when", "unless", "with", "guard", "guards")
_IMPORT_WORDS = ("include", "require", "use", "using", "load", "from", "source")
_OF_NO_SET = re.compile(r"(keep|derive|index|family|table)\s+\w+\s+in\s*$")
_CLAUSES = ("where", "let", "explores", "relaxes", "tags", "cites")
_UPPER_CASE_LET = re.compile(r"\blet\s+([A-Z]\w*)\s*=[^=]")
_SIDES = "a rule has two sides: `rewrite NAME in RULESET`, then `LEFT => RIGHT`"


def headings(stop: Stop) -> Fix | None:
    """What to write in place of what stops the parse."""
    return _of_rules(stop) or _of_sets(stop) or _of_operators(stop) or _of_values(stop)


def _of_rules(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if re.match(r"rewrite\b", text) is None:
        return None
    if found == "{" and re.fullmatch(r"rewrite\s+\w+(\s+in\s+\w+)?\s*", text):
        return advice(f"rules have no braces: {_SIDES.partition(': ')[2]}")
    if found == "the end of the text" and re.fullmatch(r"rewrite\s+\w+\s+in\s+\w+\s*", text):
        return advice(_SIDES)
    if found == "the end of the text" and re.search(r"<?=>\s*$", text):
        return advice("the right side is missing: write a pattern behind `=>`")
    if found in ("=>", "<=>") and re.search(r"=>", text) and not re.search(r"\bwhere\b", text):
        return advice("a rule has two sides: write a second rule for the third")
    if found in _GUARD_WORDS and "WHERE" in stop.accepted:
        return replacement("guards stand behind `where`", stop.span, "where")
    if found.isdigit() and re.search(r"^rewrite\s*$", text):
        return advice("a name begins with a letter: `rewrite NAME in RULESET`")
    if found.startswith("-") and re.search(r"^rewrite\s+\w+$", text):
        return replacement("a name is one word: letters, digits and `_`", stop.here(1), "_")
    if found == "is":
        return _is(stop)
    if re.fullmatch(r"\w+", found) and re.search(r"[(,\s][A-Z]\w* +$", text) and "LPAR" in stop.accepted:
        return advice(f"operands stand in parentheses: `{text.split()[-1].split('(')[-1]}({found})`")
    upper = _UPPER_CASE_LET.search(text)
    if upper is not None and found in _CLAUSES:
        name = upper[1]
        small = name[0].lower() + name[1:]
        return advice(f"the names of a rule's values begin with lower-case letters: `let {small} = ...`")
    return None


def upper_case_let(stop: Stop) -> Span | None:
    """The name of a value of a rule that reads like a constant's: parsing goes on, and stops at the next clause."""
    match = _UPPER_CASE_LET.search(stop.text)
    if match is None or stop.found not in _CLAUSES or re.match(r"rewrite\b", stop.before) is None:
        return None
    line = stop.text.count("\n", 0, match.start(1)) + 1
    column = match.start(1) - stop.text.rfind("\n", 0, match.start(1))
    return stop.span._replace(line=line, column=column, end_line=line, end_column=column + len(match[1]))


def _is(stop: Stop) -> Fix:
    """`a is not None`, or `is` in place of `==`."""
    rest = stop.line[stop.span.column - 1 :]
    none = re.match(r"is\s+(not\s+)?(None|none|null|nil)\b", rest)
    owner = re.search(r"([A-Za-z_]\w*)\s*$", stop.line[: stop.span.column - 1])
    if none is None or owner is None:
        return replacement("write `==`", stop.span, "==")
    said = f"present({owner[1]})" if none[1] else f"not present({owner[1]})"
    return replacement(f"write `{said}`", stop.here(none.end())._replace(column=owner.start() + 1), said)


def _of_sets(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if found == "{" and (ruleset := re.fullmatch(r"ruleset\s+(\w+)\s*", text)):
        return advice(f"rules name their set, nothing stands inside of it: `rewrite NAME in {ruleset[1]}`")
    of_none = _OF_NO_SET.match(text)
    if of_none is not None:
        return advice(f"`{of_none[1]}` belongs to no rule set: leave `in {found}` out")
    rest = stop.line[stop.span.end_column - 1 :].lstrip()
    if found in _IMPORT_WORDS and "IMPORT" in stop.accepted and rest.startswith('"'):
        return replacement("write `import`", stop.span, "import")
    if re.match(r"family\b", text):
        commas = [Edit(one, " |") for one in stop.along(",")]
        if found in (":", ":=") and "EQUAL" in stop.accepted:
            return edit("write `family NAME = Relu | Exp`", Edit(stop.here(len(found)), "="), *commas)
        if found == ",":
            return edit("members stand between `|`", *commas)
    if found == "=" and re.match(r"analysis\b", text):
        return advice("an analysis reads `analysis FACT(e: float): bool merge or means CONDITION`")
    heading = re.match(r"(function|predicate)\s+(\w+)\s*$", text)
    if heading is not None and found == "=":
        lambda_ = re.match(r"=\s*lambda\s+([\w\s,]*):\s*(.+?)\s*$", stop.line[stop.span.column - 1 :])
        parameters, body = (lambda_[1].strip(), lambda_[2]) if lambda_ is not None else ("a", "...")
        constant = "" if lambda_ is not None else "; a constant reads `let NAME = VALUE`"
        return advice(f"its parameters follow the name: `{heading[1]} {heading[2]}({parameters}) = {body}`{constant}")
    if found == ":" and re.match(r"(function|predicate)\s+\w+\s*\([^)]*\)\s*$", text):
        return replacement("write `=` and the value, without `return`", stop.here(1), " =")
    if re.match(r"(function|predicate)\b", text) and found in (">", "=>", "->") and re.search(r"\)\s*[=-]?$", text):
        if text.endswith(("=", "-")):
            return replacement("write `=`", stop.span._replace(column=stop.span.column - 1), "=")
        return replacement("write `=`", stop.here(2), "=")
    return None


def _of_operators(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if re.match(r"operator\b", text) is None:
        return None
    if "{" not in text:
        return _of_signature(stop)
    if found == "=" and (tensor := re.search(r"[{\n]\s*(\w+)\s*$", text)) and stop.signs == {"["}:
        return _indexed(stop, tensor[1])
    if re.search(r"[{\n]\s*(for|while)\s*$", text):
        return advice("there are no loops: an equation gives the elements at all indices, `y[i] = ...`")
    if found in ("+", "-", "*", "/") and stop.line[stop.span.column : stop.span.column + 1] == "=":
        return replacement("one equation gives all elements: write `=`", stop.here(2), "=")
    if found.startswith('"') and re.search(r"\bonnx\s*$", text):
        return replacement("without quotes", stop.span, found.strip('"'))
    return None


def _indexed(stop: Stop, tensor: str) -> Fix:
    """An equation without indices: those of the shape that the signature gives an output, or of how it is read."""
    word = re.escape(tensor)
    output = re.search(rf"->[^{{]*?\b{word}\s*:\s*\w+\s*(?:\[([^\]]*)\])?", stop.before.partition("{")[0])
    scalar = (output is not None and not (output[1] or "").strip()) or (
        output is None and re.search(rf"\b{word}\[\s*\]", stop.rest) is not None
    )
    body = stop.rest.partition("\n")[0]
    if output is None and not re.search(rf"\b{word}\[", stop.rest) and _adds_all_up(body):
        at = len(stop.text)
        reads = re.compile(rf"\b{word}\b(?!\s*[\[(=:])").finditer(stop.whole, at)
        places = (behind(stop.between(*read.span())) for read in reads)
        said = f"a scalar has no indices, but its brackets: `{tensor}[] = ...`, and reads say `{tensor}[]`"
        return edit(said, *(Edit(one, "[]") for one in (stop.behind_text(), *places)))
    axes = [part.strip() for part in output[1].split(",")] if output is not None and output[1] else []
    indices = ", ".join(axis.lower() for axis in axes)
    if not scalar and (not axes or not all(re.fullmatch(r"\*?[A-Z]\w*", axis) for axis in axes)):
        return advice(f"an equation has indices: `{tensor}[*i] = ...`")
    said = "a scalar has no indices, but its brackets" if scalar else "an equation has indices"
    return inserted(f"{said}: `{tensor}[{indices}] = ...`", stop.behind_text(), f"[{indices}]")


def _adds_all_up(body: str) -> bool:
    """Whether an equation is a reduction over all the indices that it reads with."""
    reduction = re.match(r"=\s*(?:sum|prod|max|min|mean|any|all)\(([^()]*)\)(.*)", body)
    if reduction is None:
        return False
    bound = set(re.findall(r"([a-z_]\w*)\s*<", reduction[1]))
    read = {name for items in re.findall(r"\[([^\[\]]*)\]", reduction[2]) for name in re.findall(r"[a-z_]\w*", items)}
    return bool(bound) and read <= bound


def _of_signature(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if found == "=" and re.search(r",\s*\w+\s*:\s*\w+\s*$", text) and ";" not in text:
        return _attributes_behind(stop)
    if found == ">" and re.search(r"<\s*\w+\s*$", text):
        return advice("a variable of dtypes has a class: `<T: float>`")
    if re.search(r"->\s*\w+\s*\[\s*\*?\w+\s*$", text) and found in (",", "]", "*"):
        return advice("an output has a name: `-> y: T[N, K]`")
    if found == "[" and re.search(r":\s*$", text):
        places = [before(one) for one in stop.along(r":\s*(\[)", 1)]
        return edit("a shape follows its dtype: `T[...]`", *(Edit(one, "T") for one in (before(stop.span), *places)))
    if found == "(" and re.search(r":\s*\w+\s*$", text):
        return advice("extents stand in square brackets: `T[N, K]`")
    if "COMMA" in stop.accepted and re.search(r"\]\s*$", text) and re.fullmatch(r"\w+", found) and "->" not in text:
        return edit("operands stand between commas", Edit(stop.behind_text(), ","))
    return None


def _attributes_behind(stop: Stop) -> Fix:
    """The comma before an attribute among the inputs becomes `;`."""
    said = "attributes stand behind the inputs and a `;`: `(x: T[*S]; axis: int = -1)`"
    place = stop.line.rfind(",", 0, stop.span.column - 1)
    if place < 0 or stop.line.count("=", 0, stop.span.column - 1):
        return advice(said)
    return replacement(said, stop.span._replace(column=place + 1, end_column=place + 2), ";")


def _of_values(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if found.startswith('"') and re.search(r"\b(tags|relaxes|in|family|ruleset)\s*$", text):
        return replacement("names stand without quotes", stop.span, found.strip('"'))
    if "STRING" in stop.accepted and found == "the end of the text" and (word := re.search(r"\b(\w+)\s*$", text)):
        return advice(f'text follows between double quotes: `{word[1]} "..."`')
    if "STRING" in stop.accepted and re.search(r"\b(cites|unsound|reference)\s*$", text) and found[:1].isalpha():
        rest = stop.line[stop.span.column - 1 :].rstrip()
        end = stop.span.column + len(rest)
        whole = stop.span._replace(end_line=stop.span.line, end_column=end)
        return replacement(f'text stands between double quotes: write `"{rest}"`', whole, f'"{rest}"')
    return None
