"""tensorpool.planned: loops of NumPy code that are served from a plan."""

import asyncio
import contextvars
import os
import tempfile
import threading
import unittest
import unittest.mock

from support import EnabledCase, np, run_python, tensorpool

MIB = 1 << 20


def step(size=MIB):
    """Each array ends before the next but one begins."""
    array = np.ones(size, np.uint8)
    for _ in range(3):
        array = array + array
    return int(array[0])


class Iterations(EnabledCase):
    def test_are_served_from_a_plan(self):
        for _ in range(4):
            with tensorpool.planned("served") as loop:
                self.assertEqual(step(), 8)
        counted = loop.statistics
        self.assertEqual(counted["name"], "served")
        self.assertEqual(counted["from_pool"], 8)
        self.assertEqual(counted["served"], 8)
        self.assertEqual(counted["plan_peak_bytes"], 2 * MIB)
        self.assertEqual(counted["in_use_bytes"], 0)
        listed = [arena["name"] for arena in tensorpool.statistics()["planned"]]
        self.assertIn("served", listed)

    def test_leave_smaller_requests_to_the_pool(self):
        for _ in range(2):
            with tensorpool.planned("large only", min_bytes="2MiB") as loop:
                step(MIB)
        self.assertEqual(loop.statistics["from_pool"], 0)
        with self.assertRaisesRegex(ValueError, "min_bytes is 65536, expected at least 65537"):
            tensorpool.planned("large only", 65536)

    def test_arrays_outlive_them(self):
        for number in range(4):
            with tensorpool.planned("kept"):
                step()
                if number == 3:
                    kept = np.full(MIB, 7, np.uint8)
        self.assertTrue((kept == 7).all())

    def test_threads_join_them(self):
        def other(loop):
            with loop.join():
                step()

        for _ in range(3):
            with tensorpool.planned("joined") as loop:
                thread = threading.Thread(target=other, args=(loop,))
                thread.start()
                thread.join()
        self.assertEqual(loop.statistics["served"], 4)
        with self.assertRaisesRegex(RuntimeError, "join: no iteration is under way"):
            with loop.join():
                pass

    def test_end_when_an_exception_leaves_them(self):
        for _ in range(2):
            with self.assertRaises(KeyError), tensorpool.planned("raises") as loop:
                step()
                raise KeyError("x")
        self.assertEqual(loop.statistics["iterations"], 2)

    def test_nest_under_other_names_only(self):
        with tensorpool.planned("outer"):
            with tensorpool.planned("inner"):
                step()
            with self.assertRaisesRegex(RuntimeError, "an iteration is under way on thread"):
                tensorpool.planned("outer").__enter__()

    def test_end_in_any_order(self):
        first, second = tensorpool.planned("first"), tensorpool.planned("second")
        for _ in range(4):
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            step()  # served by the second
            second.__exit__(None, None, None)
            step()
        self.assertEqual(second.statistics["served"], 8)
        self.assertEqual(first.statistics["served"] + first.statistics["from_pool"], 0)
        with self.assertRaisesRegex(RuntimeError, "an iteration ends, but none has begun"):
            first.__exit__(None, None, None)

    def test_keep_other_threads_out(self):
        loop = tensorpool.planned("shared by threads")
        refused = []

        def work():
            for _ in range(200):
                try:
                    with loop:
                        step(100_000)
                except RuntimeError as error:
                    refused.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(loop.statistics["iterations"] + len(refused), 600)
        self.assertTrue(all("an iteration is under way" in text for text in refused))

    def test_end_on_any_thread(self):
        loop = tensorpool.planned("moved")
        for number in range(4):
            loop.__enter__()
            step()
            thread = threading.Thread(target=loop.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
            step()
            self.assertEqual(loop.statistics["iterations"], number + 1)
        self.assertEqual(loop.statistics["served"], 8)

    def test_end_with_generators_that_are_collected(self):
        def generate():
            with loop:
                step()
                yield

        loop = tensorpool.planned("in a generator")
        for number in range(4):
            generator = generate()
            next(generator)
            thread = threading.Thread(target=generator.close)
            del generator
            thread.start()
            thread.join()
            step()
            self.assertEqual(loop.statistics["iterations"], number + 1)
        self.assertEqual(loop.statistics["served"], 8)

    def test_that_cannot_begin_leave_nothing_behind(self):
        loop = tensorpool.planned("refused")
        with unittest.mock.patch.object(loop, "_min_bytes", 1), self.assertRaises(ValueError):
            loop.__enter__()
        for _ in range(4):
            with loop:
                step()
        self.assertEqual(loop.statistics["served"], 8)


class Tasks(EnabledCase):
    def test_are_served_from_their_own_loops(self):
        async def main():
            await asyncio.gather(*(self.run_loop(loop, MIB << at) for at, loop in enumerate(loops)))

        loops = [tensorpool.planned(f"task {number}") for number in range(3)]
        asyncio.run(main())
        for loop in loops:
            self.assertEqual(loop.statistics["iterations"], 4)
            self.assertEqual(loop.statistics["from_pool"], 16)
            self.assertEqual(loop.statistics["served"], 16)

    async def run_loop(self, loop, size):
        for _ in range(4):
            with loop:
                step(size)
                await asyncio.sleep(0)
                step(size)
                await asyncio.sleep(0)

    def test_of_others_stay_with_the_pool(self):
        async def other():
            for _ in range(20):
                step()
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(self.run_loop(loop, MIB), other())

        loop = tensorpool.planned("only its task")
        asyncio.run(main())
        self.assertEqual(loop.statistics["served"] + loop.statistics["from_pool"], 32)

    def test_that_start_inside_are_served(self):
        async def main():
            for _ in range(4):
                with loop:
                    await asyncio.create_task(self.inner())
                    step()

        loop = tensorpool.planned("task inside")
        asyncio.run(main())
        self.assertEqual(loop.statistics["served"], 16)

    async def inner(self):
        step()

    def test_are_served_within_their_budgets(self):
        async def budgeted():
            with tensorpool.budget("beside a loop", "100MiB"):
                for _ in range(20):
                    step()
                    await asyncio.sleep(0)

        async def main():
            await asyncio.gather(budgeted(), self.run_loop(loop, MIB))

        loop = tensorpool.planned("beside a budget")
        asyncio.run(main())
        self.assertEqual(loop.statistics["served"], 16)

    def test_keep_their_threads(self):
        """A thread with a copy of the context is served only after it joins."""

        def work():
            step()
            with loop.join():
                step()
            step()

        loop = tensorpool.planned("context copied")
        for _ in range(4):
            with loop:
                context = contextvars.copy_context()
                thread = threading.Thread(target=context.run, args=(work,))
                thread.start()
                thread.join()
        self.assertEqual(loop.statistics["served"], 8)

    def test_may_end_an_iteration_while_another_joins_it(self):
        def work():
            with loop.join():
                joined.set()
                ended.wait()
                contextvars.Context().run(step)
                step()

        loop = tensorpool.planned("ends first")
        joined, ended = threading.Event(), threading.Event()
        with loop:
            thread = threading.Thread(target=work)
            thread.start()
            joined.wait()
        ended.set()
        thread.join()
        with loop:
            step()
        self.assertEqual(loop.statistics["iterations"], 2)


class Plans(EnabledCase):
    def test_are_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "step.plan")
            for _ in range(2):
                with tensorpool.planned("saved") as loop:
                    step()
            loop.save(path)
            loaded = tensorpool.planned("loaded")
            loaded.load(path)
            with loaded:
                step()
            self.assertEqual(loaded.statistics["served"], 4)
            with self.assertRaisesRegex(RuntimeError, "no such plan"):
                loaded.load(os.path.join(folder, "no such plan"))


class Names(unittest.TestCase):
    def test_must_be_texts(self):
        with self.assertRaisesRegex(TypeError, "name is 7, expected a str"):
            tensorpool.planned(7)

    def test_stand_for_one_loop_each(self):
        self.assertIs(tensorpool.planned("same"), tensorpool.planned("same"))
        self.assertIsNot(tensorpool.planned("same"), tensorpool.planned("another"))


class Interpreter(unittest.TestCase):
    def test_ends_with_arrays_of_a_plan_in_use(self):
        run_python(
            "import numpy, tensorpool\n"
            "tensorpool.enable_numpy()\n"
            "for _ in range(4):\n"
            "    with tensorpool.planned('step'):\n"
            "        kept = numpy.ones(1 << 20)\n"
        )


if __name__ == "__main__":
    unittest.main()
