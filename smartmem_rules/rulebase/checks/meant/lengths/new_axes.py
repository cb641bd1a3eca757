"""`x[i, None]`, with which array libraries give what is read an axis more."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import left_out

_NEW = frozenset({"None", "none", "newaxis"})


def new_axes(read: s.Subscript, tensors: Collection[str], names: Collection[str]) -> Iterator[Diagnostic]:
    """The first word of a read that is no index but a new axis: the result has that axis, the tensor has not."""
    if not isinstance(read.base, s.Name) or read.base.id not in tensors:
        return
    for number, item in enumerate(read.items):
        if isinstance(item, s.Name) and item.id in _NEW - set(names):
            message = f"`{item.id}` is no index: an axis of the result that `{read.base.id}` has not is not read"
            fix = left_out(f"leave `{item.id}` out", [one.span for one in read.items], number)
            yield Diagnostic(Code.INDEX_COUNT, "error", message, item.span, fix=fix)
            return
