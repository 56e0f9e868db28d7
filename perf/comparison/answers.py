"""The contents of the tables: cells, and verdicts on the aims."""

from dataclasses import dataclass

from comparison import subjects


@dataclass(frozen=True)
class Verdict:
    """The ratio of ours to another, and its aim if there is one."""

    ratio: float = None
    aim: float = None

    @property
    def met(self):
        """Whether the aim is met; None if there is no aim or no value to compare with."""
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


def formatted(value):
    """Returns three significant digits, in at most five characters if possible."""
    if value is None:
        return "–"
    if value >= 99_999.5:
        return f"{value / 1000:.0f}k"
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def ratio(one, other):
    return None if one is None or not other else one / other


class Answers:
    """The results of one question, in the form that a table needs."""

    def __init__(self, question, results, present):
        self.question, self.results = question, results
        self.subjects = [s for s in present if self._answered(s)]

    def _answered(self, subject):
        if subject == subjects.FLOOR and self.question.over_base:
            return True
        return any(self.results.get(row, subject) is not None for row in self.question.rows)

    def time(self, row, subject):
        """Returns the time in the question's unit, or relative to touching alone."""
        seconds = self.results.get(row, subject)
        if not self.question.over_base:
            return None if seconds is None else seconds / self.question.unit
        if subject == subjects.FLOOR:
            touching = self.results.get(row, subjects.OURS, "base_seconds")
            return None if touching is None else touching / self.question.unit
        return ratio(seconds, self.results.get(row, subject, "base_seconds"))

    def best(self, row):
        """Returns the fastest rival that serves any size, or None."""
        rivals = [s for s in self.subjects if s.kind == "rival" and self.time(row, s) is not None]
        return min(rivals, key=lambda s: self.results.get(row, s), default=None)

    def against_rival(self, row):
        """Compares ours with the best rival, or with glibc if the aim is relative to glibc."""
        rival = self.best(row)
        if row.glibc is not None:
            rival = next((s for s in self.subjects if s.key == "glibc"), None)
        aim = row.best if row.glibc is None else row.glibc
        ours, other = (self.results.get(row, s) if s else None for s in (subjects.OURS, rival))
        return Verdict(ratio(ours, other), aim)

    def against_floor(self, row):
        ours = self.time(row, subjects.OURS)
        if self.question.over_base:
            return Verdict(ours, row.floor)
        return Verdict(ratio(ours, self.time(row, subjects.FLOOR)), row.floor)

    def slowest_against_rival(self, row):
        """Compares the slowest of our rounds with the best rival's median."""
        rival = self.best(row)
        other = self.results.get(row, rival) if rival else None
        return Verdict(ratio(self.results.slowest(row, subjects.OURS), other), row.slowest)

    def cell(self, row, subject):
        text = formatted(self.time(row, subject))
        return text + ("*" if subject == self.best(row) else " ")

    def counted(self, row, subject):
        """Returns the question's count in its unit, or None."""
        value = self.results.get(row, subject, self.question.count.field)
        return None if value is None else value / self.question.count.unit

    def count_text(self, row, subject):
        value = self.counted(row, subject)
        if value is None:
            return "" if subject == subjects.FLOOR else "–"
        whole = value >= 9.95 or value == int(value)
        return f"{value:.0f}" if whole and self.question.count.unit == 1 else f"{value:.1f}"

    def count_met(self, row):
        ours, aim = self.counted(row, subjects.OURS), self.question.count.aim
        return None if ours is None or aim is None else ours <= aim

    def spread(self):
        """Returns the largest spread of ours over all rows."""
        return max((self.results.spread(row, subjects.OURS) for row in self.question.rows), default=0)

    def aims(self):
        """Yields (row, relative to what, verdict) for each aim that could be judged."""
        for row in self.question.rows:
            rival = "of glibc" if row.glibc is not None else "of best rival"
            floor = "of touching" if self.question.over_base else "of floor"
            pairs = ((rival, self.against_rival(row)), (floor, self.against_floor(row)),
                     ("of best rival, slowest round", self.slowest_against_rival(row)))
            yield from ((row, of, verdict) for of, verdict in pairs if verdict.met is not None)
            if self.question.count and self.count_met(row) is not None:
                aim = self.question.count.aim
                yield row, self.question.count.title, Verdict(self.counted(row, subjects.OURS), aim)
