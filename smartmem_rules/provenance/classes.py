"""The classes of a saturation as terms see them: constants of the same bits are one term, and so is what reads them.

A saturation knows the constants of a model by their names. Two of them with the same elements are two classes for it,
as are their results, where the terms of a certificate, which know constants by their elements, are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from smartmem_rules.certificate.terms import CONSTANT, INPUT, OPAQUE, OUT, VIEW
from smartmem_rules.egraph.model import ENode, Saturation
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import attribute_key

Form = tuple[object, ...]
"""An operator, the classes of its operands and its attributes."""


@dataclass(frozen=True)
class Classes:
    """Classes by their forms, each by the number of one of those that are the same."""

    of_form: Mapping[Form, int]
    same: Mapping[int, int]

    def one(self, class_: int) -> int:
        """The number by which a class is known here."""
        while class_ in self.same:
            class_ = self.same[class_]
        return class_

    def all(self, classes: Iterable[int]) -> tuple[int, ...]:
        """The numbers by which some classes are known here."""
        return tuple(map(self.one, classes))


def classes_of(saturation: Saturation, terms: Mapping[str, int]) -> Classes:
    """The classes of a saturation, those joined that hold one term, and those whose forms are the same by that.

    Args:
        terms: the term of each tensor of the model.
    """
    same: dict[int, int] = {}
    forms: dict[Form, int] = {}
    classes = Classes(forms, same)
    first: dict[int, int] = {}
    for name, number in terms.items():
        if name in saturation.tensor_class:
            _join(classes, same, first.setdefault(number, saturation.tensor_class[name]), saturation.tensor_class[name])
    while True:
        before = len(same)
        forms.clear()
        for number, one in saturation.classes.items():
            for node in one.nodes:
                form = _form_of(node, classes.all(node.children))
                _join(classes, same, forms.setdefault(form, classes.one(number)), number)
        if len(same) == before:
            return classes


def _join(classes: Classes, same: dict[int, int], kept: int, other: int) -> None:
    kept, other = classes.one(kept), classes.one(other)
    if kept != other:
        same[other] = kept


def _form_of(node: ENode, children: tuple[int, ...]) -> Form:
    """What a node is, over classes."""
    key: object
    match node.operator:
        case x if x == VIEW:
            key = node.attributes["map"]
        case x if x == OUT:
            key = node.attributes["index"]
        case x if x == OPAQUE:
            key = node.attributes["node"]
        case x if x in (INPUT, CONSTANT):
            key = node.attributes["name"]
        case _:
            key = attribute_key(node.attributes)
    return node.operator, children, key
