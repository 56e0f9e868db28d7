// The error of a pool: where free memory lies, what fragmentation costs, and which limit would do.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"

namespace tensorpool {
namespace {

using testing::fill;
using testing::free_all;
using testing::sizes;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::optional<AllocationError> failure_of(MemoryPool& pool, std::size_t bytes,
                                          std::size_t alignment = 64) {
    try {
        pool.deallocate(pool.allocate(bytes, alignment));
        return std::nullopt;
    } catch (const AllocationError& error) {
        return error;
    }
}

bool contains(const AllocationError& error, const std::string& part) {
    return std::string(error.what()).find(part) != std::string::npos;
}

/// The exact number of bytes after `words` in the text.
std::size_t number_after(const AllocationError& error, const std::string& words) {
    const std::string text = error.what();
    const std::size_t at = text.find(words);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + words.size()));
}

class PoolFailure : public ::testing::TestWithParam<Checks> {
protected:
    MemoryPool pool_{PoolOptions{.name = "mine", .max_capacity = 8 * mib, .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolFailure, testing::check_levels(), testing::name_of_level);

TEST_P(PoolFailure, ReportsALimitWithoutFragmentation) {
    void* const block = pool_.allocate(mib);
    const auto error = failure_of(pool_, 8 * mib);
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(),
                 "tensorpool: mine: allocate: 8388608 B (8 MiB) "
                 "requested with 1 MiB in use and 1 MiB "
                 "committed; limit met: max_capacity (8 MiB)\n"
                 "  free: nothing, so fragmentation costs nothing\n"
                 "  it would fit if max_capacity were at least 9437184 B (9 MiB), or after "
                 "1048576 B (1 MiB) in use were freed in whole pages");
    EXPECT_EQ(error->capacity(), mib);
    EXPECT_EQ(error->missing(), mib);
    EXPECT_FALSE(error->is_fragmentation());
    pool_.deallocate(block);
}

TEST_P(PoolFailure, ReportsFragmentationAsTheOnlyCause) {
    std::vector<void*> blocks = fill(pool_, kib);
    std::vector<void*> kept;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % 2 == 0) {
            pool_.deallocate(blocks[i]);
        } else {
            kept.push_back(blocks[i]);
        }
    }
    const auto error = failure_of(pool_, 2 * mib);
    ASSERT_TRUE(error) << "half of each page is in use";
    EXPECT_TRUE(error->is_fragmentation()) << error->what();
    EXPECT_EQ(error->in_use(), kept.size() * kib);
    EXPECT_EQ(error->free_in_pieces(), error->capacity() - error->in_use()) << error->what();
    EXPECT_EQ(error->largest_free(), 0U) << "whole pages were given back";
    EXPECT_TRUE(contains(*error,
                         "\n  fragmentation is the only cause: enough is free, but in "
                         "pieces\n"))
        << error->what();
    free_all(pool_, kept, kib);
    EXPECT_FALSE(failure_of(pool_, 2 * mib)) << "free memory is contiguous again";
}

TEST_P(PoolFailure, ReportsMissingBytesBesidesFragmentation) {
    std::vector<void*> blocks = fill(pool_, kib);
    std::vector<void*> kept;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % 8 == 0) {
            pool_.deallocate(blocks[i]);
        } else {
            kept.push_back(blocks[i]);
        }
    }
    const auto error = failure_of(pool_, 4 * mib);
    ASSERT_TRUE(error);
    EXPECT_FALSE(error->is_fragmentation()) << error->what();
    EXPECT_GE(error->free_in_pieces(), 800 * kib);
    EXPECT_TRUE(contains(*error, "\n  fragmentation costs ")) << error->what();
    EXPECT_TRUE(contains(*error, " would still be missing\n")) << error->what();
    free_all(pool_, kept, kib);
}

// Free whole pages are given back and committed elsewhere, so they never block a request.
TEST_P(PoolFailure, FreeWholePagesNeverBlockARequest) {
    std::vector<void*> blocks = fill(pool_, 128 * kib);
    for (std::size_t i = 0; i < blocks.size(); i += 2) pool_.deallocate(blocks[i]);
    EXPECT_FALSE(failure_of(pool_, 3 * mib));
    for (std::size_t i = 1; i < blocks.size(); i += 2) pool_.deallocate(blocks[i]);
}

