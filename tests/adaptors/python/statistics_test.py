"""statistics, limit and trim."""

import unittest

from support import EnabledCase, in_use, np, pool_statistics, run_python, tensorpool

MIB = 1 << 20


class Statistics(EnabledCase):
    def test_cover_all_objects_with_memory(self):
        statistics = tensorpool.statistics()
        self.assertEqual([key for key in sorted(statistics) if isinstance(statistics[key], list)],
                         ["arenas", "budgets", "device_streams", "devices", "planned", "pools",
                          "scopes", "scratches", "stashes", "threads"])
        self.assertLessEqual({"committed_bytes", "left_out", "process", "version"}, set(statistics))
        array = np.empty(MIB, np.uint8)
        pool = pool_statistics()
        self.assertEqual(pool["name"], "global")
        self.assertEqual(pool["in_use_bytes"] - self.in_use_before, MIB)
        self.assertGreaterEqual(pool["capacity_bytes"], pool["in_use_bytes"])
        self.assertGreaterEqual(pool["peak_in_use_bytes"], pool["in_use_bytes"])
        del array


class Limit(EnabledCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(tensorpool.limit, None)

    def test_is_none_until_set(self):
        self.assertIsNone(tensorpool.limit())
        self.assertEqual(tensorpool.limit("2GiB"), 2 << 30)
        self.assertEqual(tensorpool.limit(), 2 << 30)
        self.assertEqual(pool_statistics()["limit_bytes"], 2 << 30)
        self.assertIsNone(tensorpool.limit(None))
        self.assertIsNone(tensorpool.limit())
        self.assertEqual(pool_statistics()["limit_bytes"], 0)

    def test_accepts_sizes(self):
        for size, expected in (
            (4096, 4096),
            (np.int64(5000), 5000),
            ("4096", 4096),
            ("100B", 100),
            ("1.5GiB", 3 << 29),
            (".5TiB", 1 << 39),
            ("512MiB", 512 * MIB),
            (2**63 - 1, 2**63 - 1),
        ):
            self.assertEqual(tensorpool.limit(size), expected)

    def test_rejects_other_values_and_is_unchanged(self):
        tensorpool.limit("1GiB")
        for size in (0, -1, 2**63, "0", "2 GiB", "2GB", "", "much", "1e3", "9000000000TiB", "\u0663"):
            with self.assertRaisesRegex(ValueError, "tensorpool: limit: .*expected bytes above 0"):
                tensorpool.limit(size)
        for size in (True, 1.5, b"2GiB", [1]):
            with self.assertRaisesRegex(TypeError, "tensorpool: limit: .*expected bytes above 0"):
                tensorpool.limit(size)
        self.assertEqual(tensorpool.limit(), 1 << 30)

    def test_larger_arrays_raise_numpys_error_and_leak_nothing(self):
        tensorpool.limit("64MiB")
        kept = np.full(16 * MIB, 7, np.uint8)
        for make in (np.empty, np.zeros, np.ones):
            with self.assertRaisesRegex(MemoryError, r"^Unable to allocate 100\. MiB for an array"):
                make(100 * MIB, np.uint8)
        with self.assertRaises(MemoryError):
            kept.resize(100 * MIB, refcheck=False)
        self.assertLessEqual(pool_statistics()["capacity_bytes"], 64 * MIB)
        self.assertTrue((kept == 7).all())
        self.assertEqual(in_use() - self.in_use_before, 16 * MIB)
        self.assertEqual(np.ones(30 * MIB, np.uint8)[-1], 1)
        tensorpool.limit(None)
        self.assertEqual(np.ones(100 * MIB, np.uint8)[-1], 1)

    def test_lowering_gives_free_memory_back(self):
        np.ones(64 * MIB, np.uint8)
        self.assertGreaterEqual(pool_statistics()["capacity_bytes"], 64 * MIB)
        tensorpool.limit("32MiB")
        self.assertLessEqual(pool_statistics()["capacity_bytes"], 32 * MIB)

    def test_below_the_bytes_in_use_keeps_the_arrays(self):
        kept = np.full(64 * MIB, 7, np.uint8)
        tensorpool.limit("1MiB")
        with self.assertRaises(MemoryError):
            np.empty(32 * MIB, np.uint8)
        self.assertEqual(bytes(kept[-5:]), b"\7" * 5)
        del kept
        tensorpool.trim()
        self.assertEqual(np.ones(MIB // 2, np.uint8)[-1], 1)

    def test_is_read_from_the_environment(self):
        printed = run_python(
            "import os\n"
            "os.environ['TENSORPOOL_MAX_CAPACITY'] = '48MiB'\n"
            "import tensorpool; print(tensorpool.limit())\n"
        )
        self.assertEqual(int(printed), 48 * MIB)


class Trim(EnabledCase):
    def test_gives_free_memory_back_and_returns_its_size(self):
        kept = np.full(3 * MIB, 7, np.uint8)
        np.ones(64 * MIB, np.uint8)
        before = pool_statistics()["capacity_bytes"]
        given_back = tensorpool.trim()
        self.assertGreaterEqual(given_back, 64 * MIB)
        self.assertEqual(pool_statistics()["capacity_bytes"], before - given_back)
        self.assertTrue((kept == 7).all())


if __name__ == "__main__":
    unittest.main()
