#include "pool/pool.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/platform.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t gib = 1024 * mib;

class EnvironmentOptions : public ::testing::Test {
protected:
    ~EnvironmentOptions() override {
        for (const std::string& name : set_) unsetenv(name.c_str());
    }

    void set(const std::string& name, const std::string& value) {
        ASSERT_EQ(setenv(name.c_str(), value.c_str(), 1), 0);
        set_.push_back(name);
    }

    /// The options that are read from the environment, with what was printed on stderr.
    PoolOptions read() {
        ::testing::internal::CaptureStderr();
        const PoolOptions options = options_from_environment(given_);
        reported_ = ::testing::internal::GetCapturedStderr();
        return options;
    }
    PoolOptions read_with(const std::string& name, const std::string& value) {
        set(name, value);
        return read();
    }

    /// Checks that the value is reported in one line and that the options stay unchanged.
    void expect_refused(const std::string& name, const std::string& value,
                        const std::string& expected, const std::string& used) {
        const PoolOptions options = read_with(name, value);
        unsetenv(name.c_str());
        EXPECT_EQ(reported_, "tensorpool: " + name + " is '" + value + "'; expected " + expected +
                                 "; used instead: " + used + "\n");
        EXPECT_EQ(options.initial_capacity, given_.initial_capacity);
        EXPECT_EQ(options.max_capacity, given_.max_capacity);
        EXPECT_EQ(options.max_allocation, given_.max_allocation);
        EXPECT_EQ(options.growth.step, given_.growth.step);
        EXPECT_EQ(options.growth.factor, given_.growth.factor);
        EXPECT_EQ(options.growth.fraction, given_.growth.fraction);
        EXPECT_EQ(options.retain.bytes, given_.retain.bytes);
        EXPECT_EQ(options.retain.milliseconds, given_.retain.milliseconds);
        EXPECT_EQ(options.retain.background, given_.retain.background);
        EXPECT_EQ(options.huge_pages, given_.huge_pages);
        EXPECT_EQ(options.numa.placement, given_.numa.placement);
        EXPECT_EQ(options.checks, given_.checks);
    }

    // Values other than the defaults, which come from measurements and may change.
    PoolOptions given_{.growth = {.step = 3 * mib, .factor = 0.5, .fraction = 0.25},
                       .checks = Checks::off};
    std::string reported_;

private:
    std::vector<std::string> set_;
};

TEST_F(EnvironmentOptions, WithoutVariablesOptionsStayAndNothingIsReported) {
    given_ = {.name = "mine", .max_capacity = 77, .checks = Checks::full};
    const PoolOptions options = read();
    EXPECT_EQ(options.name, "mine");
    EXPECT_EQ(options.max_capacity, 77U);
    EXPECT_EQ(options.checks, Checks::full);
    EXPECT_EQ(reported_, "");
}

TEST_F(EnvironmentOptions, EveryVariableSetsItsOption) {
    set("TENSORPOOL_INITIAL_CAPACITY", "64KiB");
    set("TENSORPOOL_MAX_CAPACITY", "2GiB");
    set("TENSORPOOL_MAX_ALLOCATION", "512MiB");
    set("TENSORPOOL_GROWTH_STEP", "1TiB");
    set("TENSORPOOL_GROWTH_FACTOR", "0.5");
    set("TENSORPOOL_GROWTH_FRACTION", "0.25");
    set("TENSORPOOL_RETAIN_BYTES", "1.5GiB");
    set("TENSORPOOL_RETAIN_MS", "250");
    set("TENSORPOOL_RETAIN_BACKGROUND", "on");
    set("TENSORPOOL_HUGE_PAGES", "always");
    set("TENSORPOOL_NUMA", "interleave");
    set("TENSORPOOL_CHECKS", "full");
    set("TENSORPOOL_GUARD_SHARE", "0.125");
    set("TENSORPOOL_QUARANTINE_BYTES", "3MiB");
    const PoolOptions options = read();
    EXPECT_EQ(options.initial_capacity, 64 * kib);
    EXPECT_EQ(options.max_capacity, 2 * gib);
    EXPECT_EQ(options.max_allocation, 512 * mib);
    EXPECT_EQ(options.growth.step, 1024 * gib);
    EXPECT_EQ(options.growth.factor, 0.5);
    EXPECT_EQ(options.growth.fraction, 0.25);
    EXPECT_EQ(options.retain.bytes, 1536 * mib);
    EXPECT_EQ(options.retain.milliseconds, 250U);
    EXPECT_EQ(options.retain.background, BackgroundTrim::on);
    EXPECT_EQ(options.huge_pages, HugePages::always);
    EXPECT_EQ(options.numa.placement, NumaPolicy::Placement::interleave);
    EXPECT_EQ(options.checks, Checks::full);
    EXPECT_EQ(options.guard_share, 0.125);
    EXPECT_EQ(options.quarantine_bytes, 3 * mib);
    EXPECT_EQ(reported_, "");
}

