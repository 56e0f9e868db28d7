// A card whose memory is full.

#include <vector>

#include "stress/cuda/content.hpp"

namespace tensorpool::stress::cuda {
namespace {

/// Submits checks of the first and the last part of a block.
void expect_ends(Content& content, const void* block, std::size_t bytes, std::uint8_t byte) {
    content.expect(block, mib, byte, nullptr);
    content.expect(static_cast<const unsigned char*>(block) + bytes - mib, mib, byte, nullptr);
}

TEST_P(AllocatorOnCard, GoesOnAfterItsMemoryWasFull) {
    Content content(backend());
    const std::size_t free_before = memory_info().free_bytes;
    // The memory of the fake driver is the host's, so the short form has a limit instead.
    CachingOptions limited = options();
    limited.hard_limit = quick_or_long(0.125, 0.0);
    replace_allocator(limited);
    const std::size_t bytes = quick_or_long(8 * mib, free_before / 24 / mib * mib);

    std::vector<void*> blocks;
    while (void* const block = allocator().try_allocate(bytes)) {
        content.fill(block, bytes, static_cast<std::uint8_t>(blocks.size()), nullptr);
        blocks.push_back(block);
    }
    ASSERT_GE(blocks.size(), 12U);
    EXPECT_THROW((void)allocator().allocate(bytes), DeviceAllocationError);
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
        allocator().deallocate(blocks[i]);
        blocks[i] = allocator().allocate(bytes);
        content.fill(blocks[i], bytes, static_cast<std::uint8_t>(i), nullptr);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        expect_ends(content, blocks[i], bytes, static_cast<std::uint8_t>(i));
        allocator().deallocate(blocks[i]);
    }
    const std::size_t half = blocks.size() / 2 * bytes;
    void* const large = allocator().allocate(half);
    content.fill(large, half, 77, nullptr);
    expect_ends(content, large, half, 77);
    content.compare();

    replace_allocator(std::nullopt);
    // Other processes of the machine may have taken some meanwhile.
    EXPECT_GE(memory_info().free_bytes + 256 * mib, free_before);
}

}  // namespace
}  // namespace tensorpool::stress::cuda
