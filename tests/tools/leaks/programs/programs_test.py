"""`tensorpool leaks` with programs for PyTorch, NumPy and OpenCV: the verdict, the line and the slope. The
argument is the kind of program: torch, numpy, cv2 or opencv. TENSORPOOL_PROGRAM is the command, and
OPENCV_PROGRAMS the program in C++. Exits with 77, which ctest counts as skipped, if the library is missing."""

import collections
import importlib
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

COMMAND = os.environ["TENSORPOOL_PROGRAM"]
FOLDER = Path(__file__).resolve().parent
MIB = 2**20


def command_of(kind, program):
    if kind == "opencv":
        return [os.environ["OPENCV_PROGRAMS"], program]
    return [sys.executable, "-B", str(FOLDER / f"{kind}_programs.py"), program]


def source_of(kind):
    return FOLDER / (f"{kind}_programs" + (".cpp" if kind == "opencv" else ".py"))


def growing_lines(kind, program):
    """Returns the lines that the comment marks in a program, as the report names them."""
    source, found, function = source_of(kind), [], None
    for number, line in enumerate(source.read_text().splitlines(), 1):
        starts = re.match(r"(?:def|void) (\w+)\(", line)
        function = starts[1] if starts else function
        if function == program and re.search(r"(#|//) grows$", line):
            found.append(f"at {source.name}:{number}")
    return sorted(found)


class Programs(unittest.TestCase):
    def find(self, program):
        """Returns the exit status and the report of the command on a program that it starts."""
        ran = subprocess.run([COMMAND, "leaks", "--json", "--", *command_of(self.kind, program)],
                             capture_output=True, text=True)
        self.assertTrue(ran.stdout, ran.stderr)
        return ran.returncode, json.loads(ran.stdout)

    def check_leak(self, program, mib_per_iteration):
        """Checks that the marked lines, and no others, leak these bytes each."""
        status, report = self.find(program)
        slopes, variances = collections.Counter(), collections.Counter()
        for site in report["sites"]:
            if site["verdict"] == "leak":
                line = "at " + site["line"].rpartition(" at ")[2]
                slopes[line] += site["bytes_per_iteration"]
                variances[line] += site["bytes_per_iteration_uncertainty"] ** 2
        self.assertEqual((status, sorted(slopes)), (1, growing_lines(self.kind, program)), report)
        for line, slope in slopes.items():
            # A late profile may already have the next iteration's block.
            delta = 4 * variances[line] ** 0.5 + 0.1 * mib_per_iteration * MIB
            self.assertAlmostEqual(slope, mib_per_iteration * MIB, delta=delta, msg=report)

    def check_no_leak(self, program):
        status, report = self.find(program)
        self.assertEqual((status, report["leaks"]), (0, 0), report)
        self.assertGreaterEqual(report["iterations"], 20)
        return report


class Torch(Programs):
    kind = "torch"

    def test_training_is_no_leak(self):
        self.check_no_leak("trains")
        self.check_no_leak("trains_with_batches_of_random_sizes")

    def test_a_list_that_keeps_tensors_is_a_leak(self):
        self.check_leak("keeps_outputs_in_a_list", 2)

    def test_a_sum_of_losses_that_keeps_their_graphs_is_a_leak(self):
        self.check_leak("adds_up_losses_with_their_graphs", 2)

    def test_a_dictionary_of_ever_new_shapes_is_a_leak(self):
        self.check_leak("keeps_a_mask_for_each_shape", 2)

    def test_a_dictionary_of_few_shapes_is_a_cache(self):
        report = self.check_no_leak("fills_a_cache_of_masks")
        line = growing_lines(self.kind, "fills_a_cache_of_masks")[0]
        verdicts = [site["verdict"] for site in report["sites"] if site["line"].endswith(line)]
        # If profiles are left out, because the machine is busy, the window is longer.
        self.assertIn(verdicts, (["cache that fills"], ["warm-up"]), report)


class Numpy(Programs):
    kind = "numpy"

    def test_arrays_that_are_replaced_are_no_leak(self):
        self.check_no_leak("replaces_a_picture")

    def test_a_list_that_keeps_arrays_is_a_leak(self):
        self.check_leak("keeps_pictures_in_a_list", 2)

    def test_a_list_of_views_is_a_leak(self):
        self.check_leak("keeps_views_of_pictures", 2)

    def test_small_arrays_are_a_leak(self):
        self.check_leak("keeps_small_arrays", 2)

    def test_an_array_that_grows_is_a_leak(self):
        self.check_leak("appends_to_an_array", 2)

    def test_a_dictionary_of_ever_new_sizes_is_a_leak(self):
        self.check_leak("keeps_a_window_for_each_size", 2)


class Cv2(Programs):
    kind = "cv2"

    def test_blurring_is_no_leak(self):
        self.check_no_leak("blurs")

    def test_a_list_that_keeps_frames_is_a_leak(self):
        self.check_leak("keeps_frames", 720 * 1280 * 3 / MIB)


class Opencv(Programs):
    kind = "opencv"

    def test_blurring_is_no_leak(self):
        self.check_no_leak("blurs")

    def test_a_vector_that_keeps_frames_is_a_leak(self):
        self.check_leak("keeps_frames", 720 * 1280 * 3 / MIB)

    def test_a_map_of_ever_new_sizes_is_a_leak(self):
        self.check_leak("keeps_a_frame_for_each_size", 720 * 1330 * 3 / MIB)


if __name__ == "__main__":
    kind = sys.argv.pop(1)
    try:
        if kind != "opencv":
            importlib.import_module(kind)
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    unittest.main(defaultTest=kind.capitalize())
