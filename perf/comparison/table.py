"""Tables: plain text of at most 100 columns, coloured on a terminal, or Markdown."""

from comparison import subjects as who

GREEN, RED, BOLD, DIM, PLAIN = "\033[32m", "\033[31m", "\033[1m", "\033[2m", "\033[0m"
MARKS = {True: "✓", False: "✗", None: " "}


def verdict_cells(verdict, digits):
    """Ratio, aim and mark."""
    ratio = "" if verdict.ratio is None else f"{verdict.ratio:.{digits}f}"
    aim = "" if verdict.aim is None else f"≤{verdict.aim:.{digits}f}"
    return ratio, aim, MARKS[verdict.met]


class Text:
    """For a terminal, or for a file when `coloured` is false."""

    def __init__(self, coloured):
        self.coloured = coloured

    def paint(self, colour, text):
        return f"{colour}{text}{PLAIN}" if self.coloured and text.strip() else text

    def title(self, question):
        return ["", self.paint(BOLD, question.name) + f"  {question.title}", ""]

    def verdict(self, verdict, digits):
        ratio, aim, mark = verdict_cells(verdict, digits)
        colour = {True: GREEN, False: RED, None: DIM}[verdict.met]
        return self.paint(colour, f"{ratio:>5} {aim:>{digits + 3}} {mark}")

    def columns(self, answers):
        """The headings of the subjects, their cells' width in all."""
        names = ["touch" if answers.question.over_base and s == who.FLOOR else s.label
                 for s in answers.subjects]
        return "".join(self.padded(name, subject) for name, subject in zip(names, answers.subjects))

    def padded(self, text, subject):
        """A cell seven wide; the last place is for what follows the figure."""
        text = text if text.endswith((" ", "*")) else text + " "
        colour = {"ours": BOLD, "floor": DIM}.get(subject.kind)
        return self.paint(colour, f"{text:>7}") if colour else f"{text:>7}"

    def times(self, answers):
        relative = answers.question.over_base
        groups = [] if relative else [(answers.against_rival, "of best rival", 2)]
        groups.append((answers.against_floor, "of touching" if relative else "of floor", 3 if relative else 2))
        yield f"{'':16}{self.columns(answers)}" + "".join(f" {name:^{11 + digits - 1}}" for _, name, digits in groups)
        for row in answers.question.rows:
            cells = "".join(self.padded(answers.cell(row, s), s) for s in answers.subjects)
            verdicts = " ".join(self.verdict(judge(row), digits) for judge, _, digits in groups)
            yield f"  {row.label:<14}{cells} {verdicts}".rstrip()

    def counts(self, answers):
        yield from ("", f"  {answers.question.count.title}")
        for row in answers.question.rows:
            values = [answers.count_text(row, s) for s in answers.subjects]
            cells = "".join(self.padded(v, s) for v, s in zip(values, answers.subjects))
            mark = MARKS[answers.count_met(row)]
            yield f"  {row.label:<14}{cells} {self.paint(GREEN if mark == '✓' else RED, mark)}".rstrip()

    def note(self, text):
        return self.paint(DIM, f"  {text}")


class Markdown:
    """For perf/README.md."""

    def title(self, question):
        return ["", f"### {question.name}: {question.title}", ""]

    @staticmethod
    def lines(headings, rows):
        yield "| " + " | ".join(headings) + " |"
        yield "| --- |" + " ---: |" * (len(headings) - 1)
        yield from ("| " + " | ".join(row) + " |" for row in rows)

    def times(self, answers):
        relative = answers.question.over_base
        names = ["touch" if relative and s == who.FLOOR else s.label for s in answers.subjects]
        judges = [("of touching", answers.against_floor, 3)] if relative else [
            ("of best rival", answers.against_rival, 2), ("of floor", answers.against_floor, 2)]
        rows = [[row.label, *(self.bold(answers.cell(row, s), s) for s in answers.subjects),
                 *(" ".join(verdict_cells(judge(row), digits)).strip() for _, judge, digits in judges)]
                for row in answers.question.rows]
        return self.lines(["", *names, *(name for name, _, _ in judges)], rows)

    @staticmethod
    def bold(text, subject):
        text = text.strip()
        return f"**{text.rstrip('*')}**" if subject == who.OURS or text.endswith("*") else text

    def counts(self, answers):
        shown = [s for s in answers.subjects if s != who.FLOOR]
        rows = [[row.label, *(answers.count_text(row, s) for s in shown)]
                for row in answers.question.rows]
        yield ""
        yield from self.lines([answers.question.count.title, *(s.label for s in shown)], rows)

    def note(self, text):
        return text
