"""The file format of plans: the schema of the index, and what stands around it (docs/plan_format.md)."""
