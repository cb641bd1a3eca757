"""The rules that an optimization works with, checked."""
