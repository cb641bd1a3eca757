"""Checks of what planning hands on: kernels, layouts, memory and launches, each against what makes it right.

The stages are written to keep these invariants; the checks here read only their results. `verify_kernels` and
`verify_plan` run in every optimization and take a small part of its time; with `thorough` they also decide by looking
at every element what intervals and inverse maps leave open, as tests and debug builds do.
"""

from smartmem_rules.invariants.verify import verify_kernels as verify_kernels, verify_plan as verify_plan
from smartmem_rules.invariants.violation import InvariantError as InvariantError
