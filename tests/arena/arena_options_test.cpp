#include <tensorpool/arena_options.hpp>

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "arena/arena_state.hpp"
#include "arena/arena_test.hpp"
#include "support/run_program.hpp"

namespace tensorpool {
namespace {

using detail::ArenaDefaults;
using testing::gib;
using testing::kib;
using testing::mib;

const std::string prefix = "TENSORPOOL_ARENA_";

class ArenaEnvironment : public ::testing::Test {
protected:
    ~ArenaEnvironment() override {
        for (const std::string& name : set_) unsetenv(name.c_str());
    }

    void set(const std::string& name, const std::string& value) {
        ASSERT_EQ(setenv((prefix + name).c_str(), value.c_str(), 1), 0);
        set_.push_back(prefix + name);
    }

    /// Reads the defaults and captures messages.
    ArenaDefaults read() {
        ::testing::internal::CaptureStderr();
        const ArenaDefaults defaults = arena::defaults_from_environment();
        messages_ = ::testing::internal::GetCapturedStderr();
        return defaults;
    }
    ArenaDefaults read_with(const std::string& name, const std::string& value) {
        set(name, value);
        return read();
    }

    static void expect_built_in(const ArenaDefaults& defaults) {
        const GrowthPolicy conservative = GrowthPolicy::conservative();
        EXPECT_EQ(defaults.initial_capacity, 8 * mib);
        EXPECT_EQ(defaults.max_capacity, 0U);
        EXPECT_EQ(defaults.max_allocation, 8 * gib);
        EXPECT_EQ(defaults.growth.step, conservative.step);
        EXPECT_EQ(defaults.growth.factor, conservative.factor);
        EXPECT_EQ(defaults.growth.fraction, conservative.fraction);
        EXPECT_EQ(defaults.retain, SIZE_MAX);
    }

    /// Expects that the value is reported in one line and otherwise ignored.
    void expect_refused(const std::string& name, const std::string& value,
                        const std::string& expected, const std::string& used) {
        const ArenaDefaults defaults = read_with(name, value);
        unsetenv((prefix + name).c_str());
        EXPECT_EQ(messages_, "tensorpool: " + prefix + name + " is '" + value + "'; expected " +
                                 expected + "; used instead: " + used + "\n");
        expect_built_in(defaults);
    }

