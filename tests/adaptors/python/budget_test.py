"""tensorpool.budget: what is charged, and what is refused."""

import asyncio
import contextvars
import gc
import os
import threading
import time
import unittest

from support import EnabledCase, np, tensorpool

MIB = 1 << 20


def take(size):
    return np.ones(size, np.uint8)


class Charges(EnabledCase):
    def test_last_until_the_array_is_freed(self):
        with tensorpool.budget("loader", "8MiB") as loader:
            kept = take(3 * MIB)
            take(2 * MIB)
            self.assertLess(loader.in_use - 3 * MIB, MIB)  # small blocks that the thread keeps
        take(16 * MIB)
        self.assertEqual(loader.in_use, 3 * MIB)
        thread = threading.Thread(target=kept.resize, args=(0,), kwargs={"refcheck": False})
        thread.start()
        thread.join()
        self.assertLess(loader.in_use, MIB)
        del kept, thread
        self.assertEqual(loader.in_use, 0)

    def test_of_a_resized_array_are_those_of_its_new_size(self):
        outside = take(MIB)
        with tensorpool.budget("resized", "8MiB") as resized:
            outside.resize(3 * MIB, refcheck=False)
            self.assertEqual(resized.in_use, 3 * MIB)
            outside.resize(3 * MIB - 1, refcheck=False)
            self.assertEqual(resized.in_use, 3 * MIB)
            with self.assertRaises(MemoryError):
                outside.resize(40 * MIB, refcheck=False)
            self.assertEqual(resized.in_use, 3 * MIB)
        outside.resize(40 * MIB, refcheck=False)
        self.assertEqual(resized.in_use, 0)
        self.assertEqual(outside.size, 40 * MIB)
        self.assertEqual(outside[:MIB].sum(), MIB)

    def test_include_small_arrays(self):
        with tensorpool.budget("small", "4MiB") as small:
            kept = [take(1000) for _ in range(1000)]
            self.assertGreaterEqual(small.in_use, 1000 * 1024)
        kept.clear()
        self.assertEqual(small.in_use, 0)

    def test_of_nested_blocks_count_for_the_parent(self):
        with tensorpool.budget("outer", "8MiB") as outer:
            with tensorpool.budget("inner", 4 * MIB) as inner:
                kept = take(3 * MIB)
            also = take(MIB)
        self.assertIs(inner.parent, outer)
        self.assertEqual(inner.in_use, 3 * MIB)
        self.assertEqual(outer.in_use, 4 * MIB)
        del kept, also

    def test_are_those_of_the_given_parent(self):
        above = tensorpool.budget("above")
        with tensorpool.budget("elsewhere") as elsewhere:
            with tensorpool.budget("below", parent=above):
                kept = take(MIB)
        self.assertEqual(above.in_use, MIB)
        self.assertEqual(elsewhere.in_use, 0)
        del kept

    def test_of_several_threads_are_added(self):
        shared = tensorpool.budget("shared", "8MiB")
        kept = []

        def work():
            tensorpool.enable_numpy()
            with shared:
                kept.append(take(MIB))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(shared.in_use, 4 * MIB)
        kept.clear()
        self.assertEqual(shared.in_use, 0)

    def test_of_one_thread_in_the_block_are_not_those_of_others(self):
        with tensorpool.budget("here") as here:
            kept = []

            def work():
                tensorpool.enable_numpy()
                kept.append(take(MIB))

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.assertEqual(here.in_use, 0)
            kept.clear()

    def test_remain_with_the_parent_of_a_budget_that_ended(self):
        with tensorpool.budget("stays") as stays:
            with tensorpool.budget("ends"):
                kept = take(MIB)
        gc.collect()
        self.assertEqual(stays.in_use, MIB)
        del kept
        self.assertEqual(stays.in_use, 0)


