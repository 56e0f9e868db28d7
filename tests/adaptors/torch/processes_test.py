"""Forked processes inherit the setting, workers of a DataLoader among them; spawned processes start
without it."""

import multiprocessing
import os
import unittest

from support import EnabledCase, in_use, new_from_pool, tensorpool, torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((50, 50), index * index), tensorpool.torch_is_enabled()


def is_enabled(_):
    return tensorpool.torch_is_enabled()


class Processes(EnabledCase):
    def test_forked_process_has_the_tensors_and_the_pool(self):
        tensor = torch.arange(100_000)
        child = os.fork()
        if child == 0:
            ok = new_from_pool() and tensor.sum().item() == 99_999 * 50_000
            del tensor
            os._exit(0 if ok and in_use() == self.in_use_before else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        del tensor

    def test_workers_of_a_data_loader_inherit(self):
        loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2)
        for epoch in range(2):
            for number, (images, enabled) in enumerate(loader):
                self.assertTrue(enabled.all())
                expected = torch.arange(number * 8, number * 8 + 8) ** 2
                self.assertTrue(torch.equal(images[:, 3, 4], expected))
        del images, enabled, expected

    def test_spawned_processes_must_enable(self):
        spawn = multiprocessing.get_context("spawn")
        for initializer, enabled in ((None, False), (tensorpool.enable_torch, True)):
            with spawn.Pool(1, initializer=initializer) as pool:
                self.assertEqual(pool.map(is_enabled, range(2)), [enabled] * 2)


if __name__ == "__main__":
    unittest.main()
