"""tensorpool.iteration: the marks it leaves on the timeline."""

import os
import unittest

from support import EnabledCase, np, tensorpool


def segment():
    """Returns the bytes of this process's segment, which holds the timeline."""
    folder = "/proc/self/fd"
    for number in os.listdir(folder):
        path = os.path.join(folder, number)
        try:
            if os.readlink(path).startswith("/memfd:tensorpool"):
                with open(path, "rb") as file:
                    return file.read()
        except FileNotFoundError:
            pass  # the descriptor of the listing itself
    raise AssertionError("there is no segment")


class Iteration(EnabledCase):
    def test_ends_with_a_mark(self):
        with tensorpool.iteration("mark of a block"):
            self.assertNotIn(b"mark of a block", segment())
        self.assertIn(b"mark of a block", segment())

    def test_ends_with_a_mark_after_an_exception(self):
        with self.assertRaises(KeyError):
            with tensorpool.iteration("mark of an error"):
                raise KeyError
        self.assertIn(b"mark of an error", segment())

    def test_decorates_a_function(self):
        @tensorpool.iteration("mark of a function")
        def step(count):
            return np.empty(count).size

        self.assertEqual([step(1), step(2)], [1, 2])
        self.assertEqual(segment().count(b"mark of a function"), 2)

    def test_names_are_texts(self):
        with tensorpool.iteration():
            pass
        with tensorpool.iteration("ü" * 100):
            pass
        with self.assertRaisesRegex(TypeError, "iteration: name is 3, expected a str"):
            with tensorpool.iteration(3):
                pass


if __name__ == "__main__":
    unittest.main()
