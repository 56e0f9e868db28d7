"""The parts of perf/workloads/compare."""
