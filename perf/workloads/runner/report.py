"""The printed table, and the verdicts on the aims."""

from . import allocators

MIB = 2**20
HEADINGS = ("workload", "memory from", "CPU s", "system s", "faults", "peak MiB",
            "CPU of glibc", "CPU of best rival", "faults of best rival", "peak of best rival")


def title_row():
    aligned = ["---", "---"] + ["---:"] * (len(HEADINGS) - 2)
    return [row(HEADINGS), row(aligned)]


def row(cells):
    return "| " + " | ".join(cells) + " |"


def with_commas(number):
    return f"{number:,.0f}"


def compared(rounds, name, other, metric):
    if other is None or other not in rounds.names or other == name:
        return ""
    ratio = rounds.ratio(name, other, metric)
    return "" if ratio is None else (str(ratio) if metric == "cpu" else f"{ratio.median:.3f}")


def lines_of(workload, rounds):
    """Yields a row for each allocator. The best rival of each metric is marked; ours is in bold."""
    best = {metric: rounds.best_rival(metric) for metric in ("cpu", "faults", "peak")}
    for index, name in enumerate(rounds.names):
        shown = f"**{name}**" if allocators.ALL[name].is_ours else name
        star = {metric: "*" if name == best[metric] else "" for metric in best}
        yield row((
            f"{workload.letter}: {workload.title}" if index == 0 else "", shown,
            f"{rounds.median(name, 'cpu'):.2f}" + star["cpu"],
            f"{rounds.median(name, 'system'):.2f}",
            with_commas(rounds.median(name, "faults")) + star["faults"],
            f"{rounds.median(name, 'peak') / MIB:.1f}" + star["peak"],
            compared(rounds, name, "glibc", "cpu"),
            *(compared(rounds, name, best[metric], metric) for metric in best)))


def aims_of(workload, rounds, ours):
    """Yields (name, ratio, aim) for each aim that can be judged."""
    wanted = ((workload.aims.cpu_of_best, "cpu", rounds.best_rival("cpu")),
              (workload.aims.cpu_of_glibc, "cpu", "glibc"),
              (workload.aims.faults_of_best, "faults", rounds.best_rival("faults")),
              (workload.aims.peak_of_best, "peak", rounds.best_rival("peak")))
    for aim, metric, other in wanted:
        if aim is not None and other in rounds.names:
            yield f"{metric} of {other}", rounds.ratio(ours, other, metric), aim


def judged(workload, rounds):
    """Yields a line for each aim. It is met if the median of the ratios is at most the aim."""
    for ours in (name for name in rounds.names if allocators.ALL[name].is_ours):
        for name, ratio, aim in aims_of(workload, rounds, ours):
            met = "met" if ratio.median <= aim else "MISSED"
            yield f"{workload.letter} {ours}: {name} {ratio}, aim {aim:.2f}: {met}"
