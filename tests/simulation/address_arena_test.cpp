#include "simulation/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace tensorpool::device {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::uintptr_t number(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

TEST(AddressArena, MemoryIsWritable) {
    AddressArena arena(8 * mib, [](std::uintptr_t, std::size_t) {});
    void* const memory = arena.take(100);
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 1, 100);
    EXPECT_TRUE(arena.contains(number(memory)));
    EXPECT_EQ(number(arena.take(2 * mib)) % (2 * mib), 0U);
    EXPECT_EQ(arena.take(9 * mib), nullptr);
}

TEST(AddressArena, FreedAddressesRest) {
    AddressArena arena(8 * mib, [](std::uintptr_t, std::size_t) {});
    void* const first = arena.take(mib);
    arena.give(first, mib);
    EXPECT_NE(arena.take(mib), first);
}

TEST(AddressArena, ReusesRestingAddressesIfNoOthersAreLeft) {
    std::vector<std::uintptr_t> forgotten;
    AddressArena arena(4 * mib, [&](std::uintptr_t at, std::size_t) { forgotten.push_back(at); });
    void* const halves[] = {arena.take(2 * mib), arena.take(2 * mib)};
    EXPECT_EQ(arena.take(1), nullptr);
    for (void* const half : halves) arena.give(half, 2 * mib);
    EXPECT_TRUE(forgotten.empty());
    EXPECT_NE(arena.take(4 * mib), nullptr);  // both halves, merged
    EXPECT_EQ(forgotten, (std::vector<std::uintptr_t>{number(halves[0]), number(halves[1])}));
}

TEST(AddressArena, RangesInUseDoNotOverlap) {
    AddressArena arena(4 * mib, [](std::uintptr_t, std::size_t) {});
    std::set<void*> held;
    for (int round = 0; round < 5'000; ++round) {
        if (round % 3 == 2) {
            arena.give(*held.begin(), 4096);
            held.erase(held.begin());
            continue;
        }
        void* const memory = arena.take(4096);
        if (memory == nullptr) break;
        EXPECT_TRUE(held.insert(memory).second);
    }
    EXPECT_EQ(held.size(), 4 * mib / 4096);
}

}  // namespace
}  // namespace tensorpool::device
