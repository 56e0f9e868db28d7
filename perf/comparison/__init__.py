"""Modules of perf/compare."""
