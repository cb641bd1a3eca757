"""Terms of a row's sum that its values need again."""

from __future__ import annotations

from smartmem_rules.emit.c.reduction_cse import share_terms
from smartmem_rules.language.blocks.device import TextChoices
from smartmem_rules.plan.kernel.model import Stage
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Apply, Expr, Read, Reduce, walk
from smartmem_rules.tensor.index import variable

TEXT = TextChoices()


def exponential(var: Var) -> Expr:
    centred = Apply("sub", (Read("x", (variable(var),), "float32"), Read("m", (), "float32")), "float32")
    return Apply("exp", (centred,), "float32")


def softmax(extent: int, own: int) -> tuple[tuple[Stage, ...], Expr]:
    """The sum of a softmax's exponentials, and its values along a variable of another extent."""
    inside, outside = Var("j", extent), Var("k", own)
    total = Stage("s", (), Reduce("sum", (inside,), exponential(inside), "float32"), "float32")
    return (total,), Apply("div", (exponential(outside), Read("s", (), "float32")), "float32")


def test_exponentials_are_kept() -> None:
    stages, value = softmax(7, 7)
    (terms, total), (changed,) = share_terms(stages, (value,), TEXT)
    assert terms.axes == (Var("j", 7),)
    assert terms.body == exponential(Var("j", 7))
    assert total.body == Reduce("sum", (Var("j", 7),), Read(terms.name, (variable(Var("j", 7)),), "float32"), "float32")
    quotient = (Read(terms.name, (variable(Var("k", 7)),), "float32"), Read("s", (), "float32"))
    assert changed == Apply("div", quotient, "float32")


def test_values_of_other_elements_are_computed() -> None:
    stages, value = softmax(7, 5)
    assert share_terms(stages, (value,), TEXT) == (stages, (value,))


def test_cheap_terms_are_computed_again() -> None:
    inside, outside = Var("j", 7), Var("k", 7)
    double = Apply("mul", (Read("x", (variable(inside),), "float32"),) * 2, "float32")
    again = Apply("mul", (Read("x", (variable(outside),), "float32"),) * 2, "float32")
    stages = (Stage("s", (), Reduce("sum", (inside,), double, "float32"), "float32"),)
    assert share_terms(stages, (again,), TEXT) == (stages, (again,))


def test_long_rows_are_not_kept() -> None:
    stages, value = softmax(TEXT.term_length + 1, TEXT.term_length + 1)
    assert share_terms(stages, (value,), TEXT) == (stages, (value,))


def test_values_that_need_no_terms_stay() -> None:
    stages, _ = softmax(7, 7)
    value = Read("s", (), "float32")
    found, last = share_terms(stages, (value,), TEXT)
    assert (found, last) == (stages, (value,))
    assert not any(isinstance(n, Read) and n.tensor.endswith("@terms") for n in walk(last[0]))