// Exact to the page: with one byte less, the same request is refused again.
TEST_P(PoolFailure, NeededLimitIsMinimal) {
    for (const std::size_t held : sizes) {
        for (const std::size_t requested : {std::size_t{6} * mib, 5 * mib + 1, 8 * mib}) {
            pool_.set_max_capacity(5 * mib);
            std::vector<void*> blocks;
            for (std::size_t bytes = 0; bytes < 3 * mib; bytes += held) {
                blocks.push_back(pool_.allocate(held));
            }
            const auto error = failure_of(pool_, requested);
            ASSERT_TRUE(error);
            const std::size_t needed = number_after(*error, "if max_capacity were at least ");
            ASSERT_NE(needed, 0U) << error->what();
            pool_.set_max_capacity(needed - 1);
            EXPECT_TRUE(failure_of(pool_, requested)) << held << ' ' << error->what();
            pool_.set_max_capacity(needed);
            EXPECT_FALSE(failure_of(pool_, requested)) << held << ' ' << error->what();
            free_all(pool_, blocks, held);
        }
    }
}

TEST_P(PoolFailure, FitsAfterTheReportedBytesAreFreed) {
    std::vector<void*> blocks;
    for (int i = 0; i < 7; ++i) blocks.push_back(pool_.allocate(mib));
    const auto error = failure_of(pool_, 4 * mib);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->missing(), 3 * mib) << error->what();
    for (int i = 0; i < 2; ++i) {
        pool_.deallocate(blocks.back());
        blocks.pop_back();
        EXPECT_TRUE(failure_of(pool_, 4 * mib)) << i;
    }
    pool_.deallocate(blocks.back());
    blocks.pop_back();
    EXPECT_FALSE(failure_of(pool_, 4 * mib));
    free_all(pool_, blocks, mib);
}

TEST_P(PoolFailure, LimitBelowTheBytesInUseIsReportedInFull) {
    void* const block = pool_.allocate(6 * mib);
    pool_.set_max_capacity(2 * mib);
    const auto error = failure_of(pool_, mib);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->missing(), 5 * mib) << error->what();
    EXPECT_TRUE(contains(*error, "if max_capacity were at least 7340032 B (7 MiB)"))
        << error->what();
    pool_.deallocate(block);
    EXPECT_FALSE(failure_of(pool_, mib));
}

TEST_P(PoolFailure, LargeRequestReportsTheNeededMaxAllocation) {
    MemoryPool pool(PoolOptions{.name = "mine", .max_allocation = mib, .checks = GetParam()});
    const auto error = failure_of(pool, 3 * mib);
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(),
                 "tensorpool: mine: allocate: 3145728 B (3 MiB) requested with 0 B in use and 0 B "
                 "committed; limit met: max_allocation (1 MiB)\n"
                 "  it would fit if max_allocation were at least 3145728 B (3 MiB)");
    EXPECT_FALSE(contains(*failure_of(pool, SIZE_MAX), "it would fit")) << "in no pool";
}

TEST_P(PoolFailure, AlignmentReportsTheLargestSupported) {
    MemoryPool pool(PoolOptions{.name = "mine", .checks = GetParam()});
    const auto error = failure_of(pool, 100, std::size_t{1} << 46);
    ASSERT_TRUE(error);
    EXPECT_TRUE(contains(*error, "limit met: ")) << error->what();
    EXPECT_FALSE(contains(*error, "were at least")) << error->what();
    EXPECT_TRUE(contains(*error, "\n  no pool supports a larger block")) << error->what();
}

TEST_P(PoolFailure, ChangesNothing) {
    void* const block = pool_.allocate(2 * mib);
    const PoolStatistics before = pool_.statistics();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(failure_of(pool_, 8 * mib));
    const PoolStatistics after = pool_.statistics();
    EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
    EXPECT_EQ(after.failures, before.failures + 3);
    EXPECT_LE(after.capacity_bytes, before.capacity_bytes);
    pool_.deallocate(block);
}

TEST_P(PoolFailure, ReserveReportsTheNeededLimit) {
    try {
        pool_.reserve(9 * mib);
        FAIL() << "9 MiB under a limit of 8 MiB";
    } catch (const AllocationError& error) {
        EXPECT_TRUE(contains(error, "if max_capacity were at least 9437184 B (9 MiB)"))
            << error.what();
        EXPECT_FALSE(contains(error, "freed")) << "freeing blocks does not lower the capacity";
    }
}

}  // namespace
}  // namespace tensorpool
