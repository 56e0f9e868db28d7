#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "faults/platform_calls.hpp"
#include "faults/scenario.hpp"
#include "models/pool_model.hpp"
#include "pages/address_space.hpp"
#include "pages/marked/guarded_area.hpp"
#include "platform/platform.hpp"
#include "platform/whole_pages.hpp"
#include "statistics/commit_budget.hpp"
#include "trace/ring_layout.hpp"

// Refuses each system call in turn, each in a process of its own, so that one-time set-up is
// covered too.

namespace {

using namespace tensorpool;
using namespace tensorpool::faults;

constexpr int nothing_was_refused = 2;
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

void check_that_nothing_leaked(Scenario scenario, std::size_t expected_records) {
    scenario(Failures::none);
    // Without the control memory, other processes cannot request a recording; that is accepted.
    // Without records of guarded blocks, none is guarded from then on.
    const std::size_t guarded =
        platform::whole_pages(2 * pages::GuardedArea::max_blocks * sizeof(pages::GuardedBlock));
    const bool is_as_expected = record_bytes() == expected_records ||
                                record_bytes() + trace::control_bytes == expected_records ||
                                record_bytes() + guarded == expected_records ||
                                record_bytes() + guarded + trace::control_bytes == expected_records;
    if (expected_records != 0 && !is_as_expected) {
        testing::mismatch("records take %zu B, without refusals %zu", record_bytes(),
                          expected_records);
    }
    const char* const begin = pages::address_space().address_of(0);
    const std::size_t kept = kept_bytes(begin, window_bytes());
    if (kept != 0) testing::mismatch("%zu B of lent memory were not dropped", kept);
    const std::size_t committed = statistics::commit_budget().committed();
    if (committed != 0) testing::mismatch("%zu B still count as committed", committed);
}

// Runs in a child process. `expected_records` is 0 if it is unknown.
int refuse_one(Scenario scenario, std::uint64_t n, Refuse how, std::size_t expected_records) {
    try {
        refuse(n, how);
        scenario(how == Refuse::once ? Failures::one : Failures::many);
        refuse_nothing();
        check_that_nothing_leaked(scenario, expected_records);
        return refused_call() == nullptr ? nothing_was_refused : 0;
    } catch (const std::exception& error) {
        std::printf("platform_faults: call %zu (%s): %s\n", std::size_t{n},
                    refused_call() == nullptr ? "none" : refused_call(), error.what());
        std::fflush(stdout);
        return 1;
    }
}

template <class Function>
int in_child(Function function) {
    const pid_t child = fork();
    if (child == 0) _exit(function());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Measured in a child, so that this process never uses a pool.
std::size_t records_without_refusals(Scenario scenario) {
    int ends[2];
    if (pipe(ends) != 0) return 0;
    in_child([&] {
        scenario(Failures::none);
        const std::size_t records = record_bytes();
        return write(ends[1], &records, sizeof records) == sizeof records ? 0 : 1;
    });
    close(ends[1]);
    std::size_t records = 0;
    const bool got = read(ends[0], &records, sizeof records) == sizeof records;
    return got ? records : 0;
}

int run(Scenario scenario, Refuse how, bool same_records, std::uint64_t step) {
    const std::size_t records = same_records ? records_without_refusals(scenario) : 0;
    unsigned faults = 0;
    for (std::uint64_t n = 1;; n += step) {
        const int result = in_child([&] { return refuse_one(scenario, n, how, records); });
        if (result == nothing_was_refused) {
            std::printf("platform_faults: %zu calls refused in turn, %u faults\n",
                        std::size_t{n / step}, faults);
            return faults == 0 && n > 1 ? 0 : 1;
        }
        if (result != 0) ++faults;
        if (result < 0) {
            std::printf("platform_faults: call %zu: signal %d\n", std::size_t{n}, -result);
        }
        std::fflush(stdout);
        if (faults == 10) return 1;
    }
}

}  // namespace

// Usage: once | from_then_on, then pools | global, then optionally `every` N, to refuse only every
// N-th call, or `planted`, to leave a leak that must be found.
int main(int count, char** arguments) {
    if (count < 3) return 2;
    const std::string_view how = arguments[1];
    const std::string_view what = arguments[2];
    const std::string_view more = count > 3 ? arguments[3] : "";
    if (more == "planted") plant_a_leak();
    const std::uint64_t step = more == "every" && count > 4 ? std::stoul(arguments[4]) : 1;
    return run(what == "pools" ? run_scenario : run_scenario_with_global_pool,
               how == "once" ? Refuse::once : Refuse::from_then_on, what == "pools", step);
}
