"""Forked processes inherit the setting; spawned processes start without it."""

import gc
import multiprocessing
import os
import threading
import unittest

from support import EnabledCase, from_pool, in_use, np, tensorpool


def is_enabled(_):
    return from_pool()


def doubled(array):
    return array * 2, from_pool()


class Processes(EnabledCase):
    def pool_of(self, method, **options):
        pool = multiprocessing.get_context(method).Pool(2, **options)
        self.addCleanup(pool.join)
        self.addCleanup(pool.close)
        return pool

    def check_doubles(self, pool):
        arrays = [np.arange(1 + i * 1000) for i in range(20)]
        for array, (result, enabled) in zip(arrays, pool.map(doubled, arrays)):
            np.testing.assert_array_equal(result, array * 2)
            self.assertTrue(enabled)

    def test_forked_processes_inherit(self):
        self.check_doubles(self.pool_of("fork"))

    def test_spawned_processes_must_enable(self):
        self.assertEqual(self.pool_of("spawn").map(is_enabled, range(2)), [False, False])
        self.check_doubles(self.pool_of("spawn", initializer=tensorpool.enable_numpy))

    def test_processes_forked_from_a_thread_inherit(self):
        results = []
        thread = threading.Thread(
            target=lambda: results.extend(self.pool_of("fork").map(is_enabled, range(2)))
        )
        thread.start()
        thread.join()
        self.assertEqual(results, [True, True])

    def test_child_frees_and_resizes_arrays_of_its_parent(self):
        arrays = [np.full(1 + i * 997, i) for i in range(50)]
        used = in_use()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                ok = from_pool() and in_use() == used
                arrays[30].resize(200_000, refcheck=False)
                ok = ok and arrays[30][5] == 30 and np.zeros(1000).sum() == 0
                del arrays
                gc.collect()
                tensorpool.trim()
                ok = ok and in_use() < used and np.ones(5).sum() == 5
                status = 0 if ok else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertTrue(all((array == i).all() for i, array in enumerate(arrays)))


if __name__ == "__main__":
    unittest.main()
