"""Rounds, in each of which every allocator runs once."""

import dataclasses
import json
import os
import random
import statistics
import subprocess

from . import allocators, measure, ratios, workloads


class Rounds:
    """The metrics of one workload: a list for each allocator, with one element for each round."""

    def __init__(self, names):
        self.names = list(names)
        self.runs = {name: [] for name in names}
        self.result = None

    def values(self, name, metric):
        return [getattr(run, metric) for run in self.runs[name]]

    def median(self, name, metric):
        return statistics.median(self.values(name, metric))

    def ratio(self, one, other, metric):
        return ratios.ratio(self.values(one, metric), self.values(other, metric))

    def best_rival(self, metric):
        """Returns the name of the rival with the lowest median, or None if no rival was measured."""
        rivals = [name for name in self.names if name in allocators.RIVALS]
        return min(rivals, key=lambda name: self.median(name, metric), default=None)


def prepare(workload, data):
    command = workloads.prepare_command(workload)
    if command is None:
        return
    environment = allocators.clean_environment() | {"WORKLOAD_DATA": str(data)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise measure.Missing(f"cannot be prepared: {done.stderr.strip()[-300:]}")


def run_once(workload, allocator, build, data):
    command = workloads.command_of(workload, allocator, build, data)
    metrics, printed = measure.run(
        command, allocators.environment_of(allocator, workload, build, data),
        allocators.expected_files(allocator, workload), allocators.foreign_files(allocator, workload))
    if allocator.with_plan:
        held = json.loads(allocators.held_file(data).read_text())
        metrics = dataclasses.replace(metrics, held=held["held"] / held["lower_bound"])
    result = workloads.result_of(workload, printed, data)
    if result is None:
        raise measure.Failed(f"workload {workload.letter} with {allocator.key} printed no result")
    return metrics, result


def run_all(workload, chosen, count, build, data, progress):
    """Runs `count` rounds, in each of which every allocator of `chosen` runs once, in a new random
    order. Raises measure.Missing, and measure.Failed if results differ between allocators."""
    prepare(workload, data)
    rounds = Rounds([c.key for c in chosen])
    order = list(chosen)
    draw = random.Random(workload.letter)
    for number in range(count):
        draw.shuffle(order)
        for allocator in order:
            progress(f"{workload.letter}: round {number + 1} of {count}, {allocator.key}")
            metrics, result = run_once(workload, allocator, build, data)
            if rounds.result is None:
                rounds.result = result
            elif result != rounds.result:
                raise measure.Failed(f"workload {workload.letter} with {allocator.key}: "
                                     f"result {result}, expected {rounds.result}")
            rounds.runs[allocator.key].append(metrics)
    return rounds


def load():
    return os.getloadavg()[0]
