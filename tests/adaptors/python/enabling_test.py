"""enable_numpy and disable_numpy: which allocator makes, resizes and frees arrays."""

import unittest

from support import from_pool, in_use, np, run_python, tensorpool


class Enabling(unittest.TestCase):
    def setUp(self):
        self.addCleanup(tensorpool.disable_numpy)

    def test_is_off_initially_and_idempotent(self):
        self.assertFalse(tensorpool.numpy_is_enabled())
        for _ in range(3):
            tensorpool.enable_numpy()
            self.assertTrue(tensorpool.numpy_is_enabled())
            self.assertTrue(from_pool())
        for _ in range(3):
            tensorpool.disable_numpy()
            self.assertFalse(tensorpool.numpy_is_enabled())
            self.assertFalse(from_pool())

    def test_each_array_stays_with_its_allocator(self):
        tensorpool.enable_numpy()
        ours = np.arange(100_000)
        tensorpool.disable_numpy()
        before = in_use()
        others = np.arange(100_000)
        self.assertEqual(in_use(), before)
        ours.resize(300_000, refcheck=False)  # by the pool, though it is not enabled
        self.assertGreater(in_use(), before)
        self.assertTrue(from_pool(ours))
        tensorpool.enable_numpy()
        before_others = in_use()
        others.resize(300_000, refcheck=False)
        self.assertFalse(from_pool(others))
        self.assertEqual(ours[:100_000].tolist(), others[:100_000].tolist())
        del others
        self.assertEqual(in_use(), before_others)
        tensorpool.disable_numpy()
        del ours
        self.assertLess(in_use(), before)

    def test_can_be_toggled_with_arrays_in_use(self):
        arrays = []
        before = None
        for i in range(200):
            (tensorpool.enable_numpy if i % 2 else tensorpool.disable_numpy)()
            if before is None:
                before = in_use()
            arrays.append(np.full(1 + i * 997 % 50_000, i))
            self.assertEqual(from_pool(arrays[-1]), i % 2 == 1)
            if i % 3 == 0:
                arrays.pop(i // 2)
        for array in arrays:
            self.assertTrue((array == array[0]).all())
        del array, arrays
        self.assertEqual(in_use(), before)

    def test_context_manager_nests_and_ends_with_an_error(self):
        with tensorpool.numpy_enabled():
            with tensorpool.numpy_enabled():
                self.assertTrue(from_pool())
            self.assertTrue(from_pool())
        self.assertFalse(from_pool())
        with self.assertRaises(ZeroDivisionError):
            with tensorpool.numpy_enabled():
                1 / 0
        self.assertFalse(from_pool())
        tensorpool.enable_numpy()
        with tensorpool.numpy_enabled():
            pass
        self.assertTrue(from_pool())


class WithoutNumPy(unittest.TestCase):
    def test_the_package_works(self):
        run_python(
            "import sys, tensorpool\n"
            "assert 'numpy' not in sys.modules\n"
            "assert not tensorpool.numpy_is_enabled()\n"
            "tensorpool.disable_numpy()\n"
            "assert 'numpy' not in sys.modules\n"
            "with tensorpool.scope('x') as x: pass\n"
            "assert tensorpool.limit('1MiB') == 1 << 20\n"
            "assert tensorpool.trim() == 0\n"
        )

    def test_enabling_names_what_is_missing(self):
        printed = run_python(
            "import sys, tensorpool\n"
            "sys.modules['numpy'] = None\n"
            "try:\n"
            "    tensorpool.enable_numpy()\n"
            "except ImportError as error:\n"
            "    print(error)\n"
        )
        self.assertIn("tensorpool: enable_numpy: NumPy cannot be used", printed)
        self.assertIn("expected 1.22 or later", printed)


class AtExit(unittest.TestCase):
    def test_arrays_may_outlive_the_interpreter(self):
        run_python(
            "import builtins, threading, numpy, tensorpool\n"
            "tensorpool.enable_numpy()\n"
            "builtins.kept = [numpy.ones(n) for n in (1, 100, 100000)]\n"
            "loop = [numpy.ones(10)]; loop.append(loop); del loop\n"
            "threading.Thread(target=lambda: setattr(builtins, 'more', numpy.ones(50))).start()\n"
        )


if __name__ == "__main__":
    unittest.main()
