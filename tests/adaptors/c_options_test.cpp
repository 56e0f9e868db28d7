#include <tensorpool/tensorpool.h>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>

namespace {

using tensorpool::PoolOptions;

struct Destroyer {
    void operator()(tensorpool_pool* pool) const { tensorpool_destroy(pool); }
};
using OwnedPool = std::unique_ptr<tensorpool_pool, Destroyer>;

tensorpool_options defaults() {
    tensorpool_options options;
    EXPECT_EQ(tensorpool_options_init(&options, sizeof options), tensorpool_ok);
    return options;
}

/// Returns the error of `tensorpool_create`; "" if it succeeds.
std::string error_of(const tensorpool_options& options) {
    const OwnedPool pool(tensorpool_create(&options));
    return pool == nullptr ? tensorpool_last_error() : "";
}

TEST(COptions, DefaultsAreThoseOfPoolOptions) {
    const tensorpool_options options = defaults();
    const PoolOptions expected;
    EXPECT_EQ(options.struct_bytes, sizeof options);
    EXPECT_EQ(options.name, expected.name);
    EXPECT_EQ(options.initial_capacity, expected.initial_capacity);
    EXPECT_EQ(options.max_capacity, expected.max_capacity);
    EXPECT_EQ(options.max_allocation, expected.max_allocation);
    EXPECT_EQ(options.growth_step, expected.growth.step);
    EXPECT_EQ(options.growth_factor, expected.growth.factor);
    EXPECT_EQ(options.growth_fraction, expected.growth.fraction);
    EXPECT_EQ(options.retain_bytes, expected.retain.bytes);
    EXPECT_EQ(options.retain_milliseconds, expected.retain.milliseconds);
    EXPECT_EQ(options.retain_background, tensorpool_background_trim_off);
    EXPECT_EQ(options.huge_pages, tensorpool_huge_pages_buckets);
    EXPECT_EQ(options.numa, tensorpool_numa_system);
    EXPECT_EQ(options.numa_node, 0U);
    EXPECT_EQ(options.checks, static_cast<int>(tensorpool::default_checks()));
    EXPECT_EQ(options.on_event, nullptr);
    EXPECT_EQ(options.on_event_user, nullptr);
}

TEST(COptions, AreAppliedToThePool) {
    tensorpool_options options = defaults();
    options.name = "small";
    options.max_capacity = std::size_t{64} << 20;
    options.max_allocation = 1 << 20;
    const OwnedPool pool(tensorpool_create(&options));
    ASSERT_NE(pool, nullptr) << tensorpool_last_error();
    tensorpool_statistics statistics;
    statistics.struct_bytes = sizeof statistics;
    ASSERT_EQ(tensorpool_read_statistics(pool.get(), &statistics), tensorpool_ok);
    EXPECT_EQ(statistics.limit_bytes, std::size_t{64} << 20);
    EXPECT_EQ(tensorpool_allocate(pool.get(), 2 << 20), nullptr);
    EXPECT_NE(std::string(tensorpool_last_error()).find("small"), std::string::npos);
}

TEST(COptions, EventsReachTheCallback) {
    struct Reported {
        int failures = 0;
        std::string pool;
        std::size_t bytes = 0;
    } reported;
    tensorpool_options options = defaults();
    options.name = "talker";
    options.max_allocation = 1 << 20;
    options.on_event_user = &reported;
    options.on_event = [](const tensorpool_event* event, void* user) {
        if (event->kind != tensorpool_event_failure) return;
        auto& to = *static_cast<Reported*>(user);
        ++to.failures;
        to.pool = event->pool;
        to.bytes = event->bytes;
    };
    const OwnedPool pool(tensorpool_create(&options));
    ASSERT_NE(pool, nullptr) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_allocate(pool.get(), 2 << 20), nullptr);
    EXPECT_EQ(reported.failures, 1);
    EXPECT_EQ(reported.pool, "talker");
    EXPECT_EQ(reported.bytes, std::size_t{2} << 20);
}

TEST(COptions, InvalidEnumeratorIsRejectedByName) {
    tensorpool_options options = defaults();
    options.checks = 7;
    EXPECT_EQ(error_of(options), "tensorpool: create: checks is 7, expected 0 to 4");
    options = defaults();
    options.huge_pages = -1;
    EXPECT_EQ(error_of(options), "tensorpool: create: huge_pages is -1, expected 0 to 3");
    options = defaults();
    options.numa = 3;
    EXPECT_EQ(error_of(options), "tensorpool: create: numa is 3, expected 0 to 2");
    options = defaults();
    options.retain_background = 3;
    EXPECT_EQ(error_of(options), "tensorpool: create: retain_background is 3, expected 0 to 2");
    options = defaults();
    options.name = nullptr;
    EXPECT_EQ(error_of(options), "tensorpool: create: name is NULL, expected a text");
}

TEST(COptions, InvalidSizeIsRejected) {
    tensorpool_options options = defaults();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{16}, std::size_t{1} << 40}) {
        options.struct_bytes = bytes;
        EXPECT_NE(error_of(options).find("expected sizeof(tensorpool_options)"), std::string::npos);
        EXPECT_EQ(tensorpool_options_init(&options, bytes), tensorpool_invalid_argument);
    }
    EXPECT_EQ(tensorpool_options_init(nullptr, sizeof options), tensorpool_invalid_argument);
}

/// The struct of a newer caller, with an added field.
struct LaterOptions {
    tensorpool_options known;
    std::size_t added;
};

TEST(COptions, NewerCallerIsAcceptedUnlessItSetsUnknownFields) {
    LaterOptions options;
    std::memset(&options, 0xff, sizeof options);
    ASSERT_EQ(tensorpool_options_init(&options.known, sizeof options), tensorpool_ok);
    EXPECT_EQ(options.known.struct_bytes, sizeof options);
    EXPECT_EQ(options.added, 0U);
    EXPECT_EQ(error_of(options.known), "");
    options.added = 1;
    EXPECT_NE(error_of(options.known).find("does not know"), std::string::npos);
}

}  // namespace
