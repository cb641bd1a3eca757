"""How graphs of PyTorch are planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from smartmem_rules.arguments import OPTIONS, check_kinds
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.limits import DEFAULT_LIMITS, Limits
from smartmem_rules.pipeline import level_of, rules_of
from smartmem_rules.planned import DEFAULT_LEVEL, PlanOptions
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.devices import AUTO
from smartmem_rules.runtime.target import target_of
from smartmem_rules.torch_backend.errors import TorchError


@dataclass(frozen=True, kw_only=True)
class TorchOptions:
    """What `torch.compile(model, backend="smartmem", options={...})` takes.

    Attributes:
        rules, device, level, dtype, memory, disable, layout, limits: as for `smartmem_rules.optimize`.
        check: whether the first outputs of each plan are compared with those of PyTorch; a plan whose outputs differ
            is not used.
    """

    rules: Sequence[str | Path] = ()
    device: str = AUTO
    level: str = DEFAULT_LEVEL
    dtype: str = "float32"
    memory: str = "auto"
    disable: Sequence[str] = ()
    layout: str = "exact"
    limits: Limits = DEFAULT_LIMITS
    check: bool = True

    @staticmethod
    def of(given: Mapping[str, object] | None) -> TorchOptions:
        """Options by name, all that they name looked up: what is wrong here would be wrong for each graph.

        Raises:
            TorchError: there is no option of a name.
            TypeError: an option is of another type than its place takes.
            PlanError: there is no such level.
            DeviceError: there is no such device.
            LanguageError: a rule file has errors, or there is no rule to switch off.
        """
        known = [field.name for field in fields(TorchOptions)]
        for name in given or {}:
            if name not in known:
                near = did_you_mean(name, known) or f"the options are {', '.join(known)}"
                raise TorchError(f"the backend smartmem has no option {name!r}; {near}")
        made = TorchOptions(**dict[str, Any](given or {}))
        check_kinds(made.of_optimize(), OPTIONS)
        base = rules_of(made.rules, made.disable)
        level_of(made.level, base)
        target_of(made.device, base)
        return made

    def of_optimize(self) -> PlanOptions:
        """The arguments of `smartmem_rules.optimize`."""
        return {
            "rules": self.rules, "device": self.device, "level": self.level, "dtype": self.dtype, "memory": self.memory,
            "disable": self.disable, "layout": self.layout, "limits": self.limits,
        }  # fmt: skip
