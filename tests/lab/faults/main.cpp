#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "lab/faults/platform_calls.hpp"
#include "lab/faults/scenario.hpp"
#include "limits/commit_budget.hpp"
#include "models/pool_model.hpp"
#include "pages/address_space.hpp"
#include "platform/platform.hpp"
#include "trace/ring_layout.hpp"
#include "watch/guards/guarded_area.hpp"

// Refuses each system call in turn, each in a process of its own, so that one-time set-up is
// covered too.

namespace {

using namespace tensorpool;
using namespace tensorpool::faults;

constexpr int nothing_was_refused = 2;
[[maybe_unused]] constexpr int skipped = 77;
using Scenario = void (*)(Failures);

// The size of the window that contains all memory ever lent.
std::size_t window_bytes() {
    return pages::address_space().map().page_count() * pages::page_bytes;
}

std::size_t lent_bytes() {
    const pages::AddressSpace& space = pages::address_space();
    std::size_t bytes = 0;
    for (pages::PageNumber page = 0; page < space.map().page_count();
         page += pages::granule_pages) {
        if (space.is_lent(space.address_of(page)))
            bytes += pages::granule_pages * pages::page_bytes;
    }
    return bytes;
}

// Bytes mapped in addition to lent memory and its tables. The size of the tables depends on what
// was granted: a word for each page, and a word and a lender's number for each granule, as in
// address_space.hpp.
std::size_t record_bytes() {
    const std::size_t pages = window_bytes() / pages::page_bytes;
    const std::size_t granules = pages / pages::granule_pages;
    const auto whole = [](std::size_t bytes) {
        constexpr std::size_t unit = 65'536;
        return (bytes + unit - 1) / unit * unit;
    };
    const std::size_t tables = whole(granules * 8) + whole(granules * 2) + whole(pages * 8);
    return mapped_bytes() - lent_bytes() - tables;
}

std::size_t open_files() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// What a scenario leaves behind without refusals; `records` is 0 if this is unknown.
struct Footprint {
    std::size_t records = 0;
    std::size_t files = 0;
};

void check_that_nothing_leaked(Scenario scenario, const Footprint& expected,
                               std::size_t files_before) {
    scenario(Failures::none);
    const std::size_t expected_records = expected.records;
    const std::size_t files = open_files() - files_before;
    if (expected_records != 0 && files > expected.files) {
        testing::mismatch("%zu descriptors stay open, without refusals %zu", files, expected.files);
    }
    // Without the control memory, other processes cannot request a recording; that is accepted.
    // Without records of guarded blocks, none is guarded from then on.
    const std::size_t guarded =
        platform::whole_pages(2 * watch::GuardedArea::max_blocks * sizeof(watch::GuardedBlock));
    // Without a mark of the process, its children do not notice that they lack memory.
    bool is_as_expected = false;
    for (const std::size_t without_control : {std::size_t{0}, trace::control_bytes}) {
        for (const std::size_t without_guards : {std::size_t{0}, guarded}) {
            for (const std::size_t without_mark : {std::size_t{0}, platform::page_bytes()}) {
                is_as_expected |=
                    record_bytes() + without_control + without_guards + without_mark ==
                    expected_records;
            }
        }
    }
    if (expected_records != 0 && !is_as_expected) {
        testing::mismatch("records take %zu B, without refusals %zu", record_bytes(),
                          expected_records);
    }
    const char* const begin = pages::address_space().address_of(0);
    const std::size_t kept = kept_bytes(begin, window_bytes());
    if (kept != 0) testing::mismatch("%zu B of lent memory were not dropped", kept);
    const std::size_t committed = limits::commit_budget().committed();
    if (committed != 0) testing::mismatch("%zu B still count as committed", committed);
}

// Runs in a child process.
int refuse_one(Scenario scenario, std::uint64_t n, Refuse how, const Footprint& expected) {
    const std::size_t files = open_files();
    try {
        refuse(n, how);
        scenario(how == Refuse::once ? Failures::one : Failures::many);
        refuse_nothing();
        check_that_nothing_leaked(scenario, expected, files);
        return refused_call() == nullptr ? nothing_was_refused : 0;
    } catch (const std::exception& error) {
        std::printf("platform_faults: call %zu (%s): %s\n", std::size_t{n},
                    refused_call() == nullptr ? "none" : refused_call(), error.what());
        std::fflush(stdout);
        return 1;
    }
}

// How a child process ended.
struct Ended {
    int status = 0;    // the exit status, or the signal as a negative number
    std::string said;  // what it and its children wrote to stderr
};

template <class Function>
Ended in_child(Function function) {
    int ends[2];
    if (pipe(ends) != 0) return {1, "no pipe"};
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(function());
    }
    close(ends[1]);
    Ended ended;
    char text[1024];
    ssize_t got;
    while ((got = read(ends[0], text, sizeof text)) > 0)
        ended.said.append(text, static_cast<std::size_t>(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended;
}

// Measured in a child, so that this process never uses a pool.
Footprint footprint_without_refusals(Scenario scenario) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    in_child([&] {
        const std::size_t files = open_files();
        scenario(Failures::none);
        const Footprint found = {record_bytes(), open_files() - files};
        return write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1;
    });
    close(ends[1]);
    Footprint found;
    const bool got = read(ends[0], &found, sizeof found) == sizeof found;
    close(ends[0]);
    return got ? found : Footprint{};
}

// What a process may write to stderr when page faults cannot be served, which ends it or the child
// of a fork.
bool is_documented(const std::string& line) {
    const auto has = [&](const char* part) { return line.find(part) != std::string::npos; };
    if (has("tensorpool: freeze: the system refused to read descriptor ")) return true;
    if (has("tensorpool: fork: the child's statistics cannot be separated")) return true;
    return has("tensorpool: freeze: block 0x") &&
           line.ends_with(" cannot come back: the system provides no memory for it");
}

bool all_is_documented(const std::string& said) {
    std::istringstream lines(said);
    std::string line;
    while (std::getline(lines, line))
        if (!is_documented(line)) return false;
    return true;
}

struct Test {
    Scenario scenario;
    bool leaves_same_records;
    bool may_end_the_process;
};

int run(const Test& test, Refuse how, std::uint64_t step) {
    const Footprint footprint =
        test.leaves_same_records ? footprint_without_refusals(test.scenario) : Footprint{};
    unsigned faults = 0;
    unsigned ended_processes = 0;
    for (std::uint64_t n = 1;; n += step) {
        const Ended ended = in_child([&] { return refuse_one(test.scenario, n, how, footprint); });
        const int result = ended.status;
        if (result == nothing_was_refused) {
            std::printf(
                "platform_faults: %zu calls refused in turn, %u ended the process, %u faults\n",
                std::size_t{n / step}, ended_processes, faults);
            return faults == 0 && n > 1 ? 0 : 1;
        }
        if (test.may_end_the_process && result == -SIGABRT && all_is_documented(ended.said)) {
            ++ended_processes;
            continue;
        }
        std::fputs(ended.said.c_str(), stderr);
        if (result != 0) ++faults;
        if (result < 0) {
            std::printf("platform_faults: call %zu: signal %d\n", std::size_t{n}, -result);
        }
        std::fflush(stdout);
        if (faults == 10) return 1;
    }
}

}  // namespace

// Usage: once | from_then_on, then pools | global | frozen, then optionally `every` N, to refuse
// only every N-th call, or `planted`, to leave a leak that must be found.
int main(int count, char** arguments) {
    if (count < 3) return 2;
    const std::string_view how = arguments[1];
    const std::string_view what = arguments[2];
    const std::string_view more = count > 3 ? arguments[3] : "";
    if (more == "planted") plant_a_leak();
    const std::uint64_t step = more == "every" && count > 4 ? std::stoul(arguments[4]) : 1;
    const Refuse refuse = how == "once" ? Refuse::once : Refuse::from_then_on;
    if (what == "pools") return run({run_scenario, true, false}, refuse, step);
    if (what == "global") return run({run_scenario_with_global_pool, false, false}, refuse, step);
#ifdef TENSORPOOL_TESTS_FREEZE
    if (!may_freeze()) {
        std::puts(
            "platform_faults: skipped: this process may not serve its page faults "
            "(userfaultfd(2))");
        return skipped;
    }
    return run({run_scenario_with_frozen_blocks, true, true}, refuse, step);
#endif
    return 2;
}
