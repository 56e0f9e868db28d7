"""tensorpool.scope: what it counts, and when it raises errors."""

import asyncio
import concurrent.futures
import contextvars
import gc
import os
import tempfile
import threading
import unittest
import unittest.mock

from support import EnabledCase, np, run_python, tensorpool

MIB = 1 << 20


CHARGED_SCOPE_IN_ANOTHER_CONTEXT = """
import contextvars, numpy as np, tensorpool
tensorpool.enable_numpy()
MIB = 1 << 20

def take(size):
    return np.empty(size * MIB, np.uint8)

def charged():
    budgets = tensorpool.statistics()["budgets"]
    return next(one["in_use_bytes"] for one in budgets if one["name"] == "charged") // MIB

def in_a_context_of_its_own():
    tensorpool.enable_numpy()
    with tensorpool.scope("charged") as scope:
        kept = take(2)
        print(charged())
    print(scope.statistics.allocated_bytes // MIB)

with tensorpool.budget("followed before", "100MiB") as before:
    kept = take(1)
    contextvars.Context().run(in_a_context_of_its_own)
    more = take(4)
    print(before.in_use // MIB)
after = take(8)
print(before.in_use // MIB, charged())
"""


def of_name(name):
    scopes = tensorpool.statistics()["scopes"]
    return next(scope for scope in scopes if scope["name"] == name)


def take(size):
    return np.empty(size, np.uint8)


class Statistics(EnabledCase):
    def test_count_what_is_done_inside(self):
        before = take(2 * MIB)
        with tensorpool.scope("inside") as inside:
            kept = take(MIB)
            take(3 * MIB)
            del before
        take(5 * MIB)
        counted = inside.statistics
        self.assertEqual(counted.allocations, 2)
        self.assertEqual(counted.deallocations, 2)
        self.assertEqual(counted.requested_bytes, 4 * MIB)
        self.assertEqual(counted.allocated_bytes, 4 * MIB)
        self.assertEqual(counted.deallocated_bytes, 5 * MIB)
        self.assertEqual(counted.growth_bytes, -MIB)
        self.assertEqual(counted.peak_bytes, 4 * MIB)
        del kept
        self.assertEqual(inside.statistics, counted)

    def test_are_listed_by_name(self):
        for _ in range(3):
            with tensorpool.scope("by name"):
                take(MIB)
        counted = of_name("by name")
        self.assertEqual(counted["calls"], 3)
        self.assertEqual(counted["open"], 0)
        self.assertEqual(counted["allocations"], 3)
        self.assertEqual(counted["peak_bytes"], MIB)

    def test_nest(self):
        with tensorpool.scope("outer") as outer:
            kept = take(MIB)
            with tensorpool.scope("inner") as inner:
                take(4 * MIB)
            del kept
        self.assertEqual(inner.statistics.peak_bytes, 4 * MIB)
        self.assertEqual(inner.statistics.allocations, 1)
        self.assertEqual(outer.statistics.peak_bytes, 5 * MIB)
        self.assertEqual(outer.statistics.allocations, 2)

    def test_can_be_read_while_the_scope_is_open(self):
        with tensorpool.scope("so far") as so_far:
            self.assertEqual(so_far.statistics, tensorpool.ScopeStatistics())
            take(MIB)
            self.assertEqual(so_far.statistics.peak_bytes, MIB)
            self.assertEqual(of_name("so far")["open"], 1)

    def test_are_those_of_the_latest_use(self):
        again = tensorpool.scope("again")
        self.assertEqual(again.statistics, tensorpool.ScopeStatistics())
        for size in (MIB, 2 * MIB):
            with again:
                take(size)
            self.assertEqual(again.statistics.peak_bytes, size)

    def test_count_one_thread(self):
        with tensorpool.scope("one thread") as here:
            with concurrent.futures.ThreadPoolExecutor(1) as executor:

                def there():
                    with tensorpool.scope("one thread") as scope:
                        take(2 * MIB)
                    return scope.statistics

                counted = executor.submit(there).result()
            take(MIB)
        self.assertEqual(counted.peak_bytes, 2 * MIB)
        self.assertEqual(here.statistics.peak_bytes, MIB)

    def test_are_complete_after_an_error(self):
        with self.assertRaises(ZeroDivisionError):
            with tensorpool.scope("error") as scope:
                take(MIB)
                1 / 0
        self.assertEqual(scope.statistics.allocations, 1)
        self.assertEqual(of_name("error")["open"], 0)

    def test_names_may_be_long_and_not_ascii(self):
        for name in ("", "größe", "x" * 200):
            with tensorpool.scope(name) as scope:
                take(MIB)
            self.assertEqual(scope.statistics.allocations, 1)
            self.assertEqual(scope.name, name)


