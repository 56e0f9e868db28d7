"""tensorpool.StashedDict: arrays of a dict come back as they were."""

import gc
import os
import tempfile
import threading
import unittest

from support import EnabledCase, np, tensorpool

MIB = 1 << 20


def array_of(number):
    return np.full(MIB // 4, number, np.float32)


class Dict(EnabledCase):
    def test_works_like_a_dict_of_copies(self):
        kept = tensorpool.StashedDict("like a dict")
        array = array_of(1)
        kept["a"] = array
        array[:] = 2
        self.assertEqual(kept["a"][0], 1)
        kept["a"] = array
        self.assertEqual(kept["a"][0], 2)
        kept[("b", 3)] = array_of(3)
        self.assertEqual(list(kept), ["a", ("b", 3)])
        self.assertEqual(len(kept), 2)
        self.assertIn("a", kept)
        self.assertNotIn("c", kept)
        self.assertEqual({key: value[0] for key, value in kept.items()}, {"a": 2, ("b", 3): 3})
        with self.assertRaises(KeyError):
            kept["c"]
        with self.assertRaises(TypeError):
            kept[[]] = array
        del kept["a"]
        with self.assertRaises(KeyError):
            del kept["a"]
        self.assertEqual(kept.pop(("b", 3))[-1], 3)
        kept.update(x=array, y=array)
        kept.clear()
        self.assertEqual(kept.statistics["entries"], 0)

    def test_keeps_type_shape_and_order(self):
        kept = tensorpool.StashedDict("kinds", memory=1)
        for array in (
            np.asfortranarray(np.arange(12.0).reshape(3, 4)),
            np.arange(12, dtype=">i2").reshape(3, 4)[:, ::2],
            np.array(7.5),
            np.zeros((0, 3)),
            np.array(["text"]),
            np.array([np.nan, -0.0]),
        ):
            kept["a"] = array
            kept["b"] = array_of(0)  # puts the other one to rest
            read = kept["a"]
            self.assertEqual((read.dtype, read.shape), (array.dtype, array.shape))
            self.assertEqual(read.tobytes("A"), array.tobytes("A"))

    def test_puts_the_least_recently_used_to_rest(self):
        kept = tensorpool.StashedDict("limited", memory="4MiB", dtype="float32")
        for number in range(16):
            kept[number] = array_of(number)
        now = kept.statistics
        self.assertLessEqual(now["memory_bytes"], 4 * MIB)
        self.assertEqual(now["memory_bytes"] + now["stashed_bytes"], 16 * MIB)
        self.assertLess(now["compressed_bytes"], MIB)
        for number in range(16):
            self.assertTrue((kept[number] == number).all())
        self.assertGreater(kept.statistics["misses"], 0)

    def test_spills_what_does_not_shrink(self):
        random = np.random.default_rng(1)
        arrays = [random.integers(0, 256, MIB, np.uint8) for _ in range(4)]
        with tempfile.TemporaryDirectory(dir=os.path.dirname(__file__)) as folder:
            kept = tensorpool.StashedDict("spilled", memory="1MiB", folder=folder)
            for number, array in enumerate(arrays):
                kept[number] = array
            if kept.last_failure:
                self.skipTest(f"cannot spill here: {kept.last_failure}")
            self.assertGreaterEqual(kept.statistics["spilled_bytes"], 3 * MIB)
            kept.prefetch(0)
            for number, array in enumerate(arrays):
                self.assertTrue((kept[number] == array).all())
            self.assertEqual(os.listdir(folder), [])

    def test_an_array_in_use_stays_and_may_be_written(self):
        kept = tensorpool.StashedDict("pinned", memory="2MiB")
        kept["a"] = array_of(1)
        view = kept["a"][10:20]
        for number in range(8):
            kept[number] = array_of(number)
        view[0] = 5
        del view
        gc.collect()
        for number in range(8):
            kept[number] = array_of(number)
        self.assertEqual(kept["a"][10], 5)
        last = kept["a"]
        del kept
        gc.collect()
        self.assertEqual(last[10], 5)

    def test_an_array_that_is_read_cannot_be_written(self):
        kept = tensorpool.StashedDict("read", memory="1MiB")
        kept["a"] = array_of(1)
        kept["b"] = array_of(2)
        array = kept.read("a")
        self.assertTrue((array == 1).all())
        self.assertEqual((array.dtype, array.shape), (np.float32, (MIB // 4,)))
        with self.assertRaises(ValueError):
            array[0] = 2
        with self.assertRaises(KeyError):
            kept.read("c")

    def test_gives_memory_to_its_budget(self):
        job = tensorpool.budget("job", "16MiB", soft="12MiB")
        kept = tensorpool.StashedDict("in a budget", budget=job)
        for number in range(32):
            kept[number] = array_of(number)
        self.assertLessEqual(job.in_use, 16 * MIB)
        with tensorpool.budget("other", parent=job):
            other = np.ones(8 * MIB, np.uint8)
        self.assertLessEqual(job.in_use, 16 * MIB)
        for number in range(32):
            self.assertTrue((kept[number] == number).all())
        del other

    def test_serves_several_threads(self):
        kept = tensorpool.StashedDict("threads", memory="3MiB")
        errors = []

        def work(first):
            try:
                for turn in range(20):
                    for number in range(first, first + 4):
                        kept[number] = array_of(number)
                        if not (kept[number] == number).all():
                            errors.append(number)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(4 * i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(kept), 12)

    def test_other_arguments_are_errors(self):
        kept = tensorpool.StashedDict("errors")
        for bad in ([1], np.ma.masked_array([1]), np.array([{}])):
            with self.assertRaisesRegex(TypeError, "tensorpool: StashedDict 'errors': "):
                kept["a"] = bad
        self.assertEqual(len(kept), 0)
        for arguments in ({"name": 1}, {"budget": 1}, {"memory": 1.5}, {"dtype": "nothing"}):
            with self.assertRaises(TypeError):
                tensorpool.StashedDict(**arguments)


if __name__ == "__main__":
    unittest.main()
