"""Tensors from the pool work as others do, and too large ones raise PyTorch's own error."""

import concurrent.futures
import copy
import io
import unittest

import numpy as np
from support import EnabledCase, in_use, tensorpool, torch


class Tensors(EnabledCase):
    def test_begin_at_multiples_of_64_bytes(self):
        tensors = [torch.empty(size, dtype=torch.uint8)
                   for size in (1, 3, 64, 65, 4097, 65_536, 65_537, 1_000_003)]
        self.assertEqual({tensor.data_ptr() % 64 for tensor in tensors}, {0})

    def test_without_elements_take_no_block(self):
        for _ in range(100):
            empty = torch.empty(0, 7)
        self.assertEqual(in_use(), self.in_use_before)
        empty.resize_(1000)
        self.assertGreater(in_use(), self.in_use_before)
        del empty

    def test_resizing_keeps_elements(self):
        tensor = torch.arange(10)
        for elements in (20, 9000, 1_000_000, 10):
            tensor.resize_(elements)
            self.assertEqual(tensor[:10].tolist(), list(range(10)))
        storage = tensor.storage()
        storage.resize_(0)
        self.assertEqual(in_use(), self.in_use_before)
        del tensor, storage

    def test_share_their_memory_with_numpy(self):
        tensor = torch.zeros(300, 200)
        array = tensor.numpy()
        self.assertEqual(array.ctypes.data, tensor.data_ptr())
        array += 1
        self.assertEqual(tensor.sum(), 60_000)
        del tensor
        self.assertGreater(in_use(), self.in_use_before)
        self.assertEqual(array.sum(), 60_000)
        del array
        with_array = in_use()
        mine = np.zeros((300, 200))
        self.assertEqual(torch.from_numpy(mine).data_ptr(), mine.ctypes.data)
        self.assertEqual(in_use(), with_array)

    def test_views_keep_the_block(self):
        view = torch.arange(60_000).view(300, 200)[::2, 7]
        self.assertGreater(in_use(), self.in_use_before)
        self.assertEqual(view[1], 407)
        del view

    def test_are_saved_loaded_and_copied(self):
        tensors = {"a": torch.randn(100, 30), "b": torch.arange(7)}
        file = io.BytesIO()
        torch.save(tensors, file)
        file.seek(0)
        for others in (torch.load(file), copy.deepcopy(tensors)):
            for name, tensor in tensors.items():
                self.assertTrue(torch.equal(tensor, others[name]))
        del tensors, tensor, others

    def test_move_to_shared_memory(self):
        tensor = torch.arange(100_000)
        tensor.share_memory_()
        self.assertEqual(in_use(), self.in_use_before)
        self.assertEqual(tensor.sum(), 99_999 * 50_000)

    def test_are_made_and_freed_on_any_thread(self):
        def work(seed):
            tensors = []
            for i in range(300):
                tensors.append(torch.full(((seed * 7919 + i * 104_729) % 100_000 + 1,), seed))
                if len(tensors) > 10:
                    tensor = tensors.pop(i % 10)
                    assert (tensor == seed).all()
            return tensors

        with concurrent.futures.ThreadPoolExecutor(4) as executor:
            for seed, tensors in enumerate(executor.map(work, range(4))):
                self.assertTrue(all((tensor == seed).all() for tensor in tensors))
            del tensors

    def test_of_backward_passes_are_freed(self):
        network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(),
                                      torch.nn.Flatten(), torch.nn.Linear(8 * 30 * 30, 10))
        with_network = in_use()
        network(torch.randn(4, 3, 32, 32)).sum().backward()
        network.zero_grad(set_to_none=True)
        self.assertEqual(in_use(), with_network)
        del network


class TooLarge(EnabledCase):
    def check_error(self, elements, limit):
        with self.assertRaises(RuntimeError) as raised:
            torch.empty(elements, dtype=torch.uint8)
        text = str(raised.exception)
        # Programs search for this text of PyTorch's own allocator.
        self.assertIn("DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                      f"{elements} bytes.", text)
        self.assertRegex(text, f"tensorpool: global: allocate: {elements} B .*limit met: {limit}")

    def test_error_states_the_size_and_the_limit(self):
        self.check_error(2**50, "max_allocation")

    def test_error_keeps_existing_tensors(self):
        tensor = torch.ones(1000)
        tensorpool.limit(64 * 2**20)
        self.addCleanup(tensorpool.limit, None)
        self.check_error(65 * 2**20, "max_capacity")
        self.assertEqual(tensor.sum(), 1000)
        del tensor


class Profiler(EnabledCase):
    def test_reports_memory_as_without_the_pool(self):
        def profiled():
            with torch.profiler.profile(profile_memory=True) as profile:
                torch.ones(1000, 1000)
            return [(event.key, event.self_cpu_memory_usage) for event in profile.key_averages()]

        ours = profiled()
        tensorpool.disable_torch()
        self.assertEqual(ours, profiled())
        self.assertIn(("aten::empty", 4_000_000), ours)


if __name__ == "__main__":
    unittest.main()
