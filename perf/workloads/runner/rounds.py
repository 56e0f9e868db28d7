"""Runs of all contenders by turns."""

import os
import random
import statistics
import subprocess

from . import contenders, measure, ratios, works


class Rounds:
    """The figures of one work: a list for each contender, of which the same places are of the same
    round."""

    def __init__(self, names):
        self.names = list(names)
        self.runs = {name: [] for name in names}
        self.result = None

    def values(self, name, figure):
        return [getattr(run, figure) for run in self.runs[name]]

    def median(self, name, figure):
        return statistics.median(self.values(name, figure))

    def ratio(self, one, other, figure):
        return ratios.ratio(self.values(one, figure), self.values(other, figure))

    def best_rival(self, figure):
        """The one with the least median, of those that the aims are about; None without any."""
        rivals = [name for name in self.names if name in contenders.RIVALS]
        return min(rivals, key=lambda name: self.median(name, figure), default=None)


def prepare(work, data):
    command = works.prepare_command(work)
    if command is None:
        return
    environment = contenders.clean_environment() | {"WORKLOAD_DATA": str(data)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise measure.Missing(f"it cannot be prepared: {done.stderr.strip()[-300:]}")


def run_once(work, contender, build, data):
    command = works.command_of(work, contender, build, data)
    figures, printed = measure.run(
        command, contenders.environment_of(contender, work, build, data),
        contenders.expected_files(contender, work), contenders.foreign_files(contender, work))
    result = works.result_of(work, printed, data)
    if result is None:
        raise measure.Failed(f"work {work.letter} with {contender.key}: no result was printed")
    return figures, result


def hold(work, chosen, count, build, data, progress):
    """`count` rounds, in each of which every contender of `chosen` has a turn, in an order drawn
    anew. All must come to the same result. Raises measure.Missing and measure.Failed."""
    prepare(work, data)
    rounds = Rounds([c.key for c in chosen])
    order = list(chosen)
    draw = random.Random(work.letter)
    for number in range(count):
        draw.shuffle(order)
        for contender in order:
            progress(f"{work.letter}: round {number + 1} of {count}, {contender.key}")
            figures, result = run_once(work, contender, build, data)
            if rounds.result is None:
                rounds.result = result
            elif result != rounds.result:
                raise measure.Failed(f"work {work.letter} with {contender.key}: result {result}, "
                                     f"expected {rounds.result}")
            rounds.runs[contender.key].append(figures)
    return rounds


def load():
    return os.getloadavg()[0]
