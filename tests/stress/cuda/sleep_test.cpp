// An allocator that gives its memory back and takes it again at the same addresses.

#include <vector>

#include "stress/cuda/content.hpp"

namespace tensorpool::stress::cuda {
namespace {

class SleepOnCard : public AllocatorOnCard {};

TEST_P(SleepOnCard, MemoryComesBackAtTheSameAddressesWithItsContent) {
    if (!backend().abilities(card).virtual_memory) GTEST_SKIP() << "no virtual memory";
    Content content(backend());
    const std::size_t bytes = quick_or_long(4 * mib, 100 * mib);
    for (const SleepContent kept : {SleepContent::kept, SleepContent::dropped}) {
        std::vector<void*> blocks;
        for (std::uint8_t i = 0; i != 8; ++i) {
            blocks.push_back(allocator().allocate(bytes));
            content.fill(blocks.back(), bytes, i, nullptr);
        }
        const std::size_t free_awake = memory_info().free_bytes;
        EXPECT_GE(allocator().sleep(kept), 8 * bytes);
        // Other processes of the machine may have taken some meanwhile.
        EXPECT_GE(memory_info().free_bytes + 16 * mib, free_awake + 8 * bytes);
        EXPECT_EQ(allocator().try_allocate(bytes), nullptr);
        allocator().wake();
        for (std::uint8_t i = 0; i != 8; ++i) {
            if (kept == SleepContent::dropped) content.fill(blocks[i], bytes, i, nullptr);
            content.expect(blocks[i], mib, i, nullptr);
            content.expect(static_cast<char*>(blocks[i]) + bytes - mib, mib, i, nullptr);
        }
        content.compare();
        for (void* const block : blocks) allocator().deallocate(block);
    }
}

INSTANTIATE_TEST_SUITE_P(Slabs, SleepOnCard, ::testing::Values(Slabs::expandable),
                         [](const auto&) { return "expandable"; });

}  // namespace
}  // namespace tensorpool::stress::cuda
