#include "replay/report.hpp"

#include <gtest/gtest.h>

#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

std::vector<ReplayAllocator> chosen(std::vector<std::string> names,
                                    std::vector<std::string> options = {}) {
    return allocators_of(names, options);
}

void expect_refusal(const std::vector<std::string>& names, const std::vector<std::string>& options,
                    const std::string& part) {
    try {
        chosen(names, options);
        FAIL() << part;
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), wrong_usage);
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(ReplayAllocators, KeepTheGivenOrder) {
    const std::vector<ReplayAllocator> allocators = chosen({"mimalloc", "pool", "none"});
    ASSERT_EQ(allocators.size(), 3u);
    EXPECT_EQ(allocators[0].library, "libmimalloc.so.2");
    EXPECT_EQ(allocators[1].calls, Calls::pool);
    EXPECT_EQ(allocators[2].calls, Calls::floor);
}

TEST(ReplayAllocators, UnknownNameListsAllNames) {
    expect_refusal({"pool", "hoard"}, {},
                   "no allocator hoard; there are none, plan, pool, glibc, tcmalloc, jemalloc, "
                   "jemalloc-tuned, mimalloc");
}

TEST(ReplayAllocators, OptionsApplyToPoolsWithoutTheirOwn) {
    const std::vector<ReplayAllocator> allocators =
        chosen({"pool", "pool:retain=1MiB:huge_pages=auto", "glibc"}, {"retain_ms=0"});
    EXPECT_EQ(allocators[0].variables, (Variables{{"TENSORPOOL_RETAIN_MS", "0"}}));
    EXPECT_EQ(allocators[1].variables,
              (Variables{{"TENSORPOOL_RETAIN_BYTES", "1MiB"}, {"TENSORPOOL_HUGE_PAGES", "auto"}}));
    EXPECT_EQ(allocators[1].name, "pool:retain=1MiB:huge_pages=auto");
    EXPECT_TRUE(allocators[2].variables.empty());
}

TEST(ReplayAllocators, UnknownOptionListsAllOptions) {
    expect_refusal({"pool"}, {"keep=1"}, "keep=1 is not an option of the pool");
    expect_refusal({"pool"}, {"retain"}, "initial_capacity, max_capacity, max_allocation");
    expect_refusal({"pool:retain"}, {}, "is not an option of the pool");
}

TEST(ReplayAllocators, OnlyThePoolTakesOptions) {
    expect_refusal({"glibc:retain=1"}, {}, "only the pool takes options");
}

TEST(ReplayAllocators, TunedJemallocKeepsFreedMemory) {
    const ReplayAllocator tuned = chosen({"jemalloc-tuned"}).front();
    EXPECT_TRUE(tuned.never_decays);
    ASSERT_EQ(tuned.variables.size(), 1u);
    EXPECT_EQ(tuned.variables[0].second,
              "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0");
}

}  // namespace
}  // namespace tensorpool::command::replay
