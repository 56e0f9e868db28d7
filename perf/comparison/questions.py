"""The questions and the aims. An aim is a limit for the ratio of ours to another, in one run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    benchmark: str  # its name in the program
    label: str
    best: float = None  # aim: maximum ratio to the best rival
    floor: float = None  # aim: maximum ratio to the floor
    glibc: float = None  # aim: maximum ratio to glibc, instead of `best`
    slowest: float = None  # aim: maximum ratio of our slowest round to the best rival's median


@dataclass(frozen=True)
class Count:
    """A count that is reported in addition to the time."""

    field: str  # its name in the program's report
    title: str
    unit: float = 1
    aim: float = None  # maximum


@dataclass(frozen=True)
class Question:
    name: str
    title: str
    rows: tuple
    unit: float = 1e-9  # seconds
    unit_name: str = "ns"
    repeats: int = 1  # rounds for each requested round; more where times vary more
    note: str = ""
    over_base: bool = False  # show times relative to touching alone
    count: Count = None


def size_name(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024


def pair_rows():
    sizes = [64 << bucket for bucket in range(11)]
    rows = [Row(f"pair/{size}", size_name(size), best=0.6, floor=1.4) for size in sizes]
    return (*rows, Row("pair_of_constant_size", "1 KiB, const"))


def batch_rows():
    aims = {64: 0.75, 1 << 10: 0.5, 16 << 10: 0.4, 64 << 10: 0.3}
    orders = ("forward", "reverse", "random")
    return tuple(
        Row(f"batch/{size}/{number}", f"{size_name(size)} {order}", best=aim)
        for size, aim in aims.items()
        for number, order in enumerate(orders)
    )


def large_rows():
    sizes = [128 << 10, 1 << 20, 16 << 20, 256 << 20]
    page_sizes = [sizes[0], sizes[-1]]
    return (
        *(Row(f"large/{size}", size_name(size), floor=1.01) for size in sizes),
        *(Row(f"large_varied/{size}", f"{size_name(size)} ± 5 %", floor=1.01) for size in sizes),
        Row("large_sixteen", "16 at once", floor=1.07),
        Row("large_sixteen_varied", "16, varied", floor=1.07),
        *(Row(f"large_byte_a_page/{size}", f"{size_name(size)}, pages") for size in page_sizes),
    )


ALL = (
    Question("pair", "allocate and sized deallocate, one thread; ns a pair", pair_rows(),
             note="const: the compiler sees the size."),
    Question("batch", "1000 blocks, then freed in order, in reverse, in random order; ns a pair",
             batch_rows()),
    Question("replace", "4096 blocks, replaced at random, sizes 64 B to 64 KiB; ns a step",
             (Row("replace", "one thread", best=0.6),
              Row("replace_beside_another_thread", "two threads", best=0.7))),
    Question("handover", "one thread allocates, another frees; ns a block",
             (Row("handover/real_time", "256 B", best=0.3),
              Row("handover_mixed/real_time", "mixed sizes", best=0.15)), repeats=5,
             note="The floor is passing pointers alone."),
    Question("large", "allocate, touch, free, relative to touching alone", large_rows(),
             unit=1e-6, unit_name="µs", over_base=True,
             count=Count("faults", "minor page faults a round", aim=0),
             note="Every byte is written; pages: one byte of each page; 16: the first 64 KiB of each."),
    Question("fresh", "10,000 blocks of 1 KiB written and freed; µs in all",
             (Row("fresh/iterations:1", "first time", best=0.8, slowest=1.1),
              Row("fresh_again", "again", best=0.4),
              Row("fresh_growth/iterations:1", "256 MiB")),
             unit=1e-6, unit_name="µs", repeats=3,
             count=Count("peak_resident_bytes", "peak resident memory of the process, MiB",
                         unit=1 << 20),
             note="256 MiB: as many blocks of 1 KiB, in the same process after the others."),
)
