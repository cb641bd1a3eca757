"""Tries a definition at operand types and attributes that it accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from random import Random

from smartmem_rules.analysis.fitting import fitting, is_certain
from smartmem_rules.analysis.probes import WITHOUT_OPTIONALS, Drawing, Operand
from smartmem_rules.language import syntax as s
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.instantiate import Definitions, Instance, instantiate_overload


@dataclass(frozen=True)
class Probe:
    """One use of an operator that its definition accepts."""

    operands: tuple[Operand, ...]
    attributes: Mapping[str, Value] = field(hash=False)
    instance: Instance


@dataclass(frozen=True)
class Trial:
    """What trying a definition gave: uses that it accepts, or why there are none."""

    probes: tuple[Probe, ...]
    failure: DefinitionError | None
    reason: str


def tried(base: Definitions, operator: s.Operator, wanted: int, attempts: int = 60) -> Trial:
    """Up to `wanted` probes of one overload; an error that no other operands can mend ends the search."""
    probes: list[Probe] = []
    reason, failures = "", list[DefinitionError]()
    for number in range(attempts):
        drawing = Drawing(base, operator, Random(number), number)
        try:
            operands, attributes = drawing.operands({}), drawing.attributes({})
            instance = instantiate_overload(base, operator, operands, attributes, drawing.outputs)
        except Unsupported as unsupported:
            reason = str(unsupported)
            continue
        except DefinitionError as failure:
            if is_certain(failure):
                return Trial(tuple(probes), failure, str(failure))
            failures.append(failure)
            reason = str(failure)
            continue
        except Exception as failure:  # an author's definition may break anything; that must not end the check
            reason = repr(failure)
            continue
        probes.append(Probe(tuple(operands), attributes, instance))
        if len(probes) == wanted:
            break
    if not probes:
        try:
            probes = _fitting(base, operator, wanted)
        except DefinitionError as failure:
            return Trial((), failure, str(failure))
    always = None if probes else always_outside(failures) or always_miscounted(failures)
    return Trial(tuple(probes), always, reason)


def always_outside(failures: Sequence[DefinitionError]) -> DefinitionError | None:
    """The failure of uses that fulfil the requirements and all take the same element from behind the same list."""
    texts = {str(failure) for failure in failures}
    if len(failures) < _ENOUGH or len(texts) != 1 or not OUTSIDE_LIST.search(texts.pop()):
        return None
    return failures[0]


def always_miscounted(failures: Sequence[DefinitionError]) -> DefinitionError | None:
    """The failure of uses that fulfil the requirements and all read at one place with as many indices too many."""
    told = [MISCOUNTED.search(str(failure)) for failure in failures]
    kinds = {
        (str(one)[: found.start()], int(found[1]) - int(found[2]))
        for one, found in zip(failures, told, strict=True)
        if found
    }
    return failures[0] if len(failures) >= _ENOUGH and all(told) and len(kinds) == 1 else None


def absent_read(base: Definitions, operator: s.Operator, attempts: int = 8) -> DefinitionError | None:
    """What a definition says that reads an optional operand without a default where the operand is absent."""
    if not any(formal.optional and formal.constant is None for formal in operator.inputs):
        return None
    for number in range(attempts):
        drawing = Drawing(base, operator, Random(number), WITHOUT_OPTIONALS)
        try:
            operands, attributes = drawing.operands({}), drawing.attributes({})
            instantiate_overload(base, operator, operands, attributes, drawing.outputs)
        except DefinitionError as failure:
            if ABSENT in str(failure):
                return failure
        except Exception as failure:  # as above: what else may break is found with all operands there
            del failure
    return None


def _fitting(base: Definitions, operator: s.Operator, wanted: int) -> list[Probe]:
    """Probes of a definition whose requirements no plain drawing fulfils.

    Raises:
        DefinitionError: what no other operands can mend.
    """
    probes: list[Probe] = []
    for number in range(_FITTING_ATTEMPTS):
        found = fitting(base, operator, number)
        if found is None:
            continue
        operands, attributes, outputs = found
        try:
            instance = instantiate_overload(base, operator, operands, attributes, outputs)
        except DefinitionError as failure:
            if is_certain(failure):
                raise
            continue
        except (Unsupported, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            continue
        probes.append(Probe(tuple(operands), attributes, instance))
        if len(probes) == wanted:
            break
    return probes


_FITTING_ATTEMPTS = 40
_ENOUGH = 3
"""Uses that fail alike, from which on no other is expected to be right."""
OUTSIDE_LIST = re.compile(r"position (-?\d+) in a list of ([1-9]\d*)$")
"""What taking an element says that the list does not have; it has others."""
MISCOUNTED = re.compile(r"(\d+) indices for a tensor of rank (\d+)$")
"""What a read or a left side says that has not as many indices as the tensor has axes."""
ABSENT = "the operand is absent"
"""What a definition says that reads an absent operand."""
