"""Modules of perf/workloads/compare."""
