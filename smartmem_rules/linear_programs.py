"""The solver of integer linear programs (HiGHS), which prints nothing: standard output belongs to the command."""

from __future__ import annotations

import highspy


class _Silent(highspy.Highs):
    def enableCallbacks(self) -> None:  # the solver's own name
        # its constructor calls this, and from 1.16 on the solver's name is printed here
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def solver(seconds: float, relative_gap: float) -> highspy.Highs:
    """A solver without a model.

    Args:
        seconds: when to stop with the best solution so far.
        relative_gap: between solution and bound, at which a solution counts as the best.
    """
    made = _Silent()  # type: ignore[no-untyped-call]
    made.setOptionValue("output_flag", False)
    made.setOptionValue("time_limit", seconds)
    made.setOptionValue("mip_rel_gap", relative_gap)
    return made
