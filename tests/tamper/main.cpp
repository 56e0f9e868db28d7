// Flips one bit in the records of a pool, in a process of its own each time, and goes on with
// random calls. Each run must be stopped, or be harmless. See `usage`.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tamper/model.hpp"
#include "tamper/records.hpp"

namespace {

using namespace tensorpool;
using namespace tensorpool::tamper;

constexpr const char* usage =
    "usage: tamper_records MODE RUNS [FIRST]\n"
    "MODE is off, basic, full, sampled or hardened; FIRST is the number of the first run, 0 by "
    "default.\nFails if a block was handed out twice, or if fewer than 99 % of the runs were "
    "stopped or harmless.\n";
constexpr int no_records = 20;
constexpr unsigned max_seconds = 20;

bool read_mode(std::string_view name, Checks& checks) {
    static const std::map<std::string_view, Checks> modes = {{"off", Checks::off},
                                                             {"basic", Checks::basic},
                                                             {"full", Checks::full},
                                                             {"sampled", Checks::sampled},
                                                             {"hardened", Checks::hardened}};
    const auto found = modes.find(name);
    if (found == modes.end()) return false;
    checks = found->second;
    return true;
}

// In a child. Writes the kind of page that it changes to `output`.
int run(Checks checks, std::uint64_t number, int output) {
    alarm(max_seconds);
    dup2(output, STDERR_FILENO);
    std::mt19937_64 random(number);
    const std::vector<Mapping> before = writable_mappings();
    PoolOptions options;
    options.name = "tampered";
    options.checks = checks;
    MemoryPool pool(options);
    Model model(pool, random());
    model.run(static_cast<unsigned>(random() % 2000));
    {
        const RecordPages pages(before);
        if (pages.empty()) return no_records;
        const char* const kind = pages.flip(random());
        dprintf(output, "%s\n", kind);
    }
    model.run(2000);
    model.finish();
    return static_cast<int>(Outcome::harmless);
}

struct Ended {
    std::string kind;  // of the page
    std::string how;
    std::string report;
};

std::string name_of(int status, const std::string& report) {
    if (WIFSIGNALED(status)) {
        if (WTERMSIG(status) == SIGALRM) return "hung";
        return report.find("tensorpool: fatal:") != std::string::npos ? "reported" : "signal";
    }
    switch (static_cast<Outcome>(WEXITSTATUS(status))) {
        case Outcome::harmless:
            return report.find("tensorpool: ") != std::string::npos ? "reported" : "harmless";
        case Outcome::refused:
            return "refused";
        case Outcome::lost:
            return "lost";
        case Outcome::outside:
            return "outside";
        case Outcome::twice:
            return "twice";
    }
    return WEXITSTATUS(status) == no_records ? "no records" : "exception";
}

Ended run_in_child(Checks checks, std::uint64_t number) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(run(checks, number, ends[1]));
    close(ends[1]);
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;) {
        text.append(part.data(), static_cast<std::size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    const std::size_t line = std::min(text.find('\n'), text.size());
    const std::string report = line == text.size() ? "" : text.substr(line + 1);
    return {text.substr(0, line), name_of(status, report), report};
}

}  // namespace

int main(int count, char** arguments) {
    Checks checks{};
    if (count < 3 || !read_mode(arguments[1], checks)) {
        std::fputs(usage, stderr);
        return 2;
    }
    const std::uint64_t runs = std::strtoull(arguments[2], nullptr, 10);
    const std::uint64_t first = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 0;
    std::map<std::string, std::map<std::string, std::uint64_t>> table;
    std::uint64_t good = 0;
    std::uint64_t twice = 0;
    for (std::uint64_t number = first; number != first + runs; ++number) {
        const Ended ended = run_in_child(checks, number);
        ++table[ended.kind][ended.how];
        const bool is_good =
            ended.how == "harmless" || ended.how == "reported" || ended.how == "signal";
        good += is_good ? 1 : 0;
        twice += ended.how == "twice" ? 1 : 0;
        if (!is_good) {
            std::printf("run %zu (%s): %s %s\n", std::size_t{number}, ended.kind.c_str(),
                        ended.how.c_str(), ended.report.substr(0, 300).c_str());
        }
    }
    for (const auto& [kind, outcomes] : table) {
        std::printf("%-12s", kind.c_str());
        for (const auto& [how, number] : outcomes) {
            std::printf(" %s %zu", how.c_str(), std::size_t{number});
        }
        std::puts("");
    }
    std::printf("%zu of %zu runs stopped or harmless, %zu handed a block out twice\n",
                std::size_t{good}, std::size_t{runs}, std::size_t{twice});
    return twice == 0 && good * 100 >= runs * 99 ? 0 : 1;
}
