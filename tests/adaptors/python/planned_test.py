"""tensorpool.planned: loops of NumPy code that are served from a plan."""

import os
import tempfile
import threading
import unittest

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

    def test_end_in_reverse_order(self):
        outer, inner = tensorpool.planned("first"), tensorpool.planned("second")
        outer.__enter__()
        inner.__enter__()
        with self.assertRaisesRegex(RuntimeError, "ends before that of 'second'"):
            outer.__exit__(None, None, None)
        with self.assertRaisesRegex(RuntimeError, "ended with that of a loop around it"):
            inner.__exit__(None, None, None)
        with outer, inner:  # nothing is left of the former
            step()

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

    def test_end_on_the_thread_that_began_them(self):
        errors = []

        def end(loop):
            try:
                loop.__exit__(None, None, None)
            except RuntimeError as error:
                errors.append(str(error))

        with tensorpool.planned("moved") as loop:
            thread = threading.Thread(target=end, args=(loop,), name="other")
            thread.start()
            thread.join()
        self.assertIn("an iteration ends on thread 'other', but it began on", errors[0])


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
