"""Several axes at once as other languages write them: `x[..., 0]`, and a star without a name."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import advice
from smartmem_rules.language.parsing.slips.slip import Slip, all_of
from smartmem_rules.language.parsing.stops import Stop

_DOTS = r"\.\.\."
_STAR = r"\*(?=\s*[,\]])"


def axes(stop: Stop) -> Slip | None:
    """What to write for `...`, or a star alone, among the indices or extents of a tensor."""
    place, text = len(stop.text), stop.text
    stepped = _steps(stop)
    if stepped is not None:
        return stepped
    # the parser stops behind a star, where its name is missing
    at = place if stop.rest.startswith("...") else len(text.rstrip()) - 1
    if not re.match(rf"{_DOTS}|{_STAR}", stop.whole[at:]) or not re.search(r"\[[^\[\]()]*$", stop.whole[:at]):
        return None
    if re.match(r"operator\b", stop.before) is None:
        return None
    sign = "..." if at == place else "*"
    pattern = rf"(?<=[\[,\s])(?:{_DOTS if sign == '...' else _STAR})(?=[^\[\]\n]*\])"
    body = text.find("{") if "{" in text else len(stop.whole)
    if at < body:
        end = stop.whole.find("{", at)
        said = "several extents are a list with a name: write `*S`"
        return Slip(all_of(stop, said, pattern, "*S", 0, None if end < 0 else end), stop.between(at, at + len(sign)))
    return _indices(stop, at, sign, pattern)


def _indices(stop: Stop, at: int, sign: str, pattern: str) -> Slip:
    """Of an equation: the list of indices on its left side that stands for those axes."""
    whole = stop.whole
    line = whole.rfind("\n", 0, at) + 1
    end = whole.find("\n", at)
    equation = re.compile(r"\s*(?:view\s+)?\w+\s*\[([^\[\]]*)\]\s*=(?!=)").match(whole, line)
    where = stop.between(at, at + len(sign))
    message = f"`{sign}` is no index here"
    if equation is not None:
        named = re.search(r"\*(\w+)", equation[1])
        name = named[1] if named is not None else "i"
        if named is not None or re.search(pattern, f"[{equation[1]}]"):
            said = f"the axes of a list such as `*S` are read at a list of indices: write `*{name}`"
            return Slip(all_of(stop, said, pattern, f"*{name}", line, None if end < 0 else end), where, message)
    said = "write an index for each axis, and `*i` for the axes of a list: `x[*i, k]` of `x: T[*S, K]`"
    return Slip(advice(said), where, message)


def _steps(stop: Stop) -> Slip | None:
    """A slice with steps, `x[::-1]` or `x[0:N:2]`: an equation reads one element, at an index that is computed."""
    steps = re.match(r":\s*(-?)\s*(\w*)\s*[,\]]", stop.rest)
    begun = re.search(r"\[(?:[^\[\]]*,)?\s*([^\[\]:,]*:[^\[\]:,]*)$", stop.text)
    if stop.found != ":" or steps is None or begun is None or re.match(r"operator\b", stop.before) is None:
        return None
    step = steps[2] or "1"
    said = f"every element whose number is a multiple of {step} is read at `{step} * k`"
    if steps[1]:
        said = "backwards it is `K - 1 - k`, for an axis of K elements and its index k"
    where = stop.between(begun.start(1), len(stop.text) + steps.end() - 1)
    return Slip(advice(f"an equation says at which index it reads one element: {said}"), where, "a slice is no index")
