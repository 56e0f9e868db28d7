"""enable_torch and disable_torch: which allocator makes, resizes and frees tensors."""

import shutil
import tempfile
import unittest
from pathlib import Path

from support import in_use, new_from_pool, run_python, tensorpool, torch
from tensorpool import _torch


class Enabling(unittest.TestCase):
    def setUp(self):
        self.addCleanup(tensorpool.disable_torch)

    def test_is_off_initially_and_idempotent(self):
        self.assertFalse(tensorpool.torch_is_enabled())
        for _ in range(3):
            tensorpool.enable_torch()
            self.assertTrue(tensorpool.torch_is_enabled())
            self.assertTrue(new_from_pool())
        for _ in range(3):
            tensorpool.disable_torch()
            self.assertFalse(tensorpool.torch_is_enabled())
            self.assertFalse(new_from_pool())

    def test_each_tensor_stays_with_its_allocator(self):
        tensorpool.enable_torch()
        before = in_use()
        ours = torch.arange(100_000)
        tensorpool.disable_torch()
        with_ours = in_use()
        others = torch.arange(100_000)
        self.assertEqual(in_use(), with_ours)
        ours.resize_(300_000)  # by the pool, though it is not enabled
        self.assertGreater(in_use(), with_ours)
        tensorpool.enable_torch()
        with_larger = in_use()
        others.resize_(300_000)
        self.assertEqual(in_use(), with_larger)
        self.assertTrue(torch.equal(ours[:100_000], others[:100_000]))
        del others
        self.assertEqual(in_use(), with_larger)
        tensorpool.disable_torch()
        del ours
        self.assertEqual(in_use(), before)

    def test_can_be_toggled_with_tensors_in_use(self):
        tensorpool.enable_torch()
        torch.empty(1)
        tensors, before = [], in_use()
        for i in range(200):
            (tensorpool.enable_torch if i % 2 else tensorpool.disable_torch)()
            tensors.append(torch.full((1 + i * 997 % 50_000,), i))
            if i % 3 == 0:
                tensors.pop(i // 2)
        for tensor in tensors:
            self.assertTrue((tensor == tensor[0]).all())
        del tensor, tensors
        self.assertEqual(in_use(), before)

    def test_context_manager_nests_and_ends_with_an_error(self):
        with tensorpool.torch_enabled():
            with tensorpool.torch_enabled():
                self.assertTrue(new_from_pool())
            self.assertTrue(new_from_pool())
        self.assertFalse(new_from_pool())
        with self.assertRaises(ZeroDivisionError):
            with tensorpool.torch_enabled():
                1 / 0
        self.assertFalse(new_from_pool())


class BeforeTheImportOfPyTorch(unittest.TestCase):
    def test_tensors_come_from_the_pool(self):
        printed = run_python(
            "import sys, tensorpool\n"
            "tensorpool.enable_torch()\n"
            "assert 'torch' not in sys.modules\n"
            "assert tensorpool.torch_is_enabled()\n"
            "import torch\n"
            "tensor = torch.ones(100, 100)\n"
            "print([pool['in_use_bytes'] >= 40_000 for pool in tensorpool.statistics()['pools']])\n"
        )
        self.assertEqual(printed.strip(), "[True]")

    def test_importing_the_package_does_not_load_pytorch(self):
        run_python(
            "import tensorpool\n"
            "assert not tensorpool.torch_is_enabled()\n"
            "tensorpool.disable_torch()\n"
            "assert 'libc10' not in open('/proc/self/maps').read()\n"
        )


class ErrorNames(unittest.TestCase):
    def check(self, expected, preparation, path=""):
        printed = run_python(
            "import sys, tensorpool\n"
            f"{preparation}\n"
            "try:\n"
            "    tensorpool.enable_torch()\n"
            "except ImportError as error:\n"
            "    print(error)\n"
            "assert not tensorpool.torch_is_enabled()\n",
            path,
        )
        self.assertRegex(printed, expected)

    def test_missing_pytorch(self):
        self.check("tensorpool: enable_torch: .* has no PyTorch, expected .* python3-torch",
                   "sys.modules['torch'] = None")

    def test_missing_library(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = f"{folder}/libtensorpool_torch.so"
            self.check("libtensorpool_torch.so cannot be loaded .*, expected the library that",
                       "from tensorpool import _torch\n"
                       "_torch._beside_the_pool = lambda: sys.argv[1]", missing)

    def test_another_pytorch(self):
        with tempfile.TemporaryDirectory() as folder:
            libraries = Path(folder) / "torch" / "lib"
            libraries.mkdir(parents=True)
            (libraries.parent / "__init__.py").touch()
            real = _torch._folder_of_torch() / "lib" / "libc10.so"
            shutil.copyfile(real, libraries / "libc10.so")
            self.check("uses .*/torch/lib/libc10.so, expected .*libc10.so",
                       "sys.path.insert(0, sys.argv[1])", folder)


class AtExit(unittest.TestCase):
    def test_tensors_may_outlive_the_interpreter(self):
        run_python(
            "import builtins, threading, tensorpool\n"
            "tensorpool.enable_torch()\n"
            "import torch\n"
            "builtins.kept = [torch.ones(n) for n in (1, 100, 100000)]\n"
            "loop = [torch.ones(10)]; loop.append(loop); del loop\n"
            "threading.Thread(target=lambda: setattr(builtins, 'more', torch.ones(50))).start()\n"
        )


if __name__ == "__main__":
    unittest.main()
