#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t tib = mib * mib;

// Reserve ----------------------------------------------------------------------------------------

// ctest runs each test in a process of its own: nothing has set up the address space before.
TEST(PoolReserve, BeyondTheAddressSpaceIsRefusedNotCutOff) {
    MemoryPool pool;
    for (const std::size_t bytes : {16 * tib + 4096, 2 * tib, SIZE_MAX}) {
        EXPECT_THROW(pool.reserve(bytes), AllocationError) << bytes;
    }
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

}  // namespace
}  // namespace tensorpool
