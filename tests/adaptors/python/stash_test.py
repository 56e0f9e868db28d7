"""tensorpool.stash: arrays come back as they were."""

import gc
import os
import tempfile
import unittest

from support import EnabledCase, np, run_python, tensorpool

MIB = 1 << 20


def arrays():
    random = np.random.default_rng(1)
    yield random.standard_normal((300, 500))
    yield random.standard_normal((300, 500)).astype(np.float32)
    yield random.standard_normal(70001).astype(np.float16)
    yield random.integers(-9, 9, (3, 5, 70000), np.int16)
    yield np.arange(100000, dtype=">i4")
    yield np.array([np.nan, -np.nan, -0.0, np.inf, 5e-324])
    yield random.standard_normal(1000) + 1j
    yield np.array(["text", "längerer"])
    yield np.array([("a", 1, 2.5)], dtype=[("name", "S4"), ("n", "i4"), ("x", "f8")])
    yield np.array(["2024-01-01"], "datetime64[D]")
    yield np.zeros((0, 3), np.float32)
    yield np.array(7.5)
    yield np.asfortranarray(random.standard_normal((30, 50)))
    yield random.standard_normal((40, 50))[::2, ::3]
    yield np.array([True, False])


class Restored(EnabledCase):
    def check(self, array, **options):
        stashed = tensorpool.stash(array, **options)
        self.assertEqual(stashed.nbytes, array.nbytes)
        restored = stashed.restore()
        self.assertEqual(restored.dtype, array.dtype)
        self.assertEqual(restored.shape, array.shape)
        self.assertEqual(restored.tobytes(), array.tobytes())
        self.assertEqual(stashed.nbytes_at_rest, 0)
        with self.assertRaisesRegex(RuntimeError, "it was restored before"):
            stashed.restore()
        return restored

    def test_arrays_are_equal_bit_for_bit(self):
        for array in arrays():
            with self.subTest(dtype=array.dtype, shape=array.shape):
                self.check(array)

    def test_arrays_keep_fortran_order(self):
        self.assertTrue(self.check(np.asfortranarray(np.ones((30, 50)))).flags.f_contiguous)

    def test_arrays_come_back_from_a_file(self):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(__file__)) as folder:
            try:
                self.check(np.arange(MIB, dtype=np.float32), folder=folder, name="spilled")
            except RuntimeError as error:
                self.skipTest(f"cannot spill here: {error}")
            self.assertEqual(os.listdir(folder), [])

    def test_memory_is_given_back_while_they_rest(self):
        stashed = tensorpool.stash(np.zeros(16 * MIB, np.uint8), "zeros")
        gc.collect()
        pools = tensorpool.statistics()["pools"]
        held = sum(pool["in_use_bytes"] for pool in pools) - self.in_use_before
        self.assertLess(held, MIB)
        self.assertLess(stashed.nbytes_at_rest, MIB // 16)
        self.assertEqual(stashed.restore().sum(), 0)

    def test_a_refusal_keeps_the_content(self):
        stashed = tensorpool.stash(np.ones(4 * MIB, np.uint8))
        with self.assertRaises(MemoryError):
            with tensorpool.budget("none", "1MiB"):
                stashed.restore()
        self.assertEqual(stashed.restore().sum(), 4 * MIB)


class Refused(EnabledCase):
    def test_are_other_objects(self):
        for bad, text in (
            ([1, 2], "got a list, expected a numpy.ndarray"),
            (np.ma.masked_array([1], [True]), "got a MaskedArray"),
            (np.array([{}]), "the elements are Python objects"),
        ):
            with self.assertRaisesRegex(TypeError, f"tensorpool: stash 'x': .*{text}"):
                tensorpool.stash(bad, "x")
        with self.assertRaisesRegex(TypeError, "name is 3, expected a str"):
            tensorpool.stash(np.ones(3), 3)

    def test_are_folders_that_do_not_exist(self):
        with self.assertRaisesRegex(RuntimeError, "/nowhere"):
            tensorpool.stash(np.ones(3), folder="/nowhere")


class Processes(unittest.TestCase):
    def test_need_no_numpy_to_import_the_package(self):
        self.assertEqual(
            run_python("import sys, tensorpool; print('numpy' in sys.modules)"), "False\n"
        )


if __name__ == "__main__":
    unittest.main()
