#include <cstdint>
#include <vector>
#include "plan/planner/problem.hpp"

#include <gtest/gtest.h>

#include "plan/planner/instances.hpp"

namespace {

using planner_tests::Lifetimes;
using tensorpool::planner::Buffer;
using tensorpool::planner::compress;
using tensorpool::planner::Section;

bool at_once(const Buffer& a, const Buffer& b) {
    return a.begin < b.end && b.begin < a.end;
}

TEST(Compress, EmptyInputHasNoSections) {
    EXPECT_TRUE(compress({}).empty());
    EXPECT_TRUE(compress(Lifetimes{{0, 4, 0}}).empty());
}

TEST(Compress, KeepsSizeAndAlignment) {
    const std::vector<Section> sections = compress(Lifetimes{{-5, 900, 100, 64}});
    ASSERT_EQ(sections.size(), 1U);
    EXPECT_EQ(sections[0].problem.slices, 1U);
    const Buffer& buffer = sections[0].problem.buffers.at(0);
    EXPECT_EQ(buffer.begin, 0U);
    EXPECT_EQ(buffer.end, 1U);
    EXPECT_EQ(buffer.bytes, 100U);
    EXPECT_EQ(buffer.alignment, 64U);
}

TEST(Compress, SplitsSectionsWhereNoBufferIsAlive) {
    const std::vector<Section> sections =
        compress(Lifetimes{{20, 30, 1}, {0, 10, 2}, {5, 15, 3}, {15, 16, 4}});
    ASSERT_EQ(sections.size(), 3U);
    EXPECT_EQ(sections[0].origins, (std::vector<std::uint32_t>{1, 2}));
    EXPECT_EQ(sections[1].origins, (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(sections[2].origins, (std::vector<std::uint32_t>{0}));
}

TEST(Compress, BeginningsWithoutAnEndBetweenThemShareASlice) {
    const std::vector<Section> sections =
        compress(Lifetimes{{0, 10, 1}, {1, 5, 1}, {2, 6, 1}, {6, 9, 1}});
    ASSERT_EQ(sections.size(), 1U);
    EXPECT_EQ(sections[0].problem.slices, 2U);
    EXPECT_EQ(sections[0].problem.buffers[0].end, 2U);
    EXPECT_EQ(sections[0].problem.buffers[2].begin, 0U);
    EXPECT_EQ(sections[0].problem.buffers[3].begin, 1U);
}

TEST(Compress, PreservesWhichBuffersAreAliveAtOnce) {
    planner_tests::Generator generator(21);
    for (int i = 0; i < 200; ++i) {
        const Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 12, 20, 9);
        std::size_t buffers = 0;
        for (const Section& section : compress(lifetimes)) {
            buffers += section.origins.size();
            for (std::size_t a = 0; a < section.origins.size(); ++a) {
                for (std::size_t b = 0; b < a; ++b) {
                    const auto& one = lifetimes[section.origins[a]];
                    const auto& other = lifetimes[section.origins[b]];
                    EXPECT_EQ(at_once(section.problem.buffers[a], section.problem.buffers[b]),
                              one.begin < other.end && other.begin < one.end);
                }
            }
        }
        EXPECT_EQ(buffers, lifetimes.size());
    }
}

}  // namespace
