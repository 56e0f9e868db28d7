"""What is printed: the table, and the aims."""

from . import contenders

MIB = 2**20
HEADINGS = ("work", "memory from", "CPU s", "system s", "faults", "peak MiB",
            "CPU of glibc's", "CPU of best rival's", "faults of its", "peak of its")


def title_row():
    aligned = ["---", "---"] + ["---:"] * (len(HEADINGS) - 2)
    return [row(HEADINGS), row(aligned)]


def row(cells):
    return "| " + " | ".join(cells) + " |"


def with_commas(number):
    return f"{number:,.0f}"


def compared(rounds, name, other, figure):
    if other is None or other not in rounds.names or other == name:
        return ""
    ratio = rounds.ratio(name, other, figure)
    return "" if ratio is None else (str(ratio) if figure == "cpu" else f"{ratio.median:.3f}")


def lines_of(work, rounds):
    """A row for each contender. The best rival of a figure is marked; ours is in bold."""
    best = {figure: rounds.best_rival(figure) for figure in ("cpu", "faults", "peak")}
    for place, name in enumerate(rounds.names):
        shown = f"**{name}**" if contenders.ALL[name].is_ours else name
        star = {figure: "*" if name == best[figure] else "" for figure in best}
        yield row((
            f"{work.letter}: {work.title}" if place == 0 else "", shown,
            f"{rounds.median(name, 'cpu'):.2f}" + star["cpu"],
            f"{rounds.median(name, 'system'):.2f}",
            with_commas(rounds.median(name, "faults")) + star["faults"],
            f"{rounds.median(name, 'peak') / MIB:.1f}" + star["peak"],
            compared(rounds, name, "glibc", "cpu"),
            *(compared(rounds, name, best[figure], figure) for figure in best)))


def aims_of(work, rounds, ours):
    """(what, the ratio, the aim) for each aim that can be judged."""
    wanted = ((work.aims.cpu_of_best, "cpu", rounds.best_rival("cpu")),
              (work.aims.cpu_of_glibc, "cpu", "glibc"),
              (work.aims.faults_of_best, "faults", rounds.best_rival("faults")),
              (work.aims.peak_of_best, "peak", rounds.best_rival("peak")))
    for most, figure, other in wanted:
        if most is not None and other in rounds.names:
            yield f"{figure} of {other}'s", rounds.ratio(ours, other, figure), most


def judged(work, rounds):
    """A line for each aim: met where the median of the rounds' ratios is no more than it."""
    for ours in (name for name in rounds.names if contenders.ALL[name].is_ours):
        for what, ratio, most in aims_of(work, rounds, ours):
            met = "met" if ratio.median <= most else "MISSED"
            yield f"{work.letter} {ours}: {what} {ratio}, aim {most:.2f}: {met}"
