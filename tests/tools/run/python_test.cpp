/// @file
/// Tests NumPy and PyTorch with `tensorpool run`, in Python programs that do not import tensorpool.

#include <gtest/gtest.h>

#include "formats/trace/recording.hpp"
#include "tools/run/ran_program.hpp"
#include "tools/temporary_folder.hpp"

#ifdef TENSORPOOL_PYTHON

namespace tensorpool::command::run {
namespace {

using photos::TemporaryFolder;
using testing::ProgramResult;
using testing::Variables;

/// Prints whether the program's arrays are in the pool.
constexpr const char* print_pools =
    "import sys; tensorpool = sys.modules['tensorpool']; "
    "print([pool['in_use_bytes'] >= 8_000_000 for pool in tensorpool.statistics()['pools']])";

ProgramResult python(const std::string& with, const std::string& program,
                     const Variables& variables = {}) {
    return ran({"--with", with, "--", TENSORPOOL_PYTHON, "-c", program}, variables);
}

ProgramResult alone(const std::string& program, const Variables& variables = {}) {
    return testing::run_program(TENSORPOOL_PYTHON, {"-c", program}, variables);
}

TEST(PythonParts, ArraysComeFromThePoolOnceNumPyIsImported) {
    const ProgramResult result =
        python("numpy", std::string("import numpy; a = numpy.ones(1000000); ") + print_pools);
    EXPECT_EQ(result.output, "[True]\n") << result.errors;
    EXPECT_TRUE(has(result.errors, "NumPy    in 1 program\n")) << result.errors;
    EXPECT_TRUE(has(result.errors, "1 process used a pool")) << result.errors;
}

TEST(PythonParts, AProgramCanImportThePackageBeforeNumPy) {
    const ProgramResult result =
        python("numpy", std::string("import tensorpool; import numpy; a = numpy.ones(1000000); ") +
                            print_pools);
    EXPECT_EQ(result.output, "[True]\n") << result.errors;
}

TEST(PythonParts, AProgramWithoutNumPyIsUnaffected) {
    const std::string program =
        "import sys, json; print([m for m in sys.modules if 'tensorpool' in m], sys.path)";
    const ProgramResult result = python("numpy", program);
    EXPECT_EQ(result.output, alone(program).output) << result.errors;
    EXPECT_TRUE(has(result.errors, "NumPy    not imported by any Python of the program"))
        << result.errors;
    EXPECT_TRUE(has(result.errors, "none used")) << result.errors;
}

class PythonStacks : public ::testing::TestWithParam<const char*> {};

// A list that grows, and a function that a function of the interpreter calls.
TEST_P(PythonStacks, NameTheLinesOfTheProgram) {
    const std::string version = GetParam();
    const ProgramResult found = testing::run_program("/bin/sh", {"-c", "command -v " + version});
    std::string path = found.output.substr(0, found.output.find('\n'));
    if (version.empty()) path = TENSORPOOL_PYTHON;
    const ProgramResult works = testing::run_program(path, {"-c", "print(1)"});
    if (works.output != "1\n") GTEST_SKIP() << version << " is not installed";
    const TemporaryFolder folder;
    const std::string program = folder.file("grow.py",
                                            "kept = []\n"
                                            "def grow(n):\n"
                                            "    kept.append(\n"
                                            "        bytearray(n))\n"
                                            "class Model:\n"
                                            "    def step(self):\n"
                                            "        list(map(grow, [1_000_000] * 20))\n"
                                            "Model().step()\n");
    const ProgramResult result = ran({"--with", "malloc", "--trace", folder.path() / "trace",
                                      "--stacks", "64KiB", "--", path, program});
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    const trace::Recording recording = trace::read_recording(folder.path() / "trace");
    std::string stacks;
    for (const auto& stack : recording.stacks) {
        for (const trace::RecordedFrame frame : stack) {
            const std::string& module = recording.modules.at(frame.module).path;
            if (module.ends_with("grow.py")) {
                stacks +=
                    module.substr(0, module.find('@')) + ":" + std::to_string(frame.offset) + " ";
            }
        }
        stacks += "\n";
    }
    EXPECT_TRUE(has(stacks, "python:grow:4 python:Model.step:7 python:<module>:8 \n")) << stacks;
}

INSTANTIATE_TEST_SUITE_P(Versions, PythonStacks,
                         ::testing::Values("", "python3.11", "python3.12", "python3.13"),
                         [](const auto& version) {
                             std::string name = version.param;
                             std::erase(name, '.');
                             return name.empty() ? "of_the_system" : name;
                         });

TEST(PythonParts, NumPysModuleIsUnchanged) {
    const std::string program =
        "import numpy, sys; s = numpy.__spec__; "
        "print(vars(s.loader), numpy.__loader__ is s.loader, s.origin, type(s.loader), "
        "[type(f).__name__ for f in sys.meta_path], importlib.util.find_spec('numpy.linalg').name)";
    const ProgramResult result = python("numpy", "import importlib.util; " + program);
    EXPECT_EQ(result.output, alone("import importlib.util; " + program).output) << result.errors;
}

TEST(PythonParts, AUsersOwnSitecustomizeRuns) {
    const TemporaryFolder folder;
    const std::string file = folder.file("sitecustomize.py", "mine = True\nprint('mine')\n");
    const std::string program = "import sitecustomize; print(sitecustomize.__file__)";
    const ProgramResult result = python("numpy", program, {{"PYTHONPATH", folder.path().string()}});
    EXPECT_EQ(result.output, "mine\n" + file + "\n") << result.errors;
}

TEST(PythonParts, ErrorsOfAUsersSitecustomizeAreReportedAsUsual) {
    for (const char* const text : {"raise ValueError('broken')", "import no_such_module"}) {
        const TemporaryFolder folder;
        folder.file("sitecustomize.py", text);
        const Variables variables = {{"PYTHONPATH", folder.path().string()}};
        const std::string expected = alone("print(1)", variables).errors;
        const ProgramResult result = python("numpy", "print(1)", variables);
        EXPECT_EQ(result.output, "1\n");
        EXPECT_FALSE(expected.empty());
        EXPECT_EQ(result.errors.substr(0, expected.size()), expected);
    }
}

TEST(PythonParts, AFailedImportOfNumPyMayBeRepeated) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() / "numpy");
    folder.file("numpy/__init__.py", "raise RuntimeError('not today')\n");
    const ProgramResult result = python(
        "numpy",
        std::string("import sys\n"
                    "try:\n    import numpy\nexcept RuntimeError as error:\n    print(error)\n"
                    "sys.path.remove('") +
            folder.path().string() + "')\nimport numpy; a = numpy.ones(1000000)\n" + print_pools,
        {{"PYTHONPATH", folder.path().string()}});
    EXPECT_EQ(result.output, "not today\n[True]\n") << result.errors;
}

