"""The `device`, `schedule`, `level`, `layout` and `fuse` blocks of rule files as typed records.

A record's fields are the keys of its block: their type, default and meaning stand here once, for the checker, the
reference, completion in editors and the planner.
"""
