// Runs each planted bug in a child and prints what the tool said about it.
//
//     planted_bugs asan|msan
//     valgrind --log-file=LOG.%p planted_bugs memcheck LOG
//
// Prints a line for each bug: its name, whether the tool can see it, and whether it was reported.
// Fails if more than two of those that the tool can see were not reported, or if it reported
// anything about a correct program. With the name of a bug as a further argument, it prints all
// that was said about it.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "memtools/planted_bug.hpp"

namespace tensorpool::testing {
namespace {

constexpr PlantedBug correct_use = {"correct use", use_correctly, nullptr, nullptr, nullptr};

class Tool {
public:
    Tool(std::string_view name, std::string log) : name_(name), log_(std::move(log)) {}

    /// Returns what must be said about the bug, or nullptr.
    const char* expected(const PlantedBug& bug) const {
        if (name_ == "asan") return bug.asan;
        return name_ == "msan" ? bug.msan : bug.memcheck;
    }
    /// Returns all that was said while a child ran the function, the pool's messages included. The
    /// child is a process of its own; MemorySanitizer does not survive a fork in every case. Under
    /// Valgrind, which takes a second to start, it is a fork.
    std::string said_about(const char* name, void (*run)()) const {
        std::fflush(stdout);  // the child would write it again
        const int errors = memfd_create("errors", 0);
        const pid_t child = fork();
        if (child == 0) {
            dup2(errors, STDERR_FILENO);
            if (log_.empty()) execl("/proc/self/exe", "planted_bugs", "--run", name, nullptr);
            run();
            std::fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        std::string said(static_cast<std::size_t>(lseek(errors, 0, SEEK_END)), '\0');
        const ssize_t got = pread(errors, said.data(), said.size(), 0);
        said.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        close(errors);
        if (!log_.empty()) said += content_of_log(child);
        if (!WIFEXITED(status))
            said += "ended by signal " + std::to_string(WTERMSIG(status)) + "\n";
        return said;
    }

private:
    std::string content_of_log(pid_t child) const {
        const std::string path = log_ + "." + std::to_string(child);
        std::ifstream file(path);
        std::string content{std::istreambuf_iterator<char>(file), {}};
        unlink(path.c_str());
        return content;
    }

    std::string_view name_;
    std::string log_;
};

int run_all(const Tool& tool) {
    unsigned visible = 0;
    unsigned missed = 0;
    for (const auto bugs : {bugs_with_pools(), bugs_with_arenas(), bugs_with_adaptors()}) {
        for (const PlantedBug& bug : bugs) {
            const char* const expected = tool.expected(bug);
            const bool is_reported =
                expected != nullptr &&
                tool.said_about(bug.name, bug.run).find(expected) != std::string::npos;
            visible += expected != nullptr ? 1 : 0;
            missed += expected != nullptr && !is_reported ? 1 : 0;
            std::printf("%s\t%s\n", bug.name,
                        expected == nullptr ? "-" : (is_reported ? "reported" : "MISSED"));
        }
    }
    const std::string false_reports = tool.said_about(correct_use.name, correct_use.run);
    std::printf("%u of %u reported; about a correct program: %s\n", visible - missed, visible,
                false_reports.empty() ? "nothing" : false_reports.c_str());
    return missed > 2 || !false_reports.empty() ? 1 : 0;
}

const PlantedBug* find(std::string_view name) {
    for (const auto bugs : {bugs_with_pools(), bugs_with_arenas(), bugs_with_adaptors()}) {
        for (const PlantedBug& bug : bugs) {
            if (name == bug.name) return &bug;
        }
    }
    return name == correct_use.name ? &correct_use : nullptr;
}

}  // namespace
}  // namespace tensorpool::testing

int main(int argc, char** argv) {
    using namespace tensorpool::testing;
    if (argc < 2) return 2;
    const std::string_view tool_name = argv[1];
    const int used = tool_name == "memcheck" || tool_name == "--run" ? 3 : 2;
    const PlantedBug* const bug =
        argc > used - (tool_name == "--run" ? 1 : 0) ? find(argv[argc - 1]) : nullptr;
    if (tool_name == "--run") {
        if (bug != nullptr) bug->run();
        std::fflush(stdout);
        _exit(0);
    }
    const Tool tool(tool_name, tool_name == "memcheck" ? argv[2] : "");
    if (bug == nullptr) return run_all(tool);
    std::fputs(tool.said_about(bug->name, bug->run).c_str(), stdout);
    return 0;
}
