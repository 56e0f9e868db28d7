"""The parts of perf/compare."""
