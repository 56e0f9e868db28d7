#include <gtest/gtest.h>

#include "pages/heap/test_heap.hpp"
#include "support/address_space_limit_linux.hpp"
#include "support/child_process.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::pages {
namespace {

using testing::TestHeap;

// The addresses of the cold memory and those that are left are each too few for the request.
TEST(PageHeapLendingUnderRlimitAs, AddressesOfColdMemoryServeALargerRequest) {
    EXPECT_TRUE(testing::holds_in_child([] {
        TestHeap heap;
        constexpr PageCount mib = 256;
        const auto reserved = [&] { return heap.totals.reserved_bytes.load() / page_bytes; };
        if (!testing::leave_address_space(std::size_t{500} << 20)) return false;
        if (heap.allocate(1) == nullptr || reserved() < 20 * mib) return false;
        return heap.allocate(480 * mib) != nullptr && reserved() < 490 * mib;
    }));
}

// The same for `reserve`, if another shard has the cold memory.
TEST(PageHeapLendingUnderRlimitAs, AddressesOfAnotherShardServeAReserve) {
    EXPECT_TRUE(testing::holds_in_child([] {
        const testing::ForcedShards forced(4);
        testing::ForcedShards::keep_to(0);
        TestHeap heap;
        constexpr PageCount mib = 256;
        if (!testing::leave_address_space(std::size_t{100} << 20)) return false;
        if (heap.allocate(1) == nullptr) return false;
        testing::ForcedShards::keep_to(1);
        return heap.reserve(95 * mib);
    }));
}

}  // namespace
}  // namespace tensorpool::pages
