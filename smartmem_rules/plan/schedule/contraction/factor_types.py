"""The element types that the factors of a contraction may have on chip without losing more than memory would."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from smartmem_rules.plan.fusion.contraction import is_constant
from smartmem_rules.plan.kernel.model import Contraction, Kernel, Stored
from smartmem_rules.plan.kernel.storage import HALVES
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, Select, tensors_read


@dataclass(frozen=True, kw_only=True)
class FactorTypes:
    """Says which factors may be halves.

    Attributes:
        storage: how the plan stores floating-point tensors.
        tensors: how they are stored, but for the constants.
        wide: tensors that halves cannot hold.
        computed: whether elements that are computed as they are loaded count as well, besides rows made in stages.
    """

    storage: str
    constants: Collection[str]
    tensors: Mapping[str, Stored]
    wide: frozenset[str]
    computed: bool

    def halves(self, kernel: Kernel, c: Contraction) -> tuple[bool, bool]:
        """Whether the left and the right factors may be: halves in memory, or what would be if it lay there."""
        inner = () if c.scores is None else (c.scores,)
        rows = self._made_of_halves(kernel, c) or self.is_half(c.a)
        left = rows and all(self.is_half(s.a) for s in inner)
        factors = (c.b, *(p.b for p in kernel.parts), *(s.b for s in inner))
        return left, all(self.is_half(factor) for factor in factors)

    def is_half(self, factor: Expr) -> bool:
        """Whether an expression has no values that halves cannot hold, where it is a stored one or a part of one."""
        read = tensors_read(factor)
        if read and is_constant(factor, self.constants):
            return self.storage in HALVES and all(
                self.tensors[t].storage == self.storage for t in read if t in self.tensors
            )
        match factor:
            case Read():
                return factor.tensor in self.tensors and self._stored_as_half(factor.tensor)
            case Select():
                return self.is_half(factor.then) and self.is_half(factor.otherwise)
            case Const():
                return factor.value == 0
            case Apply(function="mul", arguments=arguments) if self.computed:
                # what was within the range of halves stays there
                scales = [one for one in arguments if isinstance(one, Const) and abs(one.value) <= 1]
                return len(scales) == 1 and all(one in scales or self.is_half(one) for one in arguments)
            case _:
                return False

    def _stored_as_half(self, name: str) -> bool:
        """Whether a tensor has the type in which the plan stores floats, and that is one of 16 bits."""
        return self.storage in HALVES and self.tensors[name].storage == self.storage

    def _made_of_halves(self, kernel: Kernel, c: Contraction) -> bool:
        """Whether rows are made on chip of what lies in memory as halves, and would be stored as halves themselves."""
        if self.storage not in HALVES or not c.fed or self.wide.intersection(c.fed):
            return False
        if not (c.stages or self.computed):
            return False
        made = [self.tensors[t] for t in kernel.reads if t in self.tensors]
        return all(t.storage == self.storage for t in made if t.role == "intermediate")
