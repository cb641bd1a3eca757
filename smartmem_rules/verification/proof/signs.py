"""The signs that atoms and polynomials surely have."""

from __future__ import annotations

from fractions import Fraction

from smartmem_rules.analysis.index_formulas import REAL
from smartmem_rules.tensor.extents import Dimension
from smartmem_rules.verification.proof.polynomials import Atom, Poly, base_of


def positive(atom: Atom) -> bool:
    """Whether an atom is surely positive."""
    match atom.kind:
        case "exp":
            return True
        case "extent":
            (factor,) = atom.parts
            return isinstance(factor, Dimension) and factor.low >= 1 and not factor.name.startswith(REAL)
        case "reduce":
            return atom.parts[0] in ("sum", "prod", "max", "min") and is_positive(dict(atom.parts[2]))
    return False


def _natural(atom: Atom, power: Fraction) -> bool:
    if positive(atom) or (power.denominator == 1 and power % 2 == 0):
        return True
    if power.denominator == 2 and atom.kind == "power":
        return True
    match atom.kind:
        case "extent":
            (factor,) = atom.parts
            return isinstance(factor, Dimension) and factor.low >= 0 and not factor.name.startswith(REAL)
        case "reduce":
            return atom.parts[0] in ("sum", "prod", "max", "min") and is_natural(dict(atom.parts[2]))
        case "holds":
            return True
        case "function":
            return bool(atom.parts[0] == "abs")
        case "power":
            return is_natural(base_of(atom))
    return False


def is_natural(poly: Poly) -> bool:
    """Whether a polynomial is surely not negative."""
    return all(c > 0 and all(_natural(a, p) for a, p in m) for m, c in poly.items())


def is_positive(poly: Poly) -> bool:
    """Whether a polynomial is surely positive."""
    return is_natural(poly) and any(all(positive(a) for a, _ in m) for m in poly)
