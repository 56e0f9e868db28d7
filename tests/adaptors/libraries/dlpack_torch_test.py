"""PyTorch and C++ exchange tensors of the pool and of PyTorch, each at the same address."""

import ctypes
import os
import sys
import threading
import unittest

try:
    import torch
except ImportError as error:
    print(f"skipped: {error}; install the Debian package python3-torch")
    sys.exit(77)

from dlpack import HeldTensor, Library, PooledTensor

pool = Library(os.environ["DLPACK_EXAMPLE"])


class FromThePool(unittest.TestCase):
    def setUp(self):
        self.before = pool.bytes_in_use()

    def tearDown(self):
        self.assertEqual(pool.bytes_in_use(), self.before)

    def test_tensor_has_the_address_of_the_block_and_writes_it(self):
        pooled = PooledTensor(pool, 300, 200)
        address = ctypes.c_void_p.from_address(pooled._tensor).value
        tensor = torch.from_dlpack(pooled)
        self.assertEqual(tensor.data_ptr(), address)
        self.assertEqual((tensor.shape, tensor.dtype), ((300, 200), torch.float32))
        tensor += 1
        self.assertEqual(ctypes.c_float.from_address(address).value, 1)
        self.assertGreaterEqual(pool.bytes_in_use() - self.before, 300 * 200 * 4)

    def test_views_keep_the_block(self):
        view = torch.from_dlpack(PooledTensor(pool, 300, 200))[::2, 7]
        self.assertGreater(pool.bytes_in_use(), self.before)
        self.assertEqual(view[0], 7)

    def test_another_thread_frees_the_block(self):
        tensors = [torch.from_dlpack(PooledTensor(pool, 100, 100)) for _ in range(50)]
        thread = threading.Thread(target=tensors.clear)
        thread.start()
        thread.join()


class FromPyTorch(unittest.TestCase):
    def test_cpp_reads_the_tensor_in_place_and_keeps_it(self):
        tensor = torch.arange(60_000, dtype=torch.float32).reshape(300, 200)
        address = tensor.data_ptr()
        held = HeldTensor(pool, tensor)
        del tensor
        self.assertEqual(held.address, address)
        self.assertEqual(held.sum, 60_000 * 59_999 / 2)
        held.release()

    def test_round_trip_keeps_the_block(self):
        before = pool.bytes_in_use()
        tensor = torch.from_dlpack(PooledTensor(pool, 30, 20))
        held = HeldTensor(pool, tensor)
        self.assertEqual(held.address, tensor.data_ptr())
        del tensor
        self.assertGreater(pool.bytes_in_use(), before)
        self.assertEqual(held.sum, 600 * 599 / 2)
        held.release()
        self.assertEqual(pool.bytes_in_use(), before)

    def test_other_types_and_orders_are_rejected(self):
        for tensor in (torch.ones(10, dtype=torch.float64), torch.ones(4, 5).t()):
            with self.assertRaises(ValueError):
                HeldTensor(pool, tensor)


if __name__ == "__main__":
    unittest.main()