    std::string messages_;

private:
    std::vector<std::string> set_;
};

TEST_F(ArenaEnvironment, BuiltInDefaultsApplyWithoutVariables) {
    expect_built_in(read());
    EXPECT_EQ(messages_, "");
}

TEST_F(ArenaEnvironment, EveryVariableSetsItsOption) {
    set("INITIAL_CAPACITY", "64KiB");
    set("MAX_CAPACITY", "2GiB");
    set("MAX_ALLOCATION", "512MiB");
    set("GROWTH_STEP", "1.5MiB");
    set("GROWTH_FACTOR", "0.5");
    set("GROWTH_FRACTION", "0.25");
    set("RETAIN", "1TiB");
    const ArenaDefaults defaults = read();
    EXPECT_EQ(defaults.initial_capacity, 64 * kib);
    EXPECT_EQ(defaults.max_capacity, 2 * gib);
    EXPECT_EQ(defaults.max_allocation, 512 * mib);
    EXPECT_EQ(defaults.growth.step, 1536 * kib);
    EXPECT_EQ(defaults.growth.factor, 0.5);
    EXPECT_EQ(defaults.growth.fraction, 0.25);
    EXPECT_EQ(defaults.retain, 1024 * gib);
    EXPECT_EQ(messages_, "");
}

TEST_F(ArenaEnvironment, SizesMayBeZeroWhereZeroIsMeaningful) {
    for (const char* const name : {"INITIAL_CAPACITY", "MAX_CAPACITY", "GROWTH_STEP", "RETAIN"}) {
        set(name, "0");
    }
    const ArenaDefaults defaults = read();
    EXPECT_EQ(defaults.initial_capacity, 0U);
    EXPECT_EQ(defaults.max_capacity, 0U);
    EXPECT_EQ(defaults.growth.step, 0U);
    EXPECT_EQ(defaults.retain, 0U);
    EXPECT_EQ(messages_, "");
}

TEST_F(ArenaEnvironment, PresetsAreSelectedByName) {
    ArenaDefaults defaults = read_with("GROWTH", "aggressive");
    EXPECT_EQ(defaults.growth.step, 2 * gib);
    EXPECT_EQ(defaults.growth.factor, 2.0);
    EXPECT_EQ(defaults.growth.fraction, 0.75);
    set("GROWTH_STEP", "1GiB");
    defaults = read();
    EXPECT_EQ(defaults.growth.step, gib) << "a single value overrides the preset";
    EXPECT_EQ(defaults.growth.factor, 2.0);
    unsetenv("TENSORPOOL_ARENA_GROWTH_STEP");
    defaults = read_with("GROWTH", "doubling");
    EXPECT_EQ(defaults.growth.step, 2 * gib);
    EXPECT_EQ(defaults.growth.factor, 1.0) << "by the larger of 2 GiB and the present capacity";
    EXPECT_EQ(defaults.growth.fraction, 0.75);
    expect_built_in(read_with("GROWTH", "conservative"));
    EXPECT_EQ(messages_, "");
}

TEST_F(ArenaEnvironment, InvalidSizesAreReportedAndIgnored) {
    const std::string expected = "a size such as 512MiB or 2GiB";
    for (const char* const text : {"", "much", "-1", "2GB", "2 GiB", "GiB", "99999999TiB"}) {
        expect_refused("INITIAL_CAPACITY", text, expected, "8 MiB");
        expect_refused("MAX_CAPACITY", text, expected, "none");
        expect_refused("GROWTH_STEP", text, expected, "64 MiB");
        expect_refused("RETAIN", text, expected, "no limit");
    }
}

TEST_F(ArenaEnvironment, ZeroMaxAllocationIsReportedAndIgnored) {
    for (const char* const text : {"0", "0.1", "0KiB", "-1", "much"}) {
        expect_refused("MAX_ALLOCATION", text, "a size above 0 such as 512MiB or 2GiB", "8 GiB");
    }
}

TEST_F(ArenaEnvironment, InvalidNumbersAreReportedAndIgnored) {
    for (const char* const text : {"", "much", "-0.1", "1025", "nan", "inf", "0.5x"}) {
        expect_refused("GROWTH_FACTOR", text, "a number from 0 to 1024", "1.000000");
        expect_refused("GROWTH_FRACTION", text, "a number from 0 to 1", "0.750000");
    }
    expect_refused("GROWTH_FRACTION", "1.5", "a number from 0 to 1", "0.750000");
}

TEST_F(ArenaEnvironment, InvalidPresetsAreReportedAndIgnored) {
    for (const char* const text : {"", "Aggressive", "2", "conservative "}) {
        expect_refused("GROWTH", text, "conservative, doubling or aggressive", "conservative");
    }
}

TEST(ArenaOptions, DefaultToTheEnvironment) {
    const ArenaOptions options;
    const ArenaDefaults& defaults = detail::arena_defaults();
    EXPECT_EQ(options.initial_capacity, defaults.initial_capacity);
    EXPECT_EQ(options.max_capacity, defaults.max_capacity);
    EXPECT_EQ(options.max_allocation, defaults.max_allocation);
    EXPECT_EQ(options.growth.step, defaults.growth.step);
    EXPECT_EQ(options.growth.factor, defaults.growth.factor);
    EXPECT_EQ(options.growth.fraction, defaults.growth.fraction);
    EXPECT_EQ(options.retain, defaults.retain);
    EXPECT_EQ(options.alignment, 64U);
    EXPECT_EQ(options.sharing, Sharing::any_thread);
    EXPECT_FALSE(options.objects);
}

// Also run by the test below, in a process of its own.
TEST(ArenaOptions, SetTheInitialCapacityOfAnArena) {
    const char* const said = getenv("TENSORPOOL_ARENA_INITIAL_CAPACITY");
    const std::size_t expected = said != nullptr && std::string(said) == "3MiB" ? 3 * mib : 8 * mib;
    EXPECT_EQ(Arena().capacity(), expected);
    EXPECT_EQ(Arena().capacity(), expected) << "an invalid value is reported only once";
    EXPECT_EQ(Arena(ArenaOptions{.initial_capacity = mib}).capacity(), mib);
}

TEST(ArenaOptions, AreReadFromTheEnvironmentOncePerProcess) {
    const auto run_with = [](const char* value) {
        return testing::run_program("/proc/self/exe",
                                    {"--gtest_filter=ArenaOptions.SetTheInitialCapacityOfAnArena"},
                                    {{"TENSORPOOL_ARENA_INITIAL_CAPACITY", value},
                                     {"GTEST_TOTAL_SHARDS", "1"},
                                     {"GTEST_SHARD_INDEX", "0"}});
    };
    const testing::ProgramResult good = run_with("3MiB");
    EXPECT_EQ(good.exit_code, 0) << good.output;
    EXPECT_EQ(good.errors, "");
    const testing::ProgramResult senseless = run_with("3MB");
    EXPECT_EQ(senseless.exit_code, 0) << senseless.output;
    EXPECT_EQ(senseless.errors,
              "tensorpool: TENSORPOOL_ARENA_INITIAL_CAPACITY is '3MB'; expected a size such as "
              "512MiB or 2GiB; used instead: 8 MiB\n");
}

}  // namespace
}  // namespace tensorpool
