"""Constants while launches are scheduled: the model's weights go as their packed copies come."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence

import numpy as np

from smartmem_rules.plan.kernel.launch import Launch


class LastUses:
    """Drops each constant after the last launch that reads it, unless it is needed as it is.

    A scheduled launch may read it so, and an output of the model is given so.

    Without that a model's weights are in memory twice until the plan is made.

    Args:
        launches: in the order in which they are scheduled, each once.
        constants: tables of the values of constants by name, from which the names are taken.
        outputs: the names of the model's outputs.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        constants: Iterable[MutableMapping[str, np.ndarray]],
        outputs: Iterable[str],
    ) -> None:
        self._tables = tuple(constants)
        self._last = {name: place for place, launch in enumerate(launches) for name in _reads(launch)}
        self._unpacked = set(outputs)

    def after(self, place: int, unsized: Launch, scheduled: Launch) -> None:
        """Drop what only launches up to this one read."""
        self._unpacked.update(_reads(scheduled))
        for name in _reads(unsized):
            if self._last[name] == place and name not in self._unpacked:
                for table in self._tables:
                    if name in table:
                        del table[name]


def _reads(launch: Launch) -> list[str]:
    return [name for kernel in launch.kernels for name in kernel.reads]
