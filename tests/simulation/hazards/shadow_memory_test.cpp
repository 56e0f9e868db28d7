#include "simulation/hazards/watch.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tensorpool::device {
namespace {

Operation operation(std::uint64_t number, std::uint32_t timeline = 0) {
    return {number, number, timeline, 0, {}};
}

class ShadowMemoryTest : public ::testing::Test {
protected:
    void write(std::uintptr_t begin, std::size_t bytes, std::uint64_t number) {
        shadow.visit(begin, bytes, host,
                     [&](std::uintptr_t, Cell& cell) { cell.writer = operation(number); });
    }
    std::vector<std::uint64_t> writers(std::uintptr_t begin, std::size_t bytes) {
        std::vector<std::uint64_t> found;
        shadow.visit(begin, bytes, host, [&](std::uintptr_t, const Cell& cell) {
            found.push_back(cell.writer.number);
        });
        return found;
    }

    ShadowMemory shadow;
    VectorClock host;
};

TEST_F(ShadowMemoryTest, VisitsExactlyTheRange) {
    write(100, 100, 1);
    write(150, 10, 2);
    EXPECT_EQ(writers(100, 100), (std::vector<std::uint64_t>{1, 2, 1}));
    EXPECT_EQ(writers(90, 20), (std::vector<std::uint64_t>{0, 1}));
    EXPECT_EQ(shadow.find(159)->writer.number, 2U);
    EXPECT_EQ(shadow.find(160)->writer.number, 1U);
    EXPECT_EQ(shadow.find(200), nullptr);
    EXPECT_EQ(shadow.find(99), nullptr);
}

TEST_F(ShadowMemoryTest, MergesEqualNeighbours) {
    for (std::uintptr_t at = 0; at < 100; at += 10) write(1000 + at, 10, 1);
    EXPECT_EQ(shadow.cells(), 1U);
    write(1040, 10, 2);
    EXPECT_EQ(shadow.cells(), 3U);
    write(1040, 10, 1);
    EXPECT_EQ(shadow.cells(), 1U);
}

TEST_F(ShadowMemoryTest, ForgetsAccessesThatTheHostWaitedFor) {
    write(100, 100, 1);
    write(150, 10, 2);
    host.raise(0, 1);
    EXPECT_EQ(writers(100, 100), (std::vector<std::uint64_t>{0, 2, 0}));
    EXPECT_EQ(shadow.cells(), 1U);
    host.raise(0, 2);
    EXPECT_EQ(writers(100, 100), (std::vector<std::uint64_t>{0, 0, 0}));
    EXPECT_EQ(shadow.cells(), 0U);
}

TEST_F(ShadowMemoryTest, StaysSmallWithoutRepeatedVisits) {
    for (std::uint64_t number = 1; number <= 100'000; ++number) {
        write(number * 16, 8, number);
        host.raise(0, number);
    }
    EXPECT_LE(shadow.cells(), 4'097U);
}

TEST_F(ShadowMemoryTest, ErasesAndReplacesParts) {
    write(100, 100, 1);
    shadow.erase(120, 10);
    EXPECT_EQ(shadow.find(125), nullptr);
    EXPECT_NE(shadow.find(119), nullptr);
    EXPECT_NE(shadow.find(130), nullptr);
    Cell cell;
    cell.content = Content::freed;
    shadow.replace(110, 50, cell);
    EXPECT_EQ(shadow.find(159)->content, Content::freed);
    EXPECT_EQ(shadow.find(160)->content, Content::written);
}

}  // namespace
}  // namespace tensorpool::device
