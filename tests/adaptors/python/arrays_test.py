"""Behaviour of arrays from the pool."""

import os
import pickle
import tempfile
import tracemalloc
import unittest

from support import EnabledCase, from_pool, in_use, np, pool_statistics, tensorpool

SIZES = [1, 7, 8, 63, 64, 100, 1000, 4096, 10_000, 65_536, 65_537, 100_000, 3_000_000]


def compute():
    """Returns the results of various NumPy functions, as bytes."""
    random = np.random.default_rng(12345)
    results = []
    for size in (3, 100, 5000, 200_000):
        a = random.standard_normal(size)
        b = random.integers(-1000, 1000, size)
        results += [np.sqrt(abs(a)) * 2 + b, np.sort(a), np.cumsum(b), np.unique(b), a[::3] + a[::3]]
        results += [np.fft.rfft(a), a.astype(np.float32), np.where(a > 0, a, b)]
        results += [np.argsort(b, kind="stable"), np.concatenate([a, b]), np.repeat(b, 2), b.astype(str), np.bincount(abs(b))]
    square = random.integers(-50, 50, (120, 120)).astype(float)  # products are exact
    results += [square @ square, square.T.copy(), np.einsum("ij,jk->ki", square, square)]
    return [result.tobytes() for result in results]


class ArraysFromThePool(EnabledCase):
    def test_are_counted_until_they_are_freed(self):
        for size in SIZES:
            before = pool_statistics()
            array = np.empty(size, np.uint8)
            self.assertTrue(from_pool(array))
            during = pool_statistics()
            self.assertGreaterEqual(during["in_use_bytes"] - before["in_use_bytes"], size)
            self.assertEqual(during["allocations"] - before["allocations"], 1)
            self.assertEqual(during["requested_bytes"] - before["requested_bytes"], size)
            del array
            self.assertEqual(pool_statistics()["in_use_bytes"], before["in_use_bytes"])

    def test_are_aligned_to_64(self):
        arrays = [np.empty(size, np.uint8) for size in SIZES]
        arrays += [np.zeros(size) for size in SIZES]
        arrays += [array.copy() for array in arrays]
        for array in arrays:
            self.assertEqual(array.ctypes.data % 64, 0, array.size)

    def test_give_bitwise_equal_results(self):
        with_pool = compute()
        tensorpool.disable_numpy()
        without_pool = compute()
        self.assertEqual(with_pool, without_pool)

    def test_keep_their_content(self):
        arrays = [np.full(1 + i * 37 % 5000, i, np.int32) for i in range(5000)]
        for i in range(0, len(arrays), 3):
            arrays[i] = np.full(1 + i * 91 % 7000, i, np.int32)
        for i, array in enumerate(arrays):
            self.assertTrue((array == i).all())

    def test_views_take_no_memory(self):
        array = np.arange(1000)
        before = in_use()
        views = [array[::2], array.reshape(10, 100), array.view(np.uint8), array.T]
        self.assertEqual(in_use(), before)
        del array
        self.assertEqual(in_use(), before)
        self.assertEqual(views[0][499], 998)

    def test_release_their_objects(self):
        class Thing:
            alive = 0

            def __init__(self):
                Thing.alive += 1

            def __del__(self):
                Thing.alive -= 1

        array = np.array([Thing() for _ in range(100)])
        self.assertTrue(from_pool(array))
        self.assertEqual(Thing.alive, 100)
        del array
        self.assertEqual(Thing.alive, 0)

    def test_can_be_pickled(self):
        array = np.arange(10_000).reshape(100, 100)
        buffers = []
        copies = [
            pickle.loads(pickle.dumps(array, 2)),
            pickle.loads(pickle.dumps(array, 5)),
            pickle.loads(pickle.dumps(array, 5, buffer_callback=buffers.append), buffers=buffers),
        ]
        for copy in copies:
            np.testing.assert_array_equal(copy, array)

    def test_are_traced_by_tracemalloc(self):
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        before = tracemalloc.get_traced_memory()[0]
        array = np.empty(1_000_000, np.uint8)
        self.assertGreaterEqual(tracemalloc.get_traced_memory()[0] - before, array.nbytes)
        del array
        self.assertLess(tracemalloc.get_traced_memory()[0] - before, 100_000)


class Zeros(EnabledCase):
    def test_are_zero_in_reused_memory(self):
        for size in SIZES:
            for _ in range(3):
                np.full(size, 255, np.uint8)
                zeros = np.zeros(size, np.uint8)
                self.assertFalse(zeros.any(), size)

    def test_are_zero_for_every_type(self):
        for dtype in (object, "S7", "U3", "M8[s]", [("a", "i4"), ("b", object)], complex):
            np.full(1000, 255, np.uint8)
            zeros = np.zeros((5, 5), dtype)
            self.assertTrue(from_pool(zeros))
            np.testing.assert_array_equal(zeros, np.zeros((5, 5), dtype))
        self.assertEqual(np.zeros(3, object).tolist(), [0, 0, 0])


