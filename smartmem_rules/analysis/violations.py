"""Operands that a signature admits and at which a definition reads outside of a tensor, as small as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

from smartmem_rules.analysis.probes import EXTENTS, Drawing, Operand
from smartmem_rules.analysis.tries import MISCOUNTED
from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.definitions.inside import OutsideError
from smartmem_rules.tensor.instantiate import Definitions, instantiate_overload
from smartmem_rules.tensor.types import TensorType

ATTEMPTS = 90
_ROUNDS = 12
_WIDE_ATTEMPTS = 40
_LARGEST_DIVISOR = 256


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Operands and attributes, and what is read outside at them."""

    operands: tuple[Operand, ...]
    attributes: Mapping[str, Value]
    message: str
    number: int
    extents: Mapping[str, Value]

    @property
    def size(self) -> tuple[int, int]:
        """How large the operands are, for comparison."""
        shapes = [operand.shape for operand in self.operands if operand is not None]
        return sum(sum(shape) + len(shape) for shape in shapes), sum(map(_magnitude, self.attributes.values()))

    def __str__(self) -> str:
        formals = ", ".join("-" if operand is None else str(operand) for operand in self.operands)
        given = ", ".join(f"{name} = {_shown(value)}" for name, value in self.attributes.items())
        return f"({formals}{'; ' if given else ''}{given})"


def smallest_violation(base: Definitions, operator: s.Operator, attempts: int = ATTEMPTS) -> Violation | None:
    """A violation of one overload, made smaller as long as it stays one; None where none was found."""
    found = _smallest(base, operator, range(attempts), EXTENTS)
    if found is None and (sizes := _beside_numbers(operator)):
        found = _smallest(base, operator, range(_WIDE_ATTEMPTS), sizes)
    if found is None:
        return None
    for _ in range(_ROUNDS):
        smaller = next(
            (
                one
                for extents in _smaller(found.extents)
                if (one := _at(base, operator, found.number, extents)) is not None and one.size < found.size
            ),
            None,
        )
        if smaller is None:
            break
        found = smaller
    return found


def _smallest(
    base: Definitions, operator: s.Operator, numbers: Iterable[int], sizes: Sequence[int]
) -> Violation | None:
    """The smallest of the violations that the drawings of some numbers give."""
    found: Violation | None = None
    for number in numbers:
        one = _at(base, operator, number, {}, sizes)
        if one is not None and (found is None or one.size < found.size):
            found = one
    return found


def _beside_numbers(operator: s.Operator) -> tuple[int, ...]:
    """Extents around the numbers by which a definition divides: below them a group is not full, above there are two."""
    defaults = {one.name: one.default for one in operator.attributes}
    divisors = [
        defaults.get(node.right.id) if isinstance(node.right, s.Name) else node.right
        for node in nodes(operator.equations)
        if isinstance(node, s.Binary) and node.operator in ("//", "%")
    ]
    numbers = {int(one.value) for one in divisors if isinstance(one, s.Number)}
    wide = sorted(one for one in numbers if max(EXTENTS) <= one <= _LARGEST_DIVISOR)
    return (1, 2, *(size for one in wide for size in (one, one + 1, 2 * one, 2 * one + 1))) if wide else ()


def _at(
    base: Definitions,
    operator: s.Operator,
    number: int,
    extents: Mapping[str, Value],
    sizes: Sequence[int] = EXTENTS,
) -> Violation | None:
    """What the drawing of a number gives at some extents."""
    drawing = Drawing(base, operator, Random(number), number, dict(extents), sizes=sizes, eager=number % 2 == 1)
    operands: list[Operand] = []
    attributes: dict[str, Value] = {}
    try:
        operands, attributes = drawing.operands({}), drawing.attributes({})
        operands = _unlike(operator, operands, number)
        instantiate_overload(base, operator, operands, attributes, drawing.outputs)
    except (OutsideError, DefinitionError) as failure:
        miscounted = MISCOUNTED.search(str(failure)) is not None and _of_one_list(operator)
        if not isinstance(failure, OutsideError) and not miscounted:
            return None
        return Violation(
            operands=tuple(operands),
            attributes=attributes,
            message=str(failure),
            number=number,
            extents=dict(drawing.extents),
        )
    except (Unsupported, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return None
    return None


def _of_one_list(operator: s.Operator) -> bool:
    """Whether all lists of axes in a signature are the same one, so that nothing else says how many axes there are."""
    types = [*(item.type for item in operator.inputs), *(output.type for output in operator.outputs)]
    shapes = [type_.shape for type_ in types if type_ is not None]
    lists = [item.operand for shape in shapes for item in shape if isinstance(item, s.Splat)]
    return len(set(lists)) == 1 and isinstance(lists[0], s.Name) and not operator.requires


def _unlike(operator: s.Operator, operands: list[Operand], number: int) -> list[Operand]:
    """The operands with members of a list that differ along some axis: a signature says nothing of that."""
    fixed = sum(1 for item in operator.inputs if item.constant is None and not item.variadic)
    if not any(item.variadic for item in operator.inputs) or number % 2 == 0:
        return operands
    source = Random(number)
    for place in range(fixed + 1, len(operands)):
        member = operands[place]
        if member is not None and member.shape:
            axis, shape = source.randrange(len(member.shape)), list(member.shape)
            shape[axis] = max(1, shape[axis] + source.choice((1, -1)))
            operands[place] = TensorType(member.dtype, tuple(shape))
    return operands


def _smaller(extents: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """The extents with one of them less."""
    for name, value in extents.items():
        if isinstance(value, int) and value > 1:
            yield from ({**extents, name: less} for less in dict.fromkeys((1, value // 2, value * 3 // 4, value - 1)))
        elif isinstance(value, tuple):
            if value:
                yield {**extents, name: value[1:]}
            for axis, extent in enumerate(value):
                if isinstance(extent, int) and extent > 1:
                    yield {**extents, name: (*value[:axis], extent - 1, *value[axis + 1 :])}


def _magnitude(value: Value) -> int:
    if isinstance(value, tuple):
        return sum(map(_magnitude, value)) + len(value)
    return abs(int(value)) if isinstance(value, int | float) and abs(value) < 1e6 else 1


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
