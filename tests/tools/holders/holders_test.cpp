/// @file
/// Tests `tensorpool holders` with Python programs, which `tensorpool run` starts.

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "support/run_program.hpp"
#include "tools/tensorpool/started_program.hpp"

namespace tensorpool::command {
namespace {

using testing::ProgramResult;

ProgramResult holders(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "holders");
    return testing::run_program(TENSORPOOL_PROGRAM, std::move(arguments));
}

TEST(HoldersCommand, RefusesWrongOptions) {
    EXPECT_EQ(holders({"--top", "0"}).exit_code, 2);
    EXPECT_EQ(holders({"--top", "11"}).exit_code, 2);
    EXPECT_EQ(holders({"--for", "soon"}).exit_code, 2);
}

#ifdef TENSORPOOL_PYTHON

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A program that prints its number, then allocates until its input ends. It answers at once,
/// since each round takes a slow path.
class Python : public ::testing::Test {
protected:
    static constexpr const char* program =
        "import os, select, sys\n"
        "import numpy as np\n"
        "import tensorpool\n"
        "history = [np.ones(1 << 20), np.ones(10)]\n"
        "def train():\n"
        "    batch = np.ones(1 << 19)\n"
        "    print(os.getpid(), flush=True)\n"
        "    while not select.select([sys.stdin], [], [], 0.001)[0]:\n"
        "        np.ones(1 << 18)\n"
        "train()\n"
        "print('ended as usual')\n";

    static std::vector<std::string> with(const char* parts, const char* code = program) {
        return {TENSORPOOL_PROGRAM, "run", "--report", "none", "--with", parts, "--",
                TENSORPOOL_PYTHON,  "-c",  code};
    }
};

TEST_F(Python, NamesWhatRefersToTheLargestArrays) {
    StartedProgram python(with("numpy,holders"));
    const std::string number = python.read_line();
    const ProgramResult text = holders({"--pid", number, "--top", "2", "--for", "1min"});
    EXPECT_EQ(text.exit_code, 0) << text.errors;
    EXPECT_TRUE(text.output.starts_with("process " + number + " paused for ")) << text.output;
    EXPECT_TRUE(has(text.output, "8.00 MiB numpy.ndarray (1048576) float64 __main__.history[0]\n"))
        << text.output;
    EXPECT_TRUE(has(text.output, "4.00 MiB numpy.ndarray (524288) float64  train() at <string>:"))
        << text.output;
    const ProgramResult json = holders({"--pid", number, "--json", "--for", "1min"});
    EXPECT_EQ(nlohmann::json::parse(json.output)["largest"][0]["held_by"],
              nlohmann::json::array({"__main__.history[0]"}))
        << json.output << json.errors;
    python.write_line("end");
    EXPECT_EQ(python.read_line(), "ended as usual");
    EXPECT_EQ(python.wait(), 0) << python.errors();
}

TEST_F(Python, WithoutThePartReportsHowToEnableIt) {
    StartedProgram python(with("numpy"));
    const ProgramResult result = holders({"--pid", python.read_line(), "--for", "1min"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(
        has(result.errors, "names no holders: start it with `tensorpool run --with holders"))
        << result.errors;
}

TEST_F(Python, ReportsAProcessThatDoesNotAnswer) {
    StartedProgram python(with("numpy,holders"));
    const std::string number = python.read_line();
    const auto process = static_cast<pid_t>(std::stol(number));
    ::kill(process, SIGSTOP);
    const ProgramResult result = holders({"--pid", number, "--for", "50ms"});
    ::kill(process, SIGCONT);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(has(result.errors, "process " + number + " did not answer within 0.1 s"))
        << result.errors;
}

TEST_F(Python, ChildOfAForkAnswersForItself) {
    StartedProgram python(with("numpy,holders",
                               "import os, select, sys\n"
                               "import numpy as np\n"
                               "first = np.ones(1 << 20)\n"
                               "if os.fork() != 0:\n"
                               "    os.wait()\n"
                               "    sys.exit()\n"
                               "child = np.ones(1 << 21)\n"
                               "print(os.getpid(), flush=True)\n"
                               "while not select.select([sys.stdin], [], [], 0.001)[0]:\n"
                               "    np.ones(1 << 18)\n"));
    const ProgramResult result = holders({"--pid", python.read_line(), "--for", "1min"});
    EXPECT_TRUE(has(result.output, "16.0 MiB numpy.ndarray (2097152) float64 __main__.child\n"))
        << result.output << result.errors;
    EXPECT_TRUE(has(result.output, " __main__.first\n")) << result.output;
}

// The search itself does not raise; here, another one takes its place.
TEST_F(Python, AnInterruptedSearchInterruptsTheProgram) {
    for (const char* const raised : {"KeyboardInterrupt", "ValueError"}) {
        const std::string code = std::string(
                                     "import os, select, sys\n"
                                     "import numpy as np\n"
                                     "import tensorpool\n"
                                     "def find():\n"
                                     "    raise ") +
                                 raised +
                                 "\n"
                                 "tensorpool._tensorpool.answer_holders_by(find)\n"
                                 "np.ones(1 << 18)\n"
                                 "print(os.getpid(), flush=True)\n"
                                 "try:\n"
                                 "    while not select.select([sys.stdin], [], [], 0.001)[0]:\n"
                                 "        np.ones(1 << 18)\n"
                                 "    print('not raised')\n"
                                 "except KeyboardInterrupt:\n"
                                 "    print('interrupted', flush=True)\n"
                                 "    sys.stdin.read()\n";
        const bool interrupts = std::string(raised) == "KeyboardInterrupt";
        StartedProgram python(with("numpy,holders", code.c_str()));
        const ProgramResult result = holders({"--pid", python.read_line(), "--for", "1min"});
        EXPECT_TRUE(has(result.errors, interrupts ? "holders: the search was interrupted"
                                                  : "holders: the search failed"))
            << result.errors;
        if (!interrupts) python.write_line("end");
        EXPECT_EQ(python.read_line(), interrupts ? "interrupted" : "not raised");
    }
}

#endif

}  // namespace
}  // namespace tensorpool::command
