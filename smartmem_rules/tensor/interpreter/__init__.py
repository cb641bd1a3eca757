"""The reference interpreter: equations computed with numpy."""
