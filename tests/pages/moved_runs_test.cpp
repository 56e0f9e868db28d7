#include "pages/lent_memory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "pages/random.hpp"

namespace tensorpool::pages {
namespace {

using Runs = std::vector<std::pair<PageNumber, PageCount>>;

Runs pieces_of(const MovedRuns& moved, PageRun run) {
    Runs pieces;
    moved.for_each_piece(run,
                         [&](PageRun piece) { pieces.emplace_back(piece.first, piece.count); });
    return pieces;
}

Runs moved_in(const MovedRuns& moved, PageRun run) {
    Runs found;
    moved.for_each_moved(run, [&](PageRun piece) { found.emplace_back(piece.first, piece.count); });
    return found;
}

TEST(MovedRuns, UnmovedRunIsOnePiece) {
    const MovedRuns moved;
    EXPECT_EQ(pieces_of(moved, {10, 20}), (Runs{{10, 20}}));
    EXPECT_EQ(moved.pieces_of({10, 20}), 1U);
    EXPECT_TRUE(moved_in(moved, {10, 20}).empty());
}

TEST(MovedRuns, PiecesAreTheMovedRunsAndTheGaps) {
    MovedRuns moved;
    moved.add({20, 5});
    moved.add({10, 5});
    moved.add({25, 5});
    EXPECT_EQ(pieces_of(moved, {0, 40}),
              (Runs{{0, 10}, {10, 5}, {15, 5}, {20, 5}, {25, 5}, {30, 10}}));
    EXPECT_EQ(pieces_of(moved, {12, 10}), (Runs{{12, 3}, {15, 5}, {20, 2}}));
    EXPECT_EQ(moved_in(moved, {12, 10}), (Runs{{12, 3}, {20, 2}}));
}

TEST(MovedRuns, RemovedRunCutsOverlappingRuns) {
    MovedRuns moved;
    moved.add({10, 20});
    moved.remove({15, 5});
    EXPECT_EQ(moved_in(moved, {0, 100}), (Runs{{10, 5}, {20, 10}}));
    moved.remove({12, 10});
    EXPECT_EQ(moved_in(moved, {0, 100}), (Runs{{10, 2}, {22, 8}}));
    moved.remove({0, 100});
    EXPECT_EQ(moved.count(), 0U);
}

TEST(MovedRuns, AgreeWithAModelOfOneMarkPerPage) {
    testing::Random random(7);
    MovedRuns moved;
    std::vector<unsigned> marks(300, 0);  // the run that each page belongs to; 0: none
    unsigned number = 0;
    for (unsigned step = 0; step < 2000; ++step) {
        const PageRun run{static_cast<PageNumber>(random.below(280)),
                          1 + static_cast<PageCount>(random.below(20))};
        moved.remove(run);
        const bool adds = random.one_in(2) && moved.has_room_for(1);
        if (adds) moved.add(run);
        if (adds) ++number;
        for (PageNumber page = run.first; page < run.first + run.count; ++page) {
            marks[page] = adds ? number : 0;
        }
        Runs expected;
        for (PageNumber page = 0; page < marks.size(); ++page) {
            if (page != 0 && marks[page] == marks[page - 1]) {
                ++expected.back().second;
            } else {
                expected.emplace_back(page, 1);
            }
        }
        ASSERT_EQ(pieces_of(moved, {0, 300}), expected) << "step " << step;
    }
}

TEST(MovedRuns, HaveRoomUpToTheirMaximum) {
    MovedRuns moved;
    unsigned added = 0;
    while (moved.has_room_for(1)) moved.add({added++ * 2, 1});
    EXPECT_EQ(added, MovedRuns::max_runs);
    moved.remove({0, 2});
    EXPECT_TRUE(moved.has_room_for(1));
}

TEST(MovedRuns, CutWithoutRoomKeepsTheLargerPart) {
    MovedRuns moved;
    for (PageNumber number = 0; number != MovedRuns::max_runs; ++number)
        moved.add({number * 100, 50});
    moved.remove({10, 5});
    EXPECT_EQ(moved_in(moved, {0, 100}), (Runs{{15, 35}}));
    moved.remove({15 + 30, 2});
    EXPECT_EQ(moved_in(moved, {0, 100}), (Runs{{15, 30}}));
    moved.add({60, 5});
    EXPECT_EQ(moved.count(), MovedRuns::max_runs);
    EXPECT_EQ(moved_in(moved, {0, 100}), (Runs{{15, 30}})) << "the smaller part is dropped";
}

}  // namespace
}  // namespace tensorpool::pages