class Refusals(EnabledCase):
    def test_name_the_levels(self):
        with tensorpool.budget("job", "8MiB") as job:
            with self.assertRaises(MemoryError) as raised:
                with tensorpool.budget("loader", "4MiB") as loader:
                    kept = take(3 * MIB)
                    take(2 * MIB)
        text = str(raised.exception)
        self.assertIn("refused by 'loader': 3 MiB in use of 4 MiB", text)
        self.assertIn("'job': 3 MiB in use of 8 MiB", text)
        self.assertIsInstance(raised.exception.__cause__, MemoryError)
        self.assertEqual(loader.statistics["refusals"], 1)
        del kept
        raised.exception.__traceback__ = None
        self.assertEqual(job.in_use, 0)

    def test_change_nothing(self):
        with tensorpool.budget("loader", "4MiB") as loader:
            kept = take(3 * MIB)
            for request in (np.empty, np.zeros, np.ones):
                with self.assertRaises(MemoryError):
                    request(2 * MIB, np.uint8)
            with self.assertRaises(MemoryError):
                kept.resize(5 * MIB, refcheck=False)
            self.assertEqual(loader.in_use, 3 * MIB)
            self.assertEqual(kept.sum(), 3 * MIB)
            del kept
            self.assertEqual(take(3 * MIB).size, 3 * MIB)

    def test_of_before_are_not_reported(self):
        with tensorpool.budget("loader", "1MiB"):
            with self.assertRaises(MemoryError):
                take(2 * MIB)
        with self.assertRaisesRegex(MemoryError, "^mine$"):
            with tensorpool.budget("other"):
                raise MemoryError("mine")

    def test_that_were_handled_are_not_reported(self):
        with self.assertRaisesRegex(MemoryError, "^GPU: out of memory$"):
            with tensorpool.budget("loader", "1MiB"):
                with self.assertRaises(MemoryError):
                    take(2 * MIB)
                raise MemoryError("GPU: out of memory")

    def test_of_a_resize_name_the_levels(self):
        kept = take(MIB)
        with self.assertRaisesRegex(MemoryError, "refused by 'loader'"):
            with tensorpool.budget("loader", "2MiB"):
                kept.resize(3 * MIB, refcheck=False)


class Limits(EnabledCase):
    def test_can_be_read_and_changed(self):
        budget = tensorpool.budget("limits", hard="4MiB", soft=MIB)
        self.assertEqual(budget.limits, tensorpool.BudgetLimits(4 * MIB, MIB))
        budget.set_limits("1MiB")
        self.assertEqual(budget.limits, tensorpool.BudgetLimits(MIB, None))
        with budget:
            with self.assertRaises(MemoryError):
                take(2 * MIB)
        with self.assertRaisesRegex(ValueError, "soft limit is 3 B"):
            budget.set_limits(2, 3)
        budget.set_limits()
        self.assertEqual(budget.limits, tensorpool.BudgetLimits())
        with budget:
            take(2 * MIB)
        self.assertEqual(budget.statistics["name"], "limits")
        self.assertGreaterEqual(budget.statistics["peak_bytes"], 2 * MIB)

    def test_below_the_charge_refuse_only_what_is_new(self):
        with tensorpool.budget("lowered", "8MiB") as lowered:
            kept = take(4 * MIB)
            lowered.set_limits("2MiB")
            with self.assertRaises(MemoryError):
                take(MIB)
            self.assertEqual(lowered.in_use, 4 * MIB)
            del kept
            take(MIB)

    def test_that_are_none_are_errors(self):
        for bad in (0, -1, "2GB", ""):
            with self.assertRaises(ValueError):
                tensorpool.budget("bad", bad)
        with self.assertRaises(TypeError):
            tensorpool.budget("bad", 1.5)
        with self.assertRaises(ValueError):
            tensorpool.budget("bad", 2**62)
        with self.assertRaisesRegex(TypeError, "name is 1, expected a str"):
            tensorpool.budget(1)
        with self.assertRaisesRegex(TypeError, "parent is 'x', expected a Budget"):
            tensorpool.budget("bad", parent="x")