class EmptyArrays(EnabledCase):
    def test_are_allocated_and_freed(self):
        for shape in (0, (0,), (0, 5), (5, 0, 5)):
            for dtype in ("f8", "S5000", "U9", "S0", "V100000", object):
                for make in (np.empty, np.zeros):
                    array = make(shape, dtype)
                    self.assertEqual(array.tobytes(), b"")
                    self.assertEqual(array.ctypes.data % 64, 0)

    def test_may_change_the_size_of_their_elements(self):
        for made, then in (("S5000", "S1"), ("S1", "S5000"), ("f8", "S200000"), ("S200000", "i1")):
            for make in (np.empty, np.zeros):
                arrays = [make(0, made) for _ in range(200)]
                for array in arrays:
                    array.dtype = then
                    self.assertEqual(array.itemsize, np.dtype(then).itemsize)

    def test_may_be_read_from_an_empty_file(self):
        with tempfile.TemporaryFile() as file:
            self.assertEqual(np.fromfile(file, "S5000").size, 0)


class Resizing(EnabledCase):
    def test_keeps_what_fits_and_adds_zeros(self):
        for before in SIZES:
            for after in SIZES:
                array = np.arange(before) % 250 + 1
                array = array.astype(np.uint8)
                expected = np.resize(array, before).copy()
                array.resize(after, refcheck=False)
                kept = min(before, after)
                self.assertTrue((array[:kept] == expected[:kept]).all(), (before, after))
                self.assertFalse(array[kept:].any(), (before, after))
                self.assertEqual(array.ctypes.data % 64, 0)

    # NumPy then keeps one element, and frees the block with a size of 1.
    def test_to_no_elements_frees_the_right_block(self):
        for dtype in ("u1", "f8", "S5000", "S200000"):
            arrays = [np.zeros(5, dtype) for _ in range(200)]
            for array in arrays:
                array.resize(0, refcheck=False)
            del array, arrays
            self.assertEqual(in_use(), self.in_use_before)

    def test_to_no_elements_and_back(self):
        for dtype in ("u1", "f8", "S5000"):
            array = np.zeros(10_000, dtype)
            array.resize(0, refcheck=False)
            array.resize(10_000, refcheck=False)
            self.assertTrue((array == np.zeros(10_000, dtype)).all())

    def test_while_reading_an_array(self):
        self.assertEqual(np.fromiter(iter(range(300_000)), int).sum(), sum(range(300_000)))
        self.assertEqual(np.fromiter(iter(()), int).size, 0)
        text = " ".join(map(str, range(50_000)))
        self.assertEqual(np.fromstring(text, int, sep=" ").sum(), sum(range(50_000)))
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            self.assertEqual(np.fromfile(file.name, int, sep=" ").size, 50_000)
            with self.subTest("fewer than requested"):
                self.assertEqual(np.fromfile(file.name, np.uint8, 10**7).size, len(text))

    def test_that_fails_keeps_the_array(self):
        array = np.arange(1000)
        with self.assertRaises(MemoryError):
            array.resize(1 << 50, refcheck=False)
        self.assertEqual(array.sum(), 499_500)
        self.assertEqual(array.size, 1000)


class MemoryOfOtherOwners(EnabledCase):
    def test_is_not_taken_from_the_pool(self):
        before = in_use()
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(1_000_000))
            file.flush()
            mapped = np.memmap(file.name, np.uint8, "r+")
            over_bytes = np.frombuffer(bytes(1_000_000), np.uint8)
            self.assertLess(in_use() - before, 100_000)
            mapped[5] = 7
            mapped.flush()
            self.assertEqual(os.pread(file.fileno(), 1, 5), b"\7")
            self.assertEqual(over_bytes.sum(dtype=int), 0)
            del mapped, over_bytes


class HugeArrays(EnabledCase):
    def test_raise_numpys_error_and_leak_nothing(self):
        failures = pool_statistics()["failures"]
        for make in (np.empty, np.zeros, np.ones):
            with self.assertRaisesRegex(MemoryError, r"^Unable to allocate 4\.00 EiB for an array"):
                make((1 << 40, 1 << 22), np.uint8)
        self.assertEqual(pool_statistics()["failures"] - failures, 3)
        self.assertEqual(in_use(), self.in_use_before)
        self.assertEqual(np.ones(10).sum(), 10)


if __name__ == "__main__":
    unittest.main()
