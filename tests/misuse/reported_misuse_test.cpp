// Misuses after which the program goes on if TENSORPOOL_ON_MISUSE is "report".

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

#include "misuse/misuse.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t sizes[] = {100, 3000, 64 * kib, 300 * kib, 5 * kib* kib};

std::uint64_t failed_checks() {
    std::uint64_t sum = 0;
    for (const auto& kind : statistics::segment().header()->failed_checks) sum += kind.load();
    return sum;
}

struct Pools {
    MemoryPool& mine;
    MemoryPool& other;
    char* block;
    std::size_t bytes;
};

class ReportedMisuseDeathTest : public ::testing::TestWithParam<Checks> {
protected:
    /// Expects one report and one failed check of `misuse`, and the same use and a working pool
    /// afterwards.
    void expect_goes_on(const std::string& kind, const std::function<void(const Pools&)>& misuse) {
        for (const std::size_t bytes : sizes) {
            EXPECT_EXIT(std::_Exit(is_harmless(bytes, misuse) ? 0 : 1),
                        ::testing::ExitedWithCode(0),
                        ::testing::MatchesRegex("tensorpool: error: " + kind +
                                                " ptr=[^\n]+\n(  [^\n]*\n)*"))
                << bytes;
        }
    }

private:
    bool is_harmless(std::size_t bytes, const std::function<void(const Pools&)>& misuse) {
        setenv("TENSORPOOL_ON_MISUSE", "report", 1);
        MemoryPool mine({.name = "mine", .checks = GetParam()});
        MemoryPool other({.name = "other", .checks = GetParam()});
        auto* const block = static_cast<char*>(mine.allocate(bytes));
        auto* const freed = static_cast<char*>(mine.allocate(bytes));
        mine.deallocate(freed, bytes);
        const std::uint64_t failed = failed_checks();
        const PoolStatistics before = mine.statistics();
        misuse({mine, other, block, bytes});
        const PoolStatistics after = mine.statistics();
        const bool is_same =
            failed_checks() == failed + 1 && before.in_use_bytes == after.in_use_bytes &&
            before.deallocations == after.deallocations && other.statistics().deallocations == 0;
        mine.deallocate(block, bytes);
        void* const first = mine.allocate(bytes);
        void* const second = mine.allocate(bytes);
        const bool is_working = first != second;
        mine.deallocate(first, bytes);
        mine.deallocate(second, bytes);
        return is_same && is_working && mine.statistics().in_use_bytes == 0;
    }
};

INSTANTIATE_TEST_SUITE_P(Levels, ReportedMisuseDeathTest,
                         ::testing::Values(Checks::full, Checks::hardened), [](const auto& level) {
                             return level.param == Checks::full ? "full" : "hardened";
                         });

TEST_P(ReportedMisuseDeathTest, ForeignPointerIsIgnored) {
    alignas(64) static char foreign[128];
    expect_goes_on("foreign-free", [](const Pools& at) { at.mine.deallocate(foreign); });
    expect_goes_on("foreign-free", [](const Pools& at) { at.mine.deallocate(foreign, at.bytes); });
}

TEST_P(ReportedMisuseDeathTest, InteriorPointerIsIgnored) {
    expect_goes_on("interior-free", [](const Pools& at) { at.mine.deallocate(at.block + 32); });
    expect_goes_on("interior-free",
                   [](const Pools& at) { at.mine.deallocate(at.block + 32, at.bytes); });
}

TEST_P(ReportedMisuseDeathTest, BlockOfAnotherPoolStaysInUse) {
    expect_goes_on("wrong-pool", [](const Pools& at) { at.other.deallocate(at.block); });
    expect_goes_on("wrong-pool", [](const Pools& at) { at.other.deallocate(at.block, at.bytes); });
}

TEST_P(ReportedMisuseDeathTest, BlockFreedWithAWrongSizeStaysInUse) {
    if (GetParam() == Checks::hardened) GTEST_SKIP() << "frees the block by its real size";
    expect_goes_on("wrong-size",
                   [](const Pools& at) { at.mine.deallocate(at.block, at.bytes * 4); });
}

TEST_P(ReportedMisuseDeathTest, SecondFreeIsIgnored) {
    for (const std::size_t bytes : sizes) {
        const auto frees_twice = [&] {
            setenv("TENSORPOOL_ON_MISUSE", "report", 1);
            MemoryPool pool({.name = "mine", .checks = GetParam()});
            void* const block = pool.allocate(bytes);
            pool.deallocate(block, bytes);
            const std::uint64_t failed = failed_checks();
            pool.deallocate(block, bytes);
            const bool is_same = failed_checks() == failed + 1 &&
                                 pool.statistics().deallocations == 1 &&
                                 pool.statistics().in_use_bytes == 0;
            const bool is_served_once = pool.allocate(bytes) != pool.allocate(bytes);
            std::_Exit(is_same && is_served_once ? 0 : 1);
        };
        EXPECT_EXIT(frees_twice(), ::testing::ExitedWithCode(0), "^tensorpool: error: double-free ")
            << bytes;
    }
}

TEST_P(ReportedMisuseDeathTest, ReallocationOfAForeignPointerFails) {
    alignas(64) static char foreign[128];
    const auto reallocates = [&] {
        setenv("TENSORPOOL_ON_MISUSE", "report", 1);
        MemoryPool pool({.name = "mine", .checks = GetParam()});
        try {
            (void)pool.reallocate(foreign, 100, 200);
        } catch (const AllocationError&) {
            std::_Exit(pool.statistics().in_use_bytes == 0 ? 0 : 1);
        }
        std::_Exit(1);
    };
    EXPECT_EXIT(reallocates(), ::testing::ExitedWithCode(0), "^tensorpool: error: foreign-free ");
}

}  // namespace
}  // namespace tensorpool
