"""How a kernel runs: sizes of tiles, work-groups and packed factors, and the time that each takes."""