TEST_F(EnvironmentOptions, EveryChoiceIsRecognizedByName) {
    EXPECT_EQ(read_with("TENSORPOOL_HUGE_PAGES", "never").huge_pages, HugePages::never);
    EXPECT_EQ(read_with("TENSORPOOL_HUGE_PAGES", "buckets").huge_pages, HugePages::buckets);
    EXPECT_EQ(read_with("TENSORPOOL_HUGE_PAGES", "auto").huge_pages, HugePages::automatic);
    EXPECT_EQ(read_with("TENSORPOOL_RETAIN_BACKGROUND", "auto").retain.background,
              BackgroundTrim::automatic);
    EXPECT_EQ(read_with("TENSORPOOL_RETAIN_BACKGROUND", "off").retain.background,
              BackgroundTrim::off);
    given_.checks = Checks::full;
    EXPECT_EQ(read_with("TENSORPOOL_CHECKS", "off").checks, Checks::off);
    EXPECT_EQ(read_with("TENSORPOOL_CHECKS", "basic").checks, Checks::basic);
    EXPECT_EQ(read_with("TENSORPOOL_NUMA", "system").numa.placement, NumaPolicy::Placement::system);
    const NumaPolicy numa = read_with("TENSORPOOL_NUMA", "0").numa;
    EXPECT_EQ(numa.placement, NumaPolicy::Placement::prefer);
    EXPECT_EQ(numa.node, 0U);
    EXPECT_EQ(reported_, "");
}

TEST_F(EnvironmentOptions, InvalidSizesAreReportedAndIgnored) {
    const std::string expected = "a size such as 512MiB or 2GiB";
    for (const char* const text : {"", "much", "-1", "2GB", "2 GiB", "2gib", "GiB", "1.2.3MiB",
                                   "0x10", "99999999TiB", "1e3", "nan", "inf"}) {
        expect_refused("TENSORPOOL_INITIAL_CAPACITY", text, expected, "none");
        expect_refused("TENSORPOOL_MAX_CAPACITY", text, expected, "none");
        expect_refused("TENSORPOOL_GROWTH_STEP", text, expected, "3 MiB");
        expect_refused("TENSORPOOL_RETAIN_BYTES", text, expected, "no limit");
    }
}

TEST_F(EnvironmentOptions, ZeroMaxAllocationIsReportedAndIgnored) {
    for (const char* const text : {"0", "0.1", "0KiB", "-1", "much"}) {
        expect_refused("TENSORPOOL_MAX_ALLOCATION", text, "a size above 0 such as 512MiB or 2GiB",
                       "8 GiB");
    }
}

TEST_F(EnvironmentOptions, InvalidNumbersAreReportedAndIgnored) {
    for (const char* const text : {"", "much", "-0.1", "1025", "nan", "inf", "0.5x"}) {
        expect_refused("TENSORPOOL_GROWTH_FACTOR", text, "a number from 0 to 1024", "0.500000");
        expect_refused("TENSORPOOL_GROWTH_FRACTION", text, "a number from 0 to 1", "0.250000");
    }
    expect_refused("TENSORPOOL_GROWTH_FRACTION", "1.5", "a number from 0 to 1", "0.250000");
    for (const char* const text : {"-0.1", "1.5", "nan"}) {
        expect_refused("TENSORPOOL_GUARD_SHARE", text, "a number from 0 to 1",
                       std::to_string(given_.guard_share));
    }
    for (const char* const text : {"", "-1", "1.5", "10s", "4294967296"}) {
        expect_refused("TENSORPOOL_RETAIN_MS", text, "a whole number of milliseconds", "10000");
    }
}

TEST_F(EnvironmentOptions, InvalidChoicesAreReportedAndIgnored) {
    for (const char* const text : {"", "Off", "2", "full "}) {
        expect_refused("TENSORPOOL_CHECKS", text, "off, basic, full, sampled or hardened", "off");
        expect_refused("TENSORPOOL_HUGE_PAGES", text, "never, buckets, auto or always", "buckets");
        expect_refused("TENSORPOOL_RETAIN_BACKGROUND", text, "off, auto or on", "off");
    }
    const std::string nodes = std::to_string(platform::numa_node_count());
    for (const std::string& text : {std::string(), std::string("all"), std::string("-1"),
                                    std::string("4096"), std::string("0.5"), nodes}) {
        expect_refused("TENSORPOOL_NUMA", text, "system, interleave or the number of a node",
                       "system");
    }
}

}  // namespace
}  // namespace tensorpool
