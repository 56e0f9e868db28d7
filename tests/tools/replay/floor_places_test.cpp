#include "replay/floor_places.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

TEST(FloorPlaces, WhatIsFreeIsUsedAgain) {
    FloorPlaces places;
    const std::uint64_t first = places.allocate(1000, 4);
    places.allocate(1000, 4);
    places.deallocate(first);
    EXPECT_EQ(places.allocate(500, 4), first);
    EXPECT_EQ(places.span_bytes(), 2016u);
}

TEST(FloorPlaces, NeighboursAreJoined) {
    FloorPlaces places;
    const std::uint64_t first = places.allocate(1024, 4);
    const std::uint64_t second = places.allocate(1024, 4);
    places.allocate(1024, 4);
    places.deallocate(second);
    places.deallocate(first);
    EXPECT_EQ(places.allocate(2048, 4), first);
}

TEST(FloorPlaces, TheEndGrowsByWhatIsMissing) {
    FloorPlaces places;
    places.deallocate(places.allocate(1024, 4));
    EXPECT_EQ(places.allocate(4096, 4), 0u);
    EXPECT_EQ(places.span_bytes(), 4096u);
}

TEST(FloorPlaces, WhatNoAddressSpaceHoldsIsRefused) {
    FloorPlaces places;
    EXPECT_EQ(places.allocate(1, 46), 0u);
    EXPECT_EQ(places.allocate(1, 46), std::uint64_t{1} << 46);
    EXPECT_THROW(places.allocate(1, 46), CommandError);
}

TEST(FloorPlaces, BlocksAreAlignedAndDoNotOverlap) {
    std::mt19937 random(1);
    FloorPlaces places;
    std::map<std::uint64_t, std::uint64_t> held;
    for (int i = 0; i < 20'000; ++i) {
        if (held.size() > 100 || (!held.empty() && random() % 2 == 0)) {
            const auto freed =
                std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
            places.deallocate(freed->first);
            held.erase(freed);
            continue;
        }
        const std::uint64_t bytes = 1 + random() % 5000;
        const auto alignment_log2 = static_cast<unsigned>(random() % 13);
        const std::uint64_t place = places.allocate(bytes, alignment_log2);
        EXPECT_EQ(place % (std::uint64_t{1} << alignment_log2), 0u);
        const auto next = held.lower_bound(place);
        if (next != held.end()) {
            ASSERT_LE(place + bytes, next->first);
        }
        if (next != held.begin()) {
            ASSERT_LE(std::prev(next)->first + std::prev(next)->second, place);
        }
        held[place] = bytes;
    }
}

}  // namespace
}  // namespace tensorpool::command::replay
