"""OpenCL C of contractions: panels, work-groups with tiles in local memory, register tiles, Winograd."""