class Decorators(EnabledCase):
    def test_count_each_call(self):
        @tensorpool.scope("decorated")
        def work(depth, *, size):
            "A docstring."
            array = take(size)
            return array.size if depth == 0 else work(depth - 1, size=size)

        self.assertEqual(work(3, size=MIB), MIB)
        self.assertEqual(work.__doc__, "A docstring.")
        counted = of_name("decorated")
        self.assertEqual(counted["calls"], 4)
        self.assertEqual(counted["peak_bytes"], 4 * MIB)
        self.assertEqual(counted["out_of_order"], 0)

    def test_reject_functions_whose_body_runs_later(self):
        async def coroutine():
            pass

        def generator():
            yield

        async def both():
            yield

        for function in (coroutine, generator, both):
            with self.assertRaisesRegex(TypeError, "tensorpool: scope 'later': .* runs after its call"):
                tensorpool.scope("later")(function)


class Misuse(EnabledCase):
    def test_ending_on_another_thread_is_an_error(self):
        scope = tensorpool.scope("wandering")
        scope.__enter__()
        take(MIB)
        errors = []

        def end():
            try:
                scope.__exit__(None, None, None)
            except RuntimeError as error:
                errors.append(str(error))

        thread = threading.Thread(target=end, name="elsewhere")
        thread.start()
        thread.join()
        self.assertEqual(len(errors), 1)
        self.assertRegex(errors[0], "^tensorpool: scope 'wandering' began on thread 'MainThread' ")
        self.assertIn("ends on 'elsewhere', expected the same", errors[0])
        self.assertEqual(scope.statistics.allocations, 1)
        self.assertEqual(of_name("wandering")["open"], 0)
        self.assertEqual(of_name("wandering")["out_of_order"], 1)

    def test_exception_of_the_block_is_not_hidden(self):
        scope = tensorpool.scope("wandering too").__enter__()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            end = executor.submit(scope.__exit__, ValueError, ValueError("mine"), None)
            self.assertFalse(end.result())

    def test_entering_twice_is_an_error(self):
        with tensorpool.scope("twice") as scope:
            with self.assertRaisesRegex(RuntimeError, "tensorpool: scope 'twice' has begun"):
                with scope:
                    pass
            take(MIB)
        self.assertEqual(scope.statistics.allocations, 1)

    def test_leaving_without_entering_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "tensorpool: scope 'never' ends"):
            tensorpool.scope("never").__exit__(None, None, None)

    def test_name_that_is_no_str_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "tensorpool: scope: name is 5, expected a str"):
            tensorpool.scope(5)


