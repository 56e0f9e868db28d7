"""Which arrays request huge pages, as the kernel reports it in /proc/self/smaps."""

import os
import unittest

from support import run_python

# `wanted` returns whether huge pages are requested for the middle of an array.
PROGRAM = """
import re, numpy as np, tensorpool
tensorpool.enable_numpy()
def wanted(array):
    middle, here = array.ctypes.data + array.nbytes // 2, False
    for line in open("/proc/self/smaps"):
        found = re.match("([0-9a-f]+)-([0-9a-f]+) ", line)
        if found:
            begin, end = (int(number, 16) for number in found.groups())
            here = begin <= middle < end
        elif here and line.startswith("VmFlags:"):
            return "hg" in line.split()
"""


@unittest.skipUnless(
    os.path.exists("/sys/kernel/mm/transparent_hugepage"), "the kernel has no huge pages"
)
class HugePages(unittest.TestCase):
    def run_lines(self, lines, **variables):
        before = dict(os.environ)
        try:
            os.environ.update(variables)
            return run_python(PROGRAM + lines).split()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def test_are_requested_for_large_arrays_only(self):
        lines = "print(wanted(np.empty((4 << 20) - 1, np.uint8)), wanted(np.empty(1 << 22)))"
        self.assertEqual(self.run_lines(lines, NUMPY_MADVISE_HUGEPAGE="1"), ["False", "True"])

    def test_are_not_requested_for_zeros(self):
        lines = "print(wanted(np.zeros(1 << 22)))"
        self.assertEqual(self.run_lines(lines, NUMPY_MADVISE_HUGEPAGE="1"), ["False"])

    def test_are_not_requested_if_numpys_setting_is_off(self):
        lines = "print(wanted(np.empty(1 << 22)))"
        self.assertEqual(self.run_lines(lines, NUMPY_MADVISE_HUGEPAGE="0"), ["False"])

    def test_are_not_requested_if_tensorpools_setting_is_never(self):
        lines = "print(wanted(np.empty(1 << 22)))"
        never = {"NUMPY_MADVISE_HUGEPAGE": "1", "TENSORPOOL_HUGE_PAGES": "never"}
        self.assertEqual(self.run_lines(lines, **never), ["False"])

    def test_numpys_setting_is_unchanged(self):
        lines = "print(np.core.multiarray._set_madvise_hugepage(True))"
        for setting, expected in (("0", "0"), ("1", "1")):
            printed = self.run_lines(lines, NUMPY_MADVISE_HUGEPAGE=setting)
            self.assertIn(printed, [[expected], [str(bool(int(expected)))]])


if __name__ == "__main__":
    unittest.main()