TEST(PythonParts, AModuleLookupChangesNothing) {
    const ProgramResult result =
        python("numpy", std::string("import importlib.util; importlib.util.find_spec('numpy'); "
                                    "import sys; print('tensorpool' in sys.modules); "
                                    "import numpy; a = numpy.ones(1000000); ") +
                            print_pools);
    EXPECT_EQ(result.output, "False\n[True]\n") << result.errors;
}

TEST(PythonParts, AnUnsupportedNumPyIsReportedAndRuns) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() / "numpy");
    folder.file("numpy/__init__.py", "mine = 1\n");
    const ProgramResult result = python("numpy", "import numpy; print(numpy.mine)",
                                        {{"PYTHONPATH", folder.path().string()}});
    EXPECT_EQ(result.output, "1\n") << result.errors;
    EXPECT_TRUE(has(result.errors, "failed in a program: Python 3.")) << result.errors;
    EXPECT_TRUE(has(result.errors, "NumPy cannot be used")) << result.errors;
}

TEST(PythonParts, AnUnsupportedPythonIsReported) {
    const TemporaryFolder folder;
    folder.file("_tensorpool.cpython-27-x86_64-linux-gnu.so", "");
    const ProgramResult result =
        ran({"--with", "numpy", "--", "/usr/bin/env",
             "TENSORPOOL_PYTHON_PACKAGE=" + folder.path().string(), TENSORPOOL_PYTHON, "-c",
             "import numpy; print(numpy.ones(3).sum())"});
    EXPECT_EQ(result.output, "3.0\n") << result.errors;
    EXPECT_TRUE(has(result.errors,
                    "_tensorpool.cpython-27-x86_64-linux-gnu.so was built for "
                    "another Python: expected _tensorpool.cpython-"))
        << result.errors;
}

