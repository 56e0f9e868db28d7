#include "replay/allocator_task.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <array>
#include <cstring>

#include "support/process_metrics.hpp"

namespace tensorpool::command::replay {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// The system's values of resident memory lag behind by some pages for each processor.
constexpr double lag = 2.0 * mib;

void touch_and_give_back(std::size_t bytes) {
    void* const mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(mapped, 1, bytes);
    munmap(mapped, bytes);
}

TEST(Gauges, PeakIsReset) {
    if (testing::sanitized()) GTEST_SKIP() << "a sanitizer's shadow is resident too";
    touch_and_give_back(64 * mib);
    ASSERT_TRUE(reset_peak());
    const std::uint64_t resident = resident_bytes();
    EXPECT_GT(resident, 0u);
    EXPECT_NEAR(static_cast<double>(peak_bytes()), static_cast<double>(resident), lag);
    touch_and_give_back(32 * mib);
    EXPECT_NEAR(static_cast<double>(peak_bytes() - resident), 32.0 * mib, lag);
}

TEST(Gauges, FaultsAreCounted) {
    const Spent before = spent_so_far();
    touch_and_give_back(4 * mib);
    const Spent after = spent_so_far();
    EXPECT_GE(after.minor_faults - before.minor_faults, 1000u);
    EXPECT_GT(after.elapsed_ns, before.elapsed_ns);
}

TEST(Gauges, FindsTheFileOfAnAddress) {
    std::array<char, 128> name = {};
    file_of(reinterpret_cast<const void*>(&touch_and_give_back), name);
    EXPECT_STREQ(name.data(), "command_tests");
    const int on_the_stack = 0;
    file_of(&on_the_stack, name);
    EXPECT_STREQ(name.data(), "");
}

TEST(Gauges, ALongNameIsCut) {
    std::array<char, 8> name = {};
    file_of(reinterpret_cast<const void*>(&touch_and_give_back), name);
    EXPECT_STREQ(name.data(), "command");
}

}  // namespace
}  // namespace tensorpool::command::replay
