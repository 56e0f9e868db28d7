#include "replay/plan.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace tensorpool::command::replay {
namespace {

constexpr std::uint64_t page = touched_page_bytes;

/// Returns how many pages of a fresh mapping are resident after a touch of `bytes` at `offset`.
long pages_touched(std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::size_t mapped_bytes = 16 * page;
    void* const mapped =
        mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    touch_pages(static_cast<std::byte*>(mapped) + offset, bytes);
    std::vector<unsigned char> resident(16);
    mincore(mapped, mapped_bytes, resident.data());
    munmap(mapped, mapped_bytes);
    return std::ranges::count_if(resident, [](unsigned char flags) { return (flags & 1) != 0; });
}

TEST(Touch, FirstTouchesEachPageOfTheBlock) {
    EXPECT_EQ(pages_touched(0, 1), 1);
    EXPECT_EQ(pages_touched(0, page), 1);
    EXPECT_EQ(pages_touched(0, page + 1), 2);
    EXPECT_EQ(pages_touched(page - 1, 1), 1);
    EXPECT_EQ(pages_touched(page - 1, 2), 2);
    EXPECT_EQ(pages_touched(100, 5 * page), 6);
}

TEST(Touch, FirstWritesOnlyWithinTheBlock) {
    std::vector<std::byte> memory(3 * page);
    touch_pages(memory.data() + 10, page + 100);
    EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + 10,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_TRUE(std::all_of(memory.begin() + 10 + page + 100, memory.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(Touch, CheckDetectsAnyChangedByte) {
    for (const std::uint64_t bytes : {1u, 7u, 8u, 9u, 100u, 4099u}) {
        std::vector<std::byte> memory(bytes);
        fill(memory.data(), bytes, 7);
        EXPECT_TRUE(is_filled(memory.data(), bytes, 7));
        for (std::uint64_t i = 0; i < bytes; ++i) {
            memory[i] ^= std::byte{1};
            EXPECT_FALSE(is_filled(memory.data(), bytes, 7)) << i << " of " << bytes;
            memory[i] ^= std::byte{1};
        }
    }
}

TEST(Touch, EachSlotHasItsOwnPattern) {
    std::vector<std::byte> memory(64);
    fill(memory.data(), 64, 3);
    EXPECT_FALSE(is_filled(memory.data(), 64, 4));
    EXPECT_TRUE(is_filled(memory.data(), 20, 3)) << "a prefix too, as after a resize";
}

}  // namespace
}  // namespace tensorpool::command::replay
