"""Programs: compiled, kept on disk, and shared by the plans of a process."""
