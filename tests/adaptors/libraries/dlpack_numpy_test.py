"""NumPy takes tensors of the pool and hands its own to C++, both at the same address."""

import ctypes
import os
import sys
import threading
import unittest
import weakref

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}; install the Debian package python3-numpy")
    sys.exit(77)

from dlpack import HeldTensor, Library, PooledTensor

pool = Library(os.environ["DLPACK_EXAMPLE"])


def data_of(tensor):
    """The field `data` of a DLManagedTensor, its first."""
    return ctypes.c_void_p.from_address(tensor._tensor).value


class FromThePool(unittest.TestCase):
    def setUp(self):
        self.before = pool.bytes_in_use()

    def tearDown(self):
        self.assertEqual(pool.bytes_in_use(), self.before)

    def test_array_lies_where_the_block_does(self):
        tensor = PooledTensor(pool, 300, 200)
        address = data_of(tensor)
        array = numpy.from_dlpack(tensor)
        self.assertEqual(array.ctypes.data, address)
        self.assertEqual(address % 64, 0)
        self.assertEqual((array.shape, array.dtype), ((300, 200), numpy.float32))
        self.assertEqual(array[299, 199], 300 * 200 - 1)
        self.assertGreaterEqual(pool.bytes_in_use() - self.before, 300 * 200 * 4)

    def test_views_keep_the_block(self):
        view = numpy.from_dlpack(PooledTensor(pool, 300, 200))[::2, ::-1]
        self.assertGreater(pool.bytes_in_use(), self.before)
        self.assertEqual(view[0, 0], 199)

    def test_what_nobody_takes_goes_back(self):
        tensor = PooledTensor(pool, 300, 200)
        capsule = tensor.__dlpack__()
        self.assertRaises(RuntimeError, tensor.__dlpack__)
        self.assertGreater(pool.bytes_in_use(), self.before)
        del capsule

    def test_no_rows(self):
        self.assertEqual(numpy.from_dlpack(PooledTensor(pool, 0, 7)).shape, (0, 7))

    def test_more_than_there_is(self):
        with self.assertRaises(MemoryError):
            PooledTensor(pool, 1 << 30, 1 << 30)

    def test_another_thread_drops_it(self):
        arrays = [numpy.from_dlpack(PooledTensor(pool, 100, 100)) for _ in range(50)]
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()


class FromNumPy(unittest.TestCase):
    def test_cpp_reads_the_array_where_it_is_and_keeps_it(self):
        array = numpy.arange(60_000, dtype=numpy.float32).reshape(300, 200)
        address, alive = array.ctypes.data, weakref.ref(array)
        held = HeldTensor(pool, array)
        del array
        self.assertIsNotNone(alive())
        self.assertEqual(held.address, address)
        self.assertEqual(held.sum, 60_000 * 59_999 / 2)
        held.let_go()
        self.assertIsNone(alive())

    def test_a_part_begins_at_its_own_address(self):
        array = numpy.ones((10, 100), numpy.float32)
        held = HeldTensor(pool, array[3])
        self.assertEqual(held.address, array.ctypes.data + 3 * 400)
        self.assertEqual(held.sum, 100)
        held.let_go()

    def test_other_types_and_orders_are_refused_and_stay_numpys(self):
        makers = (lambda: numpy.ones(10), lambda: numpy.ones((4, 5), numpy.float32).T,
                  lambda: numpy.ones(10, numpy.float32)[::-1])
        for make in makers:
            array = make()
            alive = weakref.ref(array)
            with self.assertRaises(ValueError):
                HeldTensor(pool, array)
            del array
            self.assertIsNone(alive())

    def test_what_numpy_may_not_write_it_does_not_hand_over(self):
        array = numpy.from_dlpack(PooledTensor(pool, 3, 2))  # read-only, as NumPy 1.24 takes them
        with self.assertRaises(BufferError):
            HeldTensor(pool, array)


if __name__ == "__main__":
    unittest.main()
