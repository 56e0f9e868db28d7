#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/file_tree.hpp"
#include "support/gguf_writer.hpp"
#include "support/run_program.hpp"

namespace tensorpool {
namespace {

using testing::ProgramResult;
namespace ggml = testing::ggml;

/// A model of 9.5 MiB, which takes more than two pieces of the loader.
class ModelLoader : public ::testing::Test {
protected:
    ModelLoader() {
        testing::GgufWriter writer;
        writer.add("general.architecture", "llama");
        writer.add_tensor("large", ggml::f32, {1024, 2304}, std::string(9 << 20, 'x'));
        writer.add_tensor("blocks", ggml::q4_0, {32, 2});
        writer.add_tensor("small", ggml::f16, {1000}, std::string(2000, 'y'));
        tree_.write("/model.gguf", writer.write().bytes());
    }

    std::string model() const { return tree_.path("/model.gguf"); }
    static ProgramResult run(const std::vector<std::string>& words) {
        return testing::run_program(TENSORPOOL_MODEL_LOADER, words);
    }

    testing::FileTree tree_;
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_F(ModelLoader, HandsOutViewsOfTheMapping) {
    const ProgramResult result = run({model()});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.output,
              "model: " + model() +
                  ", GGUF version 3, 3 tensors, 9.0 MiB\n"
                  "views: 2, and 1 of bytes, whose types DLPack lacks or which are unaligned\n"
                  "in memory: 9.0 MiB\n");
}

TEST_F(ModelLoader, ShowsLinesWithoutATerminal) {
    const ProgramResult result = run({model()});
    EXPECT_TRUE(result.errors.ends_with("100 %: 9.0 MiB of 9.0 MiB\n")) << result.errors;
    EXPECT_FALSE(contains(result.errors, "\r"));
}

TEST_F(ModelLoader, UnmapsTensorsCopiedToADevice) {
    const ProgramResult result = run({"--device", "simulated", "--check", model()});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_TRUE(contains(result.output,
                         "9.0 MiB copied through 2 pinned buffers of 4.0 MiB, equal to the file"))
        << result.output;
    EXPECT_TRUE(contains(result.output, "unmapped: 9.0 MiB of 9.0 MiB\n")) << result.output;
    EXPECT_TRUE(contains(result.errors, "40 %: 4.0 MiB of 9.0 MiB\n")) << result.errors;
}

TEST_F(ModelLoader, LocksMemoryOrReportsTheLimit) {
    const ProgramResult result = run({"--lock", model()});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_TRUE(contains(result.output, "locked: 9.0 MiB\n") ||
                contains(result.errors, "the rest stays unlocked: "))
        << result.output << result.errors;
}

TEST_F(ModelLoader, ReportsErrors) {
    const ProgramResult missing = run({tree_.path("/none")});
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_EQ(missing.errors, "model_loader: tensorpool: map " + tree_.path("/none") +
                                  ": No such file or directory\n");
    const ProgramResult words = run({"--lock", "--device", "cuda", model()});
    EXPECT_EQ(words.exit_code, 2);
    EXPECT_TRUE(words.errors.starts_with("model_loader: --lock is for --device host\nusage: "));
    EXPECT_EQ(run({}).exit_code, 2);
    EXPECT_EQ(run({"--what", model()}).exit_code, 2);
    EXPECT_EQ(run({"--device", "gpu", model()}).exit_code, 1);
    EXPECT_TRUE(run({"--help"}).output.starts_with("usage: model_loader "));
}

/// Returns what the program writes to its standard error, a terminal.
std::string shown_on_terminal(const std::string& model) {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "no terminal";
    const std::string name = ptsname(terminal);
    const pid_t child = fork();
    if (child == 0) {
        dup2(open(name.c_str(), O_RDWR | O_NOCTTY), STDERR_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl(TENSORPOOL_MODEL_LOADER, TENSORPOOL_MODEL_LOADER, model.c_str(), nullptr);
        _exit(127);
    }
    std::string shown;
    char some[256];
    // Reading fails after the program has closed its side (pty(7)), and also before it has opened
    // it.
    int status = 0;
    for (bool is_running = true; is_running;) {
        is_running = waitpid(child, &status, WNOHANG) == 0;
        for (ssize_t got = 0; (got = read(terminal, some, sizeof some)) > 0;) {
            shown.append(some, static_cast<std::size_t>(got));
        }
    }
    close(terminal);
    return shown;
}

TEST_F(ModelLoader, ShowsABarOnATerminal) {
    const std::string shown = shown_on_terminal(model());
    EXPECT_TRUE(contains(shown, "\r[")) << shown;
    EXPECT_TRUE(contains(shown, "[########################################] 100 % of 9.0 MiB"))
        << shown;
}

}  // namespace
}  // namespace tensorpool
