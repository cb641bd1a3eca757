"""Equivalent models by saturation with proved rules, and what others make of them."""
