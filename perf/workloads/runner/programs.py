"""Programs that allocate little above the interposer's minimum of 64 KiB: what it costs them."""

import random
import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import contenders, measure, ratios, redis

REPOSITORY = Path(__file__).resolve().parents[3]
AIM = 1.02
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 400000)
    insert into t select x, printf('%d-%x', x * 7919 % 100003, x * x), x / 7.0 from n;
create index i on t(b); select count(*), sum(length(b)), max(b) from t;
delete from t where a % 3 = 0; vacuum; select count(*), round(sum(c)) from t;
select sum(length(b)) from (select b from t order by b desc);"""


def gcc(environment, expected, folder):
    """One file of this project, optimised."""
    command = ["g++", "-std=c++20", "-O2", f"-I{REPOSITORY / 'include'}", f"-I{REPOSITORY / 'lib'}",
               "-c", str(REPOSITORY / "lib/pool/pool.cpp"), "-o", "one.o"]
    figures, _ = measure.run(command, environment, expected, folder=folder)
    return figures.cpu


def sqlite(environment, expected, folder):
    """A table of 400,000 rows and an index, in memory."""
    figures, _ = measure.run(["sqlite3", ":memory:", SQL], environment, expected, folder=folder)
    return figures.cpu


@dataclass(frozen=True)
class Program:
    name: str
    needs: str  # a command
    seconds: Callable  # of one run


ALL = (Program("gcc", "g++", gcc), Program("sqlite3", "sqlite3", sqlite),
       Program("redis, 10^6 requests", "redis-benchmark", redis.seconds))


def environment_with(interposer):
    return contenders.clean_environment() | ({"LD_PRELOAD": str(interposer)} if interposer else {})


def hold(program, interposer, count, progress):
    """Seconds without and with, of the same rounds."""
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
    """Prints a table. The allocator below is the program's own: jemalloc's in redis."""
    print("| program | CPU s without | with interposer from 64 KiB | ratio | aim |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for program in ALL:
        if not shutil.which(program.needs):
            print(f"| {program.name} | {program.needs} is not installed |  |  |  |")
            continue
        without, with_it = hold(program, interposer, count, progress)
        ratio = ratios.ratio(with_it, without)
        progress("")
        print(f"| {program.name} | {statistics.median(without):.3f} "
              f"| {statistics.median(with_it):.3f} | {ratio} "
              f"| {AIM:.2f}: {'met' if ratio.median <= AIM else 'MISSED'} |", flush=True)
