#include <tensorpool/tensorpool.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>

namespace {

struct Destroyer {
    void operator()(tensorpool_pool* pool) const { tensorpool_destroy(pool); }
};
using OwnedPool = std::unique_ptr<tensorpool_pool, Destroyer>;

/// A pool of at most 64 MiB that refuses requests above 1 MiB.
OwnedPool small_pool() {
    tensorpool_options options;
    EXPECT_EQ(tensorpool_options_init(&options, sizeof options), tensorpool_ok);
    options.name = "small";
    options.max_capacity = std::size_t{64} << 20;
    options.max_allocation = 1 << 20;
    return OwnedPool(tensorpool_create(&options));
}

tensorpool_statistics read(const OwnedPool& pool) {
    tensorpool_statistics statistics;
    statistics.struct_bytes = sizeof statistics;
    EXPECT_EQ(tensorpool_read_statistics(pool.get(), &statistics), tensorpool_ok);
    return statistics;
}

bool is_aligned(const void* p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

bool last_error_has(const char* text) {
    return std::string(tensorpool_last_error()).find(text) != std::string::npos;
}

TEST(CApi, VersionIsThreeNumbers) {
    int major = -1;
    int minor = -1;
    int patch = -1;
    EXPECT_EQ(std::sscanf(tensorpool_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

TEST(CApi, GlobalPoolIsThatOfTheCppInterface) {
    auto* const global = reinterpret_cast<tensorpool_pool*>(&tensorpool::get_global_memory_pool());
    EXPECT_EQ(tensorpool_global(), global);
}

TEST(CApi, GlobalPoolCannotBeDestroyed) {
    EXPECT_EQ(tensorpool_destroy(tensorpool_global()), tensorpool_invalid_argument);
    EXPECT_TRUE(last_error_has("global"));
    void* const block = tensorpool_allocate(tensorpool_global(), 100);
    EXPECT_NE(block, nullptr);
    tensorpool_deallocate(tensorpool_global(), block);
}

TEST(CApi, PoolWithoutOptionsHasTheDefaults) {
    const OwnedPool pool(tensorpool_create(nullptr));
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(read(pool).limit_bytes, 0U);
}

TEST(CApi, EveryKindOfBlockCanBeFreed) {
    const OwnedPool pool = small_pool();
    void* const plain = tensorpool_allocate(pool.get(), 100);
    void* const sized = tensorpool_allocate(pool.get(), 1000);
    void* const aligned = tensorpool_allocate_aligned(pool.get(), 1000, 4096);
    auto* const zeroed = static_cast<char*>(tensorpool_allocate_zeroed(pool.get(), 10, 100));
    EXPECT_TRUE(is_aligned(plain, 64));
    EXPECT_TRUE(is_aligned(aligned, 4096));
    EXPECT_EQ(std::string(zeroed, 1000), std::string(1000, '\0'));
    EXPECT_EQ(tensorpool_owns(pool.get(), zeroed + 999), 1);
    EXPECT_GE(tensorpool_usable_size(pool.get(), sized), 1000U);
    tensorpool_deallocate(pool.get(), plain);
    tensorpool_deallocate_sized(pool.get(), sized, 1000);
    tensorpool_deallocate_aligned(pool.get(), aligned, 1000, 4096);
    tensorpool_deallocate(pool.get(), zeroed);
    EXPECT_EQ(read(pool).in_use_bytes, 0U);
    EXPECT_EQ(read(pool).allocations, 4U);
    EXPECT_EQ(read(pool).deallocations, 4U);
}

TEST(CApi, ReallocateKeepsTheContent) {
    const OwnedPool pool = small_pool();
    auto* block = static_cast<char*>(tensorpool_reallocate(pool.get(), nullptr, 0, 100));
    ASSERT_NE(block, nullptr);
    std::memset(block, 'x', 100);
    block = static_cast<char*>(tensorpool_reallocate(pool.get(), block, 100, 100'000));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(std::string(block, 100), std::string(100, 'x'));
    EXPECT_EQ(tensorpool_reallocate(pool.get(), block, 100'000, 2 << 20), nullptr);
    EXPECT_EQ(std::string(block, 100), std::string(100, 'x'));
    EXPECT_EQ(tensorpool_reallocate(pool.get(), block, 100'000, 0), nullptr);
    EXPECT_EQ(read(pool).in_use_bytes, 0U);
}

TEST(CApi, ZeroBytesAndNullAreNoFailure) {
    const OwnedPool pool = small_pool();
    EXPECT_EQ(tensorpool_allocate(pool.get(), 0), nullptr);
    tensorpool_deallocate(pool.get(), nullptr);
    tensorpool_deallocate_sized(pool.get(), nullptr, 8);
    tensorpool_deallocate_aligned(pool.get(), nullptr, 8, 128);
    EXPECT_EQ(tensorpool_destroy(nullptr), tensorpool_ok);
    EXPECT_EQ(read(pool).allocations, 0U);
}

TEST(CApi, RefusedRequestNamesTheLimit) {
    const OwnedPool pool = small_pool();
    EXPECT_EQ(tensorpool_allocate(pool.get(), 2 << 20), nullptr);
    EXPECT_TRUE(last_error_has("small")) << tensorpool_last_error();
    EXPECT_TRUE(last_error_has("max_allocation")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_allocate_zeroed(pool.get(), SIZE_MAX / 2, 3), nullptr);
}

TEST(CApi, AlignmentThatIsNotAPowerOfTwoFails) {
    const OwnedPool pool = small_pool();
    EXPECT_EQ(tensorpool_allocate_aligned(pool.get(), 100, 48), nullptr);
    EXPECT_TRUE(last_error_has("power of two")) << tensorpool_last_error();
}

TEST(CApi, NullPoolFailsInEveryFunction) {
    char buffer[8];
    int word = 0;
    tensorpool_statistics statistics;
    statistics.struct_bytes = sizeof statistics;
    EXPECT_EQ(tensorpool_allocate(nullptr, 8), nullptr);
    EXPECT_STREQ(tensorpool_last_error(),
                 "tensorpool: allocate: pool is NULL, expected one from tensorpool_create or "
                 "tensorpool_global");
    EXPECT_EQ(tensorpool_allocate_aligned(nullptr, 8, 8), nullptr);
    EXPECT_EQ(tensorpool_allocate_zeroed(nullptr, 8, 8), nullptr);
    EXPECT_EQ(tensorpool_reallocate(nullptr, nullptr, 0, 8), nullptr);
    tensorpool_deallocate(nullptr, &word);
    EXPECT_TRUE(last_error_has("deallocate: pool is NULL"));
    tensorpool_deallocate_sized(nullptr, &word, 8);
    EXPECT_TRUE(last_error_has("deallocate_sized: pool is NULL"));
    tensorpool_deallocate_aligned(nullptr, &word, 8, 8);
    EXPECT_TRUE(last_error_has("deallocate_aligned: pool is NULL"));
    EXPECT_EQ(tensorpool_reserve(nullptr, 8), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_trim(nullptr), 0U);
    EXPECT_EQ(tensorpool_owns(nullptr, &word), 0);
    EXPECT_EQ(tensorpool_usable_size(nullptr, &word), 0U);
    EXPECT_EQ(tensorpool_read_statistics(nullptr, &statistics), tensorpool_invalid_argument);
    EXPECT_LT(tensorpool_report_json(nullptr, buffer, sizeof buffer), 0);
    EXPECT_LT(tensorpool_report_text(nullptr, buffer, sizeof buffer), 0);
}

TEST(CApi, ReserveAndTrimChangeTheCapacity) {
    const OwnedPool pool = small_pool();
    EXPECT_EQ(tensorpool_reserve(pool.get(), std::size_t{8} << 20), tensorpool_ok);
    EXPECT_GE(read(pool).capacity_bytes, std::size_t{8} << 20);
    EXPECT_EQ(tensorpool_reserve(pool.get(), std::size_t{128} << 20), tensorpool_out_of_memory);
    EXPECT_TRUE(last_error_has("max_capacity")) << tensorpool_last_error();
    EXPECT_GE(tensorpool_trim(pool.get()), std::size_t{8} << 20);
    EXPECT_LT(read(pool).capacity_bytes, std::size_t{8} << 20);
}

TEST(CApi, InitialCapacityBeyondTheLimitFails) {
    tensorpool_options options;
    ASSERT_EQ(tensorpool_options_init(&options, sizeof options), tensorpool_ok);
    options.initial_capacity = 2 << 20;
    options.max_capacity = 1 << 20;
    EXPECT_EQ(tensorpool_create(&options), nullptr);
    EXPECT_STRNE(tensorpool_last_error(), "");
}

TEST(CApi, StatisticsAcceptNewerCallersAndRejectInvalidSizes) {
    struct {
        tensorpool_statistics known;
        std::uint64_t added;
    } later;
    const OwnedPool pool = small_pool();
    std::memset(&later, 0xff, sizeof later);
    later.known.struct_bytes = sizeof later;
    EXPECT_EQ(tensorpool_read_statistics(pool.get(), &later.known), tensorpool_ok);
    EXPECT_EQ(later.known.struct_bytes, sizeof later);
    EXPECT_EQ(later.known.in_use_bytes, 0U);
    EXPECT_EQ(later.added, 0U);
    later.known.struct_bytes = 8;
    EXPECT_EQ(tensorpool_read_statistics(pool.get(), &later.known), tensorpool_invalid_argument);
    EXPECT_TRUE(last_error_has("struct_bytes is 8 B")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_read_statistics(pool.get(), nullptr), tensorpool_invalid_argument);
}

using Report = int (*)(const tensorpool_pool*, char*, std::size_t);

class CReports : public testing::TestWithParam<Report> {};

TEST_P(CReports, FollowTheRulesOfSnprintf) {
    const Report report = GetParam();
    const OwnedPool pool = small_pool();
    const int length = report(pool.get(), nullptr, 0);
    ASSERT_GT(length, 10);
    std::vector<char> whole(static_cast<std::size_t>(length) + 1, 'x');
    EXPECT_EQ(report(pool.get(), whole.data(), whole.size()), length);
    EXPECT_EQ(std::strlen(whole.data()), static_cast<std::size_t>(length));
    EXPECT_NE(std::string(whole.data()).find("small"), std::string::npos);

    std::vector<char> cut(10, 'x');
    EXPECT_EQ(report(pool.get(), cut.data(), cut.size()), length);
    EXPECT_EQ(std::string(cut.data()), std::string(whole.data(), 9));
}

INSTANTIATE_TEST_SUITE_P(Each, CReports,
                         testing::Values(&tensorpool_report_json, &tensorpool_report_text),
                         [](const auto& each) { return each.index == 0 ? "Json" : "Text"; });

TEST(CFaults, AreDescribedForProtectedMemoryOnly) {
    char text[1024] = "";
    int mine = 0;
    EXPECT_EQ(tensorpool_describe_fault(&mine, text, sizeof text), 0U);
    tensorpool_options options;
    ASSERT_EQ(tensorpool_options_init(&options, sizeof options), tensorpool_ok);
    options.checks = tensorpool_checks_sampled;
    options.guard_share = 1;
    tensorpool_pool* const pool = tensorpool_create(&options);
    char* const block = static_cast<char*>(tensorpool_allocate(pool, 64));
    const std::size_t length = tensorpool_describe_fault(block + 64, text, sizeof text);
    EXPECT_EQ(length, std::strlen(text));
    // Nothing is guarded where the addresses are not available.
    if (length != 0) EXPECT_EQ(std::string(text).find("tensorpool: fatal: access-beyond "), 0U);
    EXPECT_EQ(tensorpool_describe_fault(block + 64, text, 0), 0U);
    EXPECT_EQ(tensorpool_destroy(pool), tensorpool_ok);
}

}  // namespace
