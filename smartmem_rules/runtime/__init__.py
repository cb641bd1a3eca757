"""Runs plans on OpenCL devices."""
