"""Tables: plain text of at most 100 columns, colored on a terminal, or Markdown."""

from comparison import subjects

GREEN, RED, BOLD, DIM, PLAIN = "\033[32m", "\033[31m", "\033[1m", "\033[2m", "\033[0m"
MARKS = {True: "✓", False: "✗", None: " "}


def verdict_cells(verdict, digits):
    """Returns ratio, aim and mark."""
    ratio = "" if verdict.ratio is None else f"{verdict.ratio:.{digits}f}"
    aim = "" if verdict.aim is None else f"≤{verdict.aim:.{digits}f}"
    return ratio, aim, MARKS[verdict.met]


def names_of(answers):
    """Returns the headings of the subjects' columns."""
    relative = answers.question.over_base
    return ["touch" if relative and s == subjects.FLOOR else s.label for s in answers.subjects]


def judges_of(answers):
    """Returns what ours is compared with: heading, function, digits."""
    if answers.question.over_base:
        return [("of touching", answers.against_floor, 3)]
    return [("of best rival", answers.against_rival, 2), ("of floor", answers.against_floor, 2)]


class Text:
    """Plain text: for a terminal, or for a file if `colored` is false."""

    def __init__(self, colored):
        self.colored = colored

    def paint(self, color, text):
        return f"{color}{text}{PLAIN}" if self.colored and color and text.strip() else text

    def title(self, question):
        return ["", self.paint(BOLD, question.name) + f"  {question.title}", ""]

    def cells(self, texts, answers):
        return "".join(self.padded(text, s) for text, s in zip(texts, answers.subjects))

    def padded(self, text, subject):
        """Returns a cell of seven characters; the last one is a space or the mark of the best rival."""
        text = text if text.endswith((" ", "*")) else text + " "
        return self.paint({"ours": BOLD, "floor": DIM}.get(subject.kind, ""), f"{text:>7}")

    def verdict(self, verdict, digits):
        ratio, aim, mark = verdict_cells(verdict, digits)
        color = {True: GREEN, False: RED, None: DIM}[verdict.met]
        return self.paint(color, f"{ratio:>5} {aim:>{digits + 3}} {mark}")

    def times(self, answers):
        judges = judges_of(answers)
        over = "".join(f" {name:^{digits + 10}}" for name, _, digits in judges)
        yield f"{'':16}{self.cells(names_of(answers), answers)}{over}".rstrip()
        for row in answers.question.rows:
            texts = [answers.cell(row, s) for s in answers.subjects]
            verdicts = " ".join(self.verdict(judge(row), digits) for _, judge, digits in judges)
            yield f"  {row.label:<14}{self.cells(texts, answers)} {verdicts}".rstrip()

    def counts(self, answers):
        yield from ("", f"  {answers.question.count.title}")
        for row in answers.question.rows:
            texts = [answers.count_text(row, s) for s in answers.subjects]
            met = answers.count_met(row)
            mark = self.paint(GREEN if met else RED, MARKS[met])
            yield f"  {row.label:<14}{self.cells(texts, answers)} {mark}".rstrip()

    def note(self, text):
        return self.paint(DIM, f"  {text}")


class Markdown:
    """Markdown, for perf/results."""

    def title(self, question):
        return ["", f"### {question.name}: {question.title}", ""]

    @staticmethod
    def lines(headings, rows):
        yield "| " + " | ".join(headings) + " |"
        yield "| --- |" + " ---: |" * (len(headings) - 1)
        yield from ("| " + " | ".join(row) + " |" for row in rows)

    def times(self, answers):
        judges = judges_of(answers)
        headings = ["", *names_of(answers), *(name for name, _, _ in judges)]
        return self.lines(headings, (self.row(row, answers) for row in answers.question.rows))

    def row(self, row, answers):
        yield row.label
        for subject in answers.subjects:
            text = answers.cell(row, subject).strip()
            marked = subject == subjects.OURS or text.endswith("*")
            yield f"**{text.rstrip('*')}**" if marked else text
        for _, judge, digits in judges_of(answers):
            yield " ".join(verdict_cells(judge(row), digits)).strip()

    def counts(self, answers):
        shown = [s for s in answers.subjects if not answers.question.over_base or s != subjects.FLOOR]
        rows = ([row.label, *(answers.count_text(row, s) for s in shown)]
                for row in answers.question.rows)
        yield ""
        yield from self.lines([answers.question.count.title, *(s.label for s in shown)], rows)

    def note(self, text):
        return text
