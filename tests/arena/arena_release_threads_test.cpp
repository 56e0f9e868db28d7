// Marks that are taken while other threads allocate.

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "arena/arena_test.hpp"
#include "arena/arena_threads.hpp"
#include "pages/random.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::Block;
using testing::block_of;
using testing::Blocks;
using testing::in_order;
using testing::mib;
using testing::on_threads;
using testing::rounded;
using testing::sum_of;

void take_marks(Arena& arena, const std::atomic<unsigned>& working, std::vector<std::size_t>& to) {
    do {
        to.push_back(arena.mark().offset());
        if (to.size() > 100'000) to.resize(50'000);
    } while (working != 0);
}

void expect_between_blocks(std::vector<std::size_t> marks, const Blocks& blocks) {
    const std::byte* const base = blocks.front().at;
    std::sort(marks.begin(), marks.end());
    auto mark = marks.begin();
    for (const Block& block : blocks) {
        const auto begin = static_cast<std::size_t>(block.at - base);
        while (mark != marks.end() && *mark <= begin) ++mark;
        ASSERT_TRUE(mark == marks.end() || *mark >= begin + rounded(block))
            << "there is a mark at " << *mark << " B within the block at " << begin << " B";
    }
    const Block& last = blocks.back();
    EXPECT_LE(marks.back(), static_cast<std::size_t>(last.at - base) + rounded(last));
}

TEST(ArenaMarkThreads, ConcurrentMarksLieBetweenBlocks) {
    for (const std::size_t capacity : {mib, 256 * mib}) {
        for (unsigned round = 0; round < (testing::sanitized() ? 4 : 40); ++round) {
            ArenaOptions options = bare_options();
            options.max_capacity = capacity;
            Arena arena(options);
            std::vector<Blocks> given(4);
            given[0].push_back({static_cast<std::byte*>(arena.allocate(64)), 64, 0});
            std::vector<std::size_t> marks;
            std::atomic<unsigned> working = 3;
            on_threads(4, [&](unsigned number) {
                if (number == 3) return take_marks(arena, working, marks);
                testing::Random random(number + round * 10);
                for (unsigned i = 0; i < 500; ++i) {
                    const std::size_t bytes = random.log_uniform(1, 20'000);
                    const Block block = block_of(arena, bytes, random, i);
                    if (block.at != nullptr) given[number].push_back(block);
                }
                --working;
            });
            const Blocks all = in_order(given);
            ASSERT_EQ(sum_of(all), arena.used());
            expect_between_blocks(marks, all);
            EXPECT_NO_THROW(arena.release_to(arena.mark()));
        }
    }
}

}  // namespace
}  // namespace tensorpool