class Tasks(EnabledCase):
    def setUp(self):
        super().setUp()
        take(MIB)  # nothing is made by the first one

    async def work(self, name, size, turns):
        with tensorpool.scope(name) as scope:
            kept = [take(100)]
            for _ in range(turns):
                kept.append(take(size))
                await asyncio.sleep(0)
        self.assertEqual(of_name(name)["allocations"], scope.statistics.allocations)
        return scope.statistics

    def assert_ended_once(self, *names):
        for name in names:
            counted = of_name(name)
            self.assertEqual((counted["calls"], counted["open"], counted["out_of_order"]), (1, 0, 0))

    def test_count_what_they_do_themselves(self):
        async def main():
            return await asyncio.gather(self.work("first", MIB, 2), self.work("second", 2 * MIB, 4))

        first, second = asyncio.run(main())
        self.assertEqual((first.allocations, first.peak_bytes), (3, 2 * MIB + 128))
        self.assertEqual((second.allocations, second.peak_bytes), (5, 8 * MIB + 128))
        self.assert_ended_once("first", "second")

    def test_count_the_tasks_that_start_in_their_blocks(self):
        async def main():
            stranger = asyncio.create_task(self.work("stranger", MIB, 9))
            await asyncio.sleep(0)
            with tensorpool.scope("whole") as whole:
                await asyncio.gather(self.work("one", MIB, 2), self.work("two", MIB, 3))
            return await stranger, whole.statistics

        stranger, whole = asyncio.run(main())
        self.assertEqual(stranger.allocations, 10)
        self.assertEqual(whole.allocations, 3 + 4)
        self.assertEqual(whole.deallocations, 3 + 4)
        self.assert_ended_once("stranger", "whole", "one", "two")

    def test_count_their_own_frees(self):
        async def main():
            arrays = [take(MIB), take(2 * MIB)]
            turn = asyncio.Event()

            async def free_first():
                with tensorpool.scope("frees") as scope:
                    del arrays[0]
                    turn.set()
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                return scope.statistics

            async def free_second():
                await turn.wait()
                arrays.clear()

            counted, _ = await asyncio.gather(free_first(), free_second())
            return counted

        self.assertEqual(asyncio.run(main()).deallocated_bytes, MIB)

    def test_do_not_count_other_threads(self):
        async def main():
            with tensorpool.scope("of the loop") as scope:
                take(MIB)
                await asyncio.to_thread(take, 2 * MIB)
            return scope.statistics

        self.assertEqual(asyncio.run(main()).allocated_bytes, MIB)
        self.assert_ended_once("of the loop")

    def test_have_budgets_in_scopes_and_scopes_in_budgets(self):
        async def limited(name):
            with tensorpool.scope(name) as outer, tensorpool.budget(name, "3MiB") as budget:
                with tensorpool.scope(name + "'s inner") as inner:
                    kept = take(2 * MIB)
                    await asyncio.sleep(0)
                    with self.assertRaises(MemoryError):
                        take(2 * MIB)
                    await asyncio.sleep(0)
                    self.assertEqual(budget.in_use, 2 * MIB)
                    del kept
            return outer.statistics.allocated_bytes, inner.statistics.allocated_bytes

        async def main():
            return await asyncio.gather(limited("left"), limited("right"))

        self.assertEqual(asyncio.run(main()), [(2 * MIB, 2 * MIB)] * 2)
        self.assert_ended_once("left", "right", "left's inner", "right's inner")


class Order(EnabledCase):
    def test_blocks_may_end_in_any_order(self):
        first = tensorpool.scope("ends first").__enter__()
        second = tensorpool.scope("ends second").__enter__()
        take(MIB)
        first.__exit__(None, None, None)
        take(2 * MIB)
        second.__exit__(None, None, None)
        take(4 * MIB)
        self.assertEqual(first.statistics.allocated_bytes, MIB)
        self.assertEqual(second.statistics.allocated_bytes, 3 * MIB)
        self.assertEqual(of_name("ends first")["out_of_order"], 0)

    def test_block_in_a_generator_lasts_until_that_ends(self):
        def generator():
            with tensorpool.scope("of a generator") as scope:
                yield scope

        for scope in generator():
            take(MIB)
        take(2 * MIB)
        self.assertEqual(scope.statistics.allocated_bytes, MIB)

    def test_begins_when_the_thread_has_left_the_blocks_of_another_context(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("scope charged hard=1GiB\n")
            file.flush()
            with unittest.mock.patch.dict(os.environ, TENSORPOOL_BUDGETS=file.name):
                printed = run_python(CHARGED_SCOPE_IN_ANOTHER_CONTEXT)
        self.assertEqual(printed.split(), ["2", "2", "5", "5", "0"])

    # A change of a context may collect garbage, and is not to be disturbed then.
    def test_scope_and_budget_of_collected_generators_change_no_context(self):
        def suspended(block):
            with block:
                yield

        own = [contextvars.ContextVar(f"own {i}", default=None) for i in range(40)]
        gc.disable()
        self.addCleanup(gc.enable)
        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        for i in range(1000):
            box = []
            for block in (tensorpool.scope("collected"), tensorpool.budget("collected")):
                box.append(suspended(block))
                next(box[-1])
            box.append(box)
            del block, box
            gc.set_threshold(gc.get_count()[0] + i % 12, 1000, 1000)
            gc.enable()
            own[i % 40].set([i])
            gc.disable()
            self.assertEqual(own[i % 40].get(), [i])
        gc.collect()
        self.assertEqual(of_name("collected")["open"], 0)

    def test_scope_that_is_dropped_ends(self):
        tensorpool.scope("dropped").__enter__()
        take(MIB)
        counted = of_name("dropped")
        self.assertEqual((counted["calls"], counted["open"], counted["allocations"]), (1, 0, 0))


if __name__ == "__main__":
    unittest.main()
