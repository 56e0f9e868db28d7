"""Ratios of runs that took turns: the median over the rounds, and how sure it is."""

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """`low` and `high` hold the true median in 95 of 100 cases at least, from six rounds on."""

    median: float
    low: float
    high: float

    def __str__(self):
        return f"{self.median:.3f} ({self.low:.3f}–{self.high:.3f})"


def outside(count):
    """How many of `count` sorted values lie outside of the interval, on each side: so many that the
    median is beyond the next in 2.5 % of the cases at most, which is that of `count` coins no more
    than these show heads."""
    left_out, probability = 0, 0.0
    while True:
        probability += math.comb(count, left_out) / 2**count
        if probability > 0.025:
            return max(left_out - 1, 0)
        left_out += 1


def ratio(ours, others):
    """Of values of the same rounds. None where there are none, or where the others' are 0."""
    quotients = sorted(one / other for one, other in zip(ours, others) if other)
    if not quotients:
        return None
    left_out = outside(len(quotients))
    return Ratio(statistics.median(quotients), quotients[left_out], quotients[-1 - left_out])
