"""The functions that NumPy calls, with extreme arguments and without the GIL, which ctypes
releases."""

import concurrent.futures
import ctypes
import unittest

from support import in_use, np, tensorpool
from tensorpool import _tensorpool

SIZE_MAX = 2**64 - 1


SIZE, POINTER = ctypes.c_size_t, ctypes.c_void_p


class Handler(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", POINTER),
        ("malloc", ctypes.CFUNCTYPE(POINTER, POINTER, SIZE)),
        ("calloc", ctypes.CFUNCTYPE(POINTER, POINTER, SIZE, SIZE)),
        ("realloc", ctypes.CFUNCTYPE(POINTER, POINTER, POINTER, SIZE)),
        ("free", ctypes.CFUNCTYPE(None, POINTER, POINTER, SIZE)),
    ]


def handler_in(capsule):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Handler.from_address(get(capsule, b"mem_handler"))


def another_capsule():
    """Returns a handler of another owner: NumPy's own by another name. It is never freed."""
    given = _tensorpool.set_numpy_handler(_tensorpool.handler)
    _tensorpool.set_numpy_handler(given)
    another = Handler.from_buffer_copy(handler_in(given))
    another.name = b"another"
    another_capsule.kept = another
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(another), b"mem_handler", None)


class TheFunctions(unittest.TestCase):
    def setUp(self):
        self.handler = handler_in(_tensorpool.handler)
        self.handler.free(None, self.handler.malloc(None, 1), 1)
        self.before = in_use()

    def tearDown(self):
        self.assertEqual(in_use(), self.before)

    def test_have_the_name_tensorpool(self):
        self.assertEqual(self.handler.name, b"tensorpool")
        self.assertEqual(self.handler.version, 1)

    def test_zero_bytes_get_a_block(self):
        for block in (
            self.handler.malloc(None, 0),
            self.handler.calloc(None, 0, 8),
            self.handler.calloc(None, 8, 0),
            self.handler.realloc(None, None, 0),
        ):
            self.assertIsNotNone(block)
            block = self.handler.realloc(None, block, 0)
            self.assertIsNotNone(block)
            self.handler.free(None, block, 0)

    def test_too_large_a_request_is_null_and_keeps_the_block(self):
        self.assertIsNone(self.handler.malloc(None, SIZE_MAX))
        self.assertIsNone(self.handler.calloc(None, 2**33, 2**33))
        self.assertIsNone(self.handler.calloc(None, SIZE_MAX, 1))
        self.assertIsNone(self.handler.realloc(None, None, SIZE_MAX))
        block = self.handler.malloc(None, 100)
        ctypes.memset(block, 7, 100)
        self.assertIsNone(self.handler.realloc(None, block, SIZE_MAX))
        self.assertEqual(ctypes.string_at(block, 100), b"\7" * 100)
        self.handler.free(None, block, 100)

    def test_null_may_be_freed(self):
        self.handler.free(None, None, 0)
        self.handler.free(None, None, 1000)

    def test_free_ignores_a_wrong_size(self):
        for requested in (1, 1000, 100_000, 3_000_000):
            for passed in (0, 1, 1000, 100_000, 3_000_000, SIZE_MAX):
                self.handler.free(None, self.handler.malloc(None, requested), passed)

    def test_realloc_keeps_what_fits(self):
        block = self.handler.realloc(None, None, 10)
        ctypes.memmove(block, b"0123456789", 10)
        for size in (64, 65, 1000, 70_000, 5_000_000, 70_000, 64, 10):
            block = self.handler.realloc(None, block, size)
            self.assertEqual(ctypes.string_at(block, 10), b"0123456789")
        self.handler.free(None, block, 10)

    def test_many_threads_call_them_without_the_gil(self):
        def work(seed):
            blocks = []
            for i in range(2000):
                size = (seed * 7919 + i * 104_729) % 100_000 + 8
                block = self.handler.calloc(None, size, 1)
                if ctypes.string_at(block, size) != bytes(size):
                    return "calloc returned memory that is not zero"
                ctypes.memset(block, seed, size)
                blocks.append((block, size))
                if len(blocks) > 20:
                    block, size = blocks.pop(i % 20)
                    if ctypes.string_at(block, size) != bytes([seed]) * size:
                        return "two threads have the same block"
                    self.handler.free(None, block, size)
            for block, size in blocks:
                self.handler.free(None, block, size)
            return "ok"

        with concurrent.futures.ThreadPoolExecutor(4) as executor:
            self.assertEqual(list(executor.map(work, range(1, 5))), ["ok"] * 4)


class TheCapsule(unittest.TestCase):
    def test_is_unique_and_outlives_the_arrays(self):
        handler = _tensorpool.handler
        with tensorpool.numpy_enabled():
            arrays = [np.ones(10) for _ in range(100)]
            self.assertIs(_tensorpool.set_numpy_handler(handler), handler)
        del arrays
        self.assertEqual(handler_in(handler).name, b"tensorpool")

    def test_other_objects_are_rejected(self):
        for wrong in (None, 5, "mem_handler"):
            with self.assertRaisesRegex(ValueError, "tensorpool: .* expected a capsule"):
                _tensorpool.set_numpy_handler(wrong)

    def test_handler_of_another_owner_is_restored(self):
        another = another_capsule()
        before = _tensorpool.set_numpy_handler(another)
        self.addCleanup(_tensorpool.set_numpy_handler, before)
        name = np.core.multiarray.get_handler_name
        with tensorpool.numpy_enabled():
            self.assertEqual(name(), "tensorpool")
        self.assertEqual(name(), "another")
        tensorpool.enable_numpy()
        _tensorpool.set_numpy_handler(another)
        tensorpool.disable_numpy()  # does nothing, because another handler is set
        self.assertEqual(name(), "another")


if __name__ == "__main__":
    unittest.main()
