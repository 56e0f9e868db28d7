"""NumPy and C++ exchange tensors of the pool and of NumPy, each at the same address."""

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
    """Returns `data`, the first field of a DLManagedTensor."""
    return ctypes.c_void_p.from_address(tensor._tensor).value


class FromThePool(unittest.TestCase):
    def setUp(self):
        self.before = pool.bytes_in_use()

    def tearDown(self):
        self.assertEqual(pool.bytes_in_use(), self.before)

    def test_array_has_the_address_of_the_block(self):
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

    def test_unused_capsule_frees_the_block(self):
        tensor = PooledTensor(pool, 300, 200)
        capsule = tensor.__dlpack__()
        self.assertRaises(RuntimeError, tensor.__dlpack__)
        self.assertGreater(pool.bytes_in_use(), self.before)
        del capsule

    def test_tensor_without_rows(self):
        self.assertEqual(numpy.from_dlpack(PooledTensor(pool, 0, 7)).shape, (0, 7))

    def test_too_large_a_request_raises_memory_error(self):
        with self.assertRaises(MemoryError):
            PooledTensor(pool, 1 << 30, 1 << 30)

    def test_another_thread_frees_the_block(self):
        arrays = [numpy.from_dlpack(PooledTensor(pool, 100, 100)) for _ in range(50)]
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()


class FromNumPy(unittest.TestCase):
    def test_cpp_reads_the_array_in_place_and_keeps_it(self):
        array = numpy.arange(60_000, dtype=numpy.float32).reshape(300, 200)
        address, alive = array.ctypes.data, weakref.ref(array)
        held = HeldTensor(pool, array)
        del array
        self.assertIsNotNone(alive())
        self.assertEqual(held.address, address)
        self.assertEqual(held.sum, 60_000 * 59_999 / 2)
        held.release()
        self.assertIsNone(alive())

    def test_part_of_an_array_has_its_own_address(self):
        array = numpy.ones((10, 100), numpy.float32)
        held = HeldTensor(pool, array[3])
        self.assertEqual(held.address, array.ctypes.data + 3 * 400)
        self.assertEqual(held.sum, 100)
        held.release()

    def test_other_types_and_orders_are_rejected_and_stay_with_numpy(self):
        makers = (lambda: numpy.ones(10), lambda: numpy.ones((4, 5), numpy.float32).T,
                  lambda: numpy.ones(10, numpy.float32)[::-1])
        for make in makers:
            array = make()
            alive = weakref.ref(array)
            with self.assertRaises(ValueError):
                HeldTensor(pool, array)
            del array
            self.assertIsNone(alive())

    def test_read_only_array_is_not_exported(self):
        array = numpy.from_dlpack(PooledTensor(pool, 3, 2))  # NumPy 1.24 imports arrays as read-only
        with self.assertRaises(BufferError):
            HeldTensor(pool, array)


if __name__ == "__main__":
    unittest.main()
