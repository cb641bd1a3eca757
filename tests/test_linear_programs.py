"""The solver of integer programs leaves standard output to the command."""

from __future__ import annotations

import pytest

from smartmem_rules import linear_programs


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    solver = linear_programs.solver(1.0, 1e-6)
    solver.addVariable(lb=1.0, ub=3.0, obj=2.0)
    solver.run()
    assert solver.getInfo().objective_function_value == 2.0
    assert capfd.readouterr() == ("", "")