TEST(PythonParts, ThreadsForksAndSpawnedProcessesUseThePool) {
    const TemporaryFolder folder;
    const std::string file =
        folder.file("program.py",
                    "import multiprocessing, threading\n"
                    "import numpy\n"
                    "def work(number):\n"
                    "    import tensorpool\n"
                    "    a = numpy.ones(1000000)\n"
                    "    return tensorpool.numpy_is_enabled() and a.sum() == 1000000\n"
                    "if __name__ == '__main__':\n"
                    "    for way in ('fork', 'spawn'):\n"
                    "        with multiprocessing.get_context(way).Pool(1) as pool:\n"
                    "            print(way, pool.map(work, [1]))\n"
                    "    thread = threading.Thread(target=lambda: print('thread', work(1)))\n"
                    "    thread.start()\n"
                    "    thread.join()\n");
    const ProgramResult result = ran({"--with", "numpy", "--", TENSORPOOL_PYTHON, file});
    EXPECT_EQ(result.output, "fork [True]\nspawn [True]\nthread True\n") << result.errors;
    EXPECT_TRUE(has(result.errors, "NumPy    in 2 programs\n")) << result.errors;
    EXPECT_TRUE(has(result.errors, "3 processes used a pool")) << result.errors;
}

TEST(PythonParts, TensorsComeFromThePoolOnceTorchIsImported) {
    if (ran({"--with", "torch", "--", "/bin/true"}).exit_code != 0) {
        GTEST_SKIP() << "needs libtensorpool_torch.so: install libtorch-dev";
    }
    if (alone("import torch").exit_code != 0) GTEST_SKIP() << "needs python3-torch";
    const ProgramResult result =
        python("torch", std::string("import torch; a = torch.ones(2000000); ") + print_pools);
    EXPECT_EQ(result.output, "[True]\n") << result.errors;
    EXPECT_TRUE(has(result.errors, "PyTorch  in 1 program\n")) << result.errors;
    EXPECT_FALSE(has(result.errors, "NumPy")) << result.errors;
}

TEST(PythonParts, HoldersAreAddedToTheOtherParts) {
    const std::string program =
        "import sys; print(sys.modules['tensorpool'].enable_holders.__module__)";
    const ProgramResult alone = python("holders", program);
    EXPECT_EQ(alone.output, "tensorpool._holders\n") << alone.errors;
    EXPECT_TRUE(has(alone.errors, "holders  in 1 program\n")) << alone.errors;
    for (const char* const title : {"  malloc ", "  NumPy ", "  PyTorch "}) {
        EXPECT_TRUE(has(alone.errors, title)) << alone.errors;
    }
    const ProgramResult named = python("numpy,holders", program);
    EXPECT_TRUE(has(named.errors, "holders  in 1 program\n")) << named.errors;
    EXPECT_FALSE(has(named.errors, "  malloc ")) << named.errors;
}

TEST(PythonParts, HoldersAreNotAnsweredByDefault) {
    const ProgramResult result =
        ran({"--", TENSORPOOL_PYTHON, "-c", "import sys; print('tensorpool' in sys.modules)"});
    EXPECT_EQ(result.output, "False\n") << result.errors;
    EXPECT_FALSE(has(result.errors, "holders")) << result.errors;
}

TEST(PythonParts, LimitedNumPyRaisesMemoryError) {
    const ProgramResult result = ran(
        {"--with", "numpy", "--limit", "64MiB", "--", TENSORPOOL_PYTHON, "-c",
         "import numpy\ntry:\n    numpy.ones(10_000_000)\nexcept MemoryError:\n    print('no')"});
    EXPECT_EQ(result.output, "no\n") << result.errors;
}

}  // namespace
}  // namespace tensorpool::command::run

#endif
