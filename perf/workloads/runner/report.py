"""The printed table, and the verdicts on the aims."""

from . import allocators

MIB = 2**20
HEADINGS = ("workload", "memory from", "CPU s", "system s", "faults", "peak MiB",
            "CPU of glibc", "CPU of best rival", "faults of best rival", "peak of best rival")
# The aims of the levels of checks, relative to the pool without checks.
CHECKS = {"sampled": {"cpu": 1.01}, "hardened": {"cpu": 2.0, "peak": 1.5}}

PROFILE_CPU = 1.005  # the aim of the pool relative to the pool without samples of the heap profile


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


def verdict(is_met):
    return "met" if is_met else "MISSED"


def judged_plan(workload, rounds):
    """Yields a line for each aim of plans against the pool alone."""
    if not {"plan", "pool"} <= set(rounds.names):
        return
    cpu, peak = (rounds.ratio("plan", "pool", metric) for metric in ("cpu", "peak"))
    yield (f"{workload.letter} plan: cpu of pool {cpu}, aim: the interval contains 1.00 or lies "
           f"below: {verdict(cpu.low <= 1)}")
    yield f"{workload.letter} plan: peak of pool {peak}, aim 1.00: {verdict(peak.median <= 1)}"
    aim, held = workload.aims.held_of_bound, rounds.median("plan", "held")
    if aim is not None:
        yield (f"{workload.letter} plan: held of the loop's lower bound {held:.3f}, aim {aim:.2f}: "
               f"{verdict(held <= aim)}")


def judged_checks(workload, rounds):
    """Yields a line for each aim of a level of checks against the pool without checks."""
    for checks in (name for name in CHECKS if {name, "pool"} <= set(rounds.names)):
        for metric, aim in CHECKS[checks].items():
            ratio = rounds.ratio(checks, "pool", metric)
            yield (f"{workload.letter} {checks}: {metric} of pool {ratio}, aim {aim:.2f}: "
                   f"{verdict(ratio.median <= aim)}")


def judged_profile(workload, rounds):
    """Yields a line for the aim of the heap profile, against the pool without its samples."""
    if {"profiled", "pool"} <= set(rounds.names):
        cpu = rounds.ratio("profiled", "pool", "cpu")
        yield (f"{workload.letter} profiled: cpu of pool {cpu}, aim {PROFILE_CPU}: "
               f"{verdict(cpu.median <= PROFILE_CPU)}")


def judged(workload, rounds):
    """Yields a line for each aim. It is met if the median of the ratios is at most the aim."""
    yield from judged_plan(workload, rounds)
    yield from judged_profile(workload, rounds)
    yield from judged_checks(workload, rounds)
    for ours in (name for name in rounds.names
                 if allocators.ALL[name].is_ours and name not in CHECKS):
        for name, ratio, aim in aims_of(workload, rounds, ours):
            yield (f"{workload.letter} {ours}: {name} {ratio}, aim {aim:.2f}: "
                   f"{verdict(ratio.median <= aim)}")
