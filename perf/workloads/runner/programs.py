"""The cost of the interposer for programs that allocate few blocks above its minimum of 64 KiB."""

import random
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import allocators, measure, ratios, redis

REPOSITORY = Path(__file__).resolve().parents[3]
AIM = 1.02
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 400000)
    insert into t select x, printf('%d-%x', x * 7919 % 100003, x * x), x / 7.0 from n;
create index i on t(b); select count(*), sum(length(b)), max(b) from t;
delete from t where a % 3 = 0; vacuum; select count(*), round(sum(c)) from t;
select sum(length(b)) from (select b from t order by b desc);"""


def gcc(environment, expected, folder):
    """Compiles one file of this project with optimization."""
    command = ["g++", "-std=c++20", "-O2", f"-I{REPOSITORY / 'include'}", f"-I{REPOSITORY / 'lib'}",
               "-c", str(REPOSITORY / "lib/pool/pool.cpp"), "-o", "one.o"]
    metrics, _ = measure.run(command, environment, expected, folder=folder)
    return metrics.cpu


def sqlite(environment, expected, folder):
    """Fills and queries a table of 400,000 rows with an index, in memory."""
    metrics, _ = measure.run(["sqlite3", ":memory:", SQL], environment, expected, folder=folder)
    return metrics.cpu


@dataclass(frozen=True)
class Program:
    name: str
    needs: str  # command that must be installed
    seconds: Callable  # runs the program once and returns CPU seconds


ALL = (Program("gcc", "g++", gcc), Program("sqlite3", "sqlite3", sqlite),
       Program("redis, 10^6 requests", "redis-benchmark", redis.seconds))


def environment_with(interposer):
    return allocators.clean_environment() | ({"LD_PRELOAD": str(interposer)} if interposer else {})


def run_rounds(program, interposer, count, progress):
    """Returns CPU seconds without and with the interposer, round by round."""
    seconds = {None: [], interposer: []}
    order = list(seconds)
    draw = random.Random(program.name)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            draw.shuffle(order)
            for library in order:
                progress(f"{program.name}: round {number + 1} of {count}")
                expected = (library.name,) if library else ()
                seconds[library].append(program.seconds(environment_with(library), expected, folder))
    return seconds[None], seconds[interposer]


def compare(interposer, count, progress):
    """Prints a table. Below 64 KiB the program's own allocator serves; redis links jemalloc."""
    print("| program | CPU s without | with interposer from 64 KiB | ratio | aim |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for program in ALL:
        if not shutil.which(program.needs):
            print(f"| {program.name} | {program.needs} is not installed |  |  |  |")
            continue
        without, with_it = run_rounds(program, interposer, count, progress)
        ratio = ratios.ratio(with_it, without)
        progress("")
        print(f"| {program.name} | {statistics.median(without):.3f} "
              f"| {statistics.median(with_it):.3f} | {ratio} "
              f"| {AIM:.2f}: {'met' if ratio.median <= AIM else 'MISSED'} |", flush=True)
