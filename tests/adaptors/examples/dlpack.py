"""Exchanges tensors between C++ and NumPy, PyTorch or any other library with DLPack, without a copy.

Run it with the path of the library built from dlpack.cpp to see both directions with NumPy.
"""

import ctypes
import sys

NAME, USED_NAME = b"dltensor", b"used_dltensor"  # a capsule's name before and after it is used


def function_of(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


# For a capsule in its destructor, to which no Python object may refer any more.
raw_name_is = function_of(ctypes.pythonapi, "PyCapsule_IsValid", ctypes.c_int,
                          ctypes.c_void_p, ctypes.c_char_p)
raw_pointer_of = function_of(ctypes.pythonapi, "PyCapsule_GetPointer", ctypes.c_void_p,
                             ctypes.c_void_p, ctypes.c_char_p)
pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))
rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi))
Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, Destructor)(
    ("PyCapsule_New", ctypes.pythonapi))


class Library:
    """The functions of dlpack.cpp."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.make = function_of(library, "example_make", pointer, size, size)
        self.drop = function_of(library, "example_drop", None, pointer)
        self.hold = function_of(library, "example_hold", pointer, pointer)
        self.data = function_of(library, "example_data", pointer, pointer)
        self.sum = function_of(library, "example_sum", ctypes.c_double, pointer)
        self.release = function_of(library, "example_release", None, pointer)
        self.bytes_in_use = function_of(library, "example_bytes_in_use", size)
        self.capsule_destructor = Destructor(self._drop_unused)

    def _drop_unused(self, capsule):
        if raw_name_is(capsule, NAME):
            self.drop(raw_pointer_of(capsule, NAME))


class PooledTensor:
    """A tensor of floats in the pool. The first library that calls `__dlpack__` takes it over."""

    def __init__(self, library, rows, columns):
        self._tensor = library.make(rows, columns)
        if self._tensor is None:
            raise MemoryError(f"the pool has no memory for {rows} times {columns} floats")

        self._capsule = new_capsule(self._tensor, NAME, library.capsule_destructor)

    def __dlpack__(self, stream=None):
        if self._capsule is None:
            raise RuntimeError("this tensor was taken already")
        capsule, self._capsule = self._capsule, None
        return capsule

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU


class HeldTensor:
    """A tensor of Python that C++ holds until `release`."""

    def __init__(self, library, tensor):
        capsule = tensor.__dlpack__()
        self._library = library
        self._held = library.hold(pointer_of(capsule, NAME))
        if self._held is None:
            raise ValueError(f"expected contiguous floats, found {tensor.dtype}")
        rename(capsule, USED_NAME)  # from now on C++ calls the deleter, not the capsule

    address = property(lambda self: self._library.data(self._held))
    sum = property(lambda self: self._library.sum(self._held))

    def release(self):
        self._library.release(self._held)


if __name__ == "__main__":
    try:
        import numpy
    except ImportError as error:
        print(f"skipped: {error}; install the Debian package python3-numpy")
        sys.exit(77)

    pool = Library(sys.argv[1])
    array = numpy.from_dlpack(PooledTensor(pool, 480, 640))
    print(f"NumPy's array {array.shape} is {pool.bytes_in_use()} bytes of the pool")
    del array
    print(f"after its deletion {pool.bytes_in_use()} bytes are in use")

    mine = numpy.ones((480, 640), numpy.float32)
    held = HeldTensor(pool, mine)
    print(f"C++ reads NumPy's array in place: {held.address == mine.ctypes.data},"
          f" the sum is {held.sum:.0f}")
    held.release()
