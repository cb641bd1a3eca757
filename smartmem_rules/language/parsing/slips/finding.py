"""The slip that explains why a text does not follow the grammar."""

from __future__ import annotations

from collections.abc import Callable

from smartmem_rules.language.fixes import applied
from smartmem_rules.language.parsing.repairs import farther, parses
from smartmem_rules.language.parsing.slips.axes import axes
from smartmem_rules.language.parsing.slips.blocks import blocks
from smartmem_rules.language.parsing.slips.clauses import clauses
from smartmem_rules.language.parsing.slips.expressions import comment_of_line, expressions, sums
from smartmem_rules.language.parsing.slips.items import at_item_word, items
from smartmem_rules.language.parsing.slips.numbers import numbers
from smartmem_rules.language.parsing.slips.patterns import patterns
from smartmem_rules.language.parsing.slips.places.beside import beside
from smartmem_rules.language.parsing.slips.places.block_values import block_values
from smartmem_rules.language.parsing.slips.places.clause_lists import clause_lists
from smartmem_rules.language.parsing.slips.places.clause_words import clause_words, mappings
from smartmem_rules.language.parsing.slips.places.dangling import dangling
from smartmem_rules.language.parsing.slips.places.names_first import names_first
from smartmem_rules.language.parsing.slips.places.other_signs import other_signs
from smartmem_rules.language.parsing.slips.places.ranges import (
    brackets_of_reads,
    foreign_sums,
    hyphens,
    opsets,
    tuples,
)
from smartmem_rules.language.parsing.slips.places.rule_sides import rule_sides
from smartmem_rules.language.parsing.slips.places.signature_parts import signature_parts
from smartmem_rules.language.parsing.slips.sets import sets
from smartmem_rules.language.parsing.slips.signatures import signatures
from smartmem_rules.language.parsing.slips.signs import signs
from smartmem_rules.language.parsing.slips.slip import Slip
from smartmem_rules.language.parsing.slips.unclosed import unclosed
from smartmem_rules.language.parsing.slips.words import words
from smartmem_rules.language.parsing.stops import Stop

_KINDS: tuple[Callable[[Stop], Slip | None], ...] = (
    dangling,
    hyphens,
    clause_lists,
    names_first,
    items,
    numbers,
    signs,
    axes,
    sets,
    words,
    signatures,
    signature_parts,
    rule_sides,
    patterns,
    block_values,
    blocks,
    clauses,
    opsets,
    mappings,
    sums,
    expressions,
    brackets_of_reads,
    foreign_sums,
    tuples,
    other_signs,
    clause_words,
    beside,
    unclosed,
)


def slip(stop: Stop) -> Slip | None:
    """The first kind of slip that there is at a place; one of those with edits with which the parser gets farther."""
    comment = comment_of_line(stop)
    if comment is not None and parses(applied(stop.whole, comment.fix.edits)):
        return comment  # without it `//` is a division
    for kind in _KINDS:
        found = kind(stop)
        if found is not None and _true(found, stop):
            return found
    return None


def late_slip(stop: Stop) -> Slip | None:
    """A slip that is told where nothing else explains the place."""
    return at_item_word(stop)


def _true(found: Slip, stop: Stop) -> bool:
    return not found.fix.edits or farther(stop.whole, found.fix.edits)