class Blocks(EnabledCase):
    def test_may_be_entered_again(self):
        with tensorpool.budget("again") as again:
            with again:
                kept = take(MIB)
            also = take(MIB)
        self.assertEqual(again.in_use, 2 * MIB)
        del kept, also

    def test_may_end_in_another_order(self):
        outer, inner = tensorpool.budget("outer", "1MiB"), tensorpool.budget("inner", "2MiB")
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        kept = take(MIB + MIB // 2)
        self.assertLess(inner.in_use - kept.size, MIB // 4)
        inner.__exit__(None, None, None)
        also = take(4 * MIB)
        self.assertLess(inner.in_use - kept.size, MIB // 4)
        self.assertEqual(outer.in_use, 0)
        del also

    def test_may_end_on_another_thread(self):
        budget = tensorpool.budget("moved", "1MiB")
        budget.__enter__()
        thread = threading.Thread(target=budget.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        take(2 * MIB)
        self.assertEqual(budget.in_use, 0)

    def test_that_have_not_begun_do_not_end(self):
        with self.assertRaisesRegex(RuntimeError, "'never': a `with` block ends, but none has begun"):
            tensorpool.budget("never").__exit__(None, None, None)

    def test_may_be_left_open_by_a_thread_that_ends(self):
        budget = tensorpool.budget("open")

        def work():
            tensorpool.enable_numpy()
            budget.__enter__()
            take(MIB)
            take(100)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        # The library's handler runs when the system's thread ends, which may be later.
        end = time.monotonic() + 60
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):
            self.assertLess(time.monotonic(), end, "the system's thread has not ended")
            os.sched_yield()
        gc.collect()
        take(MIB)
        self.assertEqual(budget.in_use, 0)


class Contexts(EnabledCase):
    """Which arrays are charged when a thread goes from one context to another."""

    def assert_charged(self, budgets, sizes):
        """Small blocks that threads keep are charged too."""
        for budget, size in zip(budgets, sizes):
            self.assertGreaterEqual(budget.in_use, size)
            self.assertLess(budget.in_use - size, MIB // 2)

    def test_of_tasks_have_budgets_of_their_own(self):
        budgets = [tensorpool.budget(name, "8MiB") for name in ("first", "second")]
        kept = []

        async def work(budget, turns):
            with budget:
                for _ in range(turns):
                    kept.append(take(MIB))
                    await asyncio.sleep(0)

        async def main():
            await asyncio.gather(work(budgets[0], 2), work(budgets[1], 3), work(budgets[0], 1))

        asyncio.run(main())
        self.assert_charged(budgets, [3 * MIB, 3 * MIB])
        take(16 * MIB)
        with tensorpool.budget("later", "32MiB") as later:
            take(16 * MIB)
        self.assertIsNone(later.parent)
        kept.clear()
        self.assert_charged(budgets, [0, 0])

    def test_of_tasks_are_inherited(self):
        async def make():
            return take(MIB)

        async def main():
            with tensorpool.budget("above", "8MiB") as above:
                task = asyncio.create_task(make())
                thread = asyncio.to_thread(take, MIB)
                kept = [await task, await thread]
                self.assert_charged([above], [2 * MIB])
                with self.assertRaises(MemoryError):
                    await asyncio.to_thread(take, 8 * MIB)
                also = await asyncio.get_running_loop().run_in_executor(None, take, 8 * MIB)
            self.assert_charged([above], [2 * MIB])
            del kept, also

        asyncio.run(main())

    def test_are_refused_by_the_budget_of_their_own_task(self):
        async def request(name, limit):
            with tensorpool.budget(name, limit):
                await asyncio.sleep(0)
                return take(2 * MIB).size

        async def main():
            return await asyncio.gather(
                request("small", "1MiB"), request("large", "4MiB"), return_exceptions=True
            )

        refused, served = asyncio.run(main())
        self.assertRegex(str(refused), "refused by 'small'")
        self.assertEqual(served, 2 * MIB)

    def test_of_generators_end_in_any_order(self):
        def rows(budget, count):
            with budget:
                for _ in range(count):
                    yield take(MIB)

        budgets = [tensorpool.budget(name) for name in ("short", "long")]
        short, long = rows(budgets[0], 1), rows(budgets[1], 2)
        kept = [next(short), next(long)]
        self.assertIsNone(next(short, None))
        kept.append(next(long))
        self.assert_charged(budgets, [MIB, 2 * MIB])
        long.close()
        kept.append(take(MIB))
        self.assert_charged(budgets, [MIB, 2 * MIB])
        kept.clear()

    def test_of_an_asynchronous_generator_may_end_elsewhere(self):
        budget = tensorpool.budget("rows", "1MiB")

        async def rows():
            with budget:
                while True:
                    yield take(1000)

        async def main():
            generator = rows()
            await asyncio.create_task(generator.__anext__())
            take(2 * MIB)
            await generator.aclose()

        asyncio.run(main())
        take(2 * MIB)
        self.assertLess(budget.in_use, MIB)

    def test_of_a_generator_of_another_task_leave_those_of_the_task_alone(self):
        shared = tensorpool.budget("shared", "1MiB")

        async def rows():
            with shared:
                while True:
                    yield None

        async def hold(ready, over):
            with shared:
                ready.set()
                await over.wait()
                take(2 * MIB)

        async def main():
            generator = rows()
            await asyncio.create_task(generator.__anext__())
            ready, over = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(hold(ready, over))
            await ready.wait()
            await generator.aclose()
            over.set()
            with self.assertRaisesRegex(MemoryError, "refused by 'shared'"):
                await task

        asyncio.run(main())

    def test_end_with_the_block_that_they_inherited(self):
        with tensorpool.budget("inherited", "1MiB"):
            context = contextvars.copy_context()
            with self.assertRaises(MemoryError):
                context.run(take, 2 * MIB)
        self.assertEqual(context.run(take, 2 * MIB).size, 2 * MIB)


if __name__ == "__main__":
    unittest.main()
