"""promtool reports no problem in the metrics of made-up processes and of a real one."""
import sys

from testing import Program, check, need, run


def check_metrics(print_metrics, *processes):
    text = run(print_metrics, *processes)
    check("tensorpool_block_bytes{" in text, f"no metrics of pools in:\n{text}")
    problems = run("promtool", "check", "metrics", text=text)
    check(problems == "", f"promtool reports problems:\n{problems}")


need("promtool")
subject_program, print_metrics_program = sys.argv[1:]
check_metrics(print_metrics_program)
with Program(subject_program) as subject:
    subject.wait_until_ready()
    check_metrics(print_metrics_program, str(subject.pid))
