"""Ratios of runs that alternated: the median over the rounds, and its confidence interval."""

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """A median and its interval. From six rounds on, the true median lies between `low` and `high`
    in at least 95 of 100 cases."""

    median: float
    low: float
    high: float

    def __str__(self):
        return f"{self.median:.3f} ({self.low:.3f}–{self.high:.3f})"


def outside(count):
    """Returns how many of `count` sorted values lie outside of the 95 % interval on each side. This is
    the largest number for which at most 2.5 % of all cases have the median outside on that side: each
    value is above or below the median like the toss of a coin."""
    left_out, probability = 0, 0.0
    while True:
        probability += math.comb(count, left_out) / 2**count
        if probability > 0.025:
            return max(left_out - 1, 0)
        left_out += 1


def ratio(ours, others):
    """Returns the ratio of values of the same rounds; None if there are none or all others are 0."""
    quotients = sorted(one / other for one, other in zip(ours, others) if other)
    if not quotients:
        return None
    left_out = outside(len(quotients))
    return Ratio(statistics.median(quotients), quotients[left_out], quotients[-1 - left_out])
