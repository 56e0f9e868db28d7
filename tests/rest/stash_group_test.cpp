#include "rest/stash_group.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "support/process_metrics.hpp"

namespace tensorpool::stashing {
namespace {

using Kind = StashStatistics::Kind;

StashGroup group(const std::string& name, Kind kind = Kind::stashes, std::uint64_t budget = 0) {
    return StashGroup(kind, name, budget);
}
std::unique_ptr<StashGroup> new_group(const std::string& name) {
    return std::make_unique<StashGroup>(Kind::stashes, name, 0);
}

std::size_t count_named(const char* name) {
    std::size_t count = 0;
    for (const StashStatistics& one : take_snapshot().stashes)
        if (std::strcmp(one.name, name) == 0) ++count;
    return count;
}

TEST(StashGroup, SharesWordsByNameKindAndBudget) {
    const StashGroup one = group("a name");
    EXPECT_EQ(&group("a name").totals(), &one.totals());
    EXPECT_NE(&group("another").totals(), &one.totals());
    EXPECT_NE(&group("a name", Kind::frozen).totals(), &one.totals());
    EXPECT_NE(&group("a name", Kind::stashes, 1).totals(), &one.totals());
}

TEST(StashGroup, LongNamesAreCutOff) {
    const StashGroup one = group(std::string(100, 'x') + "1");
    EXPECT_EQ(&group(std::string(100, 'x') + "2").totals(), &one.totals());
    EXPECT_EQ(count_named(std::string(47, 'x').c_str()), 1U);
}

TEST(StashGroup, TotalsRemainWithoutAUser) {
    group("kept").totals().restores += 3;
    EXPECT_EQ(group("kept").totals().restores, 3U);
}

TEST(StashGroup, NamesWithoutAUserMakePlaceForOthers) {
    for (int i = 0; i < 1000; ++i) group("name " + std::to_string(i)).totals().restores += 1;
    EXPECT_EQ(count_named("name 999"), 1U);
    EXPECT_EQ(count_named("other"), 0U);
    EXPECT_LE(take_snapshot().stashes.size(), 255U);
    EXPECT_EQ(group("name 0").totals().restores, 0U) << "its place was taken";
}

TEST(StashGroup, NamesThatFindNoPlaceAreAddedUp) {
    std::vector<std::unique_ptr<StashGroup>> groups;
    for (int i = 0; i < 300; ++i) groups.push_back(new_group("used " + std::to_string(i)));
    EXPECT_EQ(&groups[298]->totals(), &groups[299]->totals());
    EXPECT_EQ(count_named("other"), 1U);
    EXPECT_EQ(count_named("used 299"), 0U);
    groups.erase(groups.begin());
    EXPECT_EQ(count_named("used 300"), 0U);
    groups.push_back(new_group("used 300"));
    EXPECT_EQ(count_named("used 300"), 1U);
}

TEST(StashGroup, ThreadsShareOnlyWhatHasTheirName) {
    constexpr int threads = 4;
    constexpr int rounds = tensorpool::testing::sanitized() ? 2000 : 10'000;
    const std::unique_ptr<StashGroup> kept = new_group("shared by threads");
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) {
        all.emplace_back([thread] {
            for (int i = 0; i < rounds; ++i) {
                ++group("shared by threads").totals().stashes;
                // Of this thread only. It takes the place of another, so places change hands.
                const StashGroup own =
                    group(std::to_string(thread) + " of " + std::to_string(i % 600));
                ++own.totals().tensors;
                std::this_thread::yield();
                EXPECT_EQ(--own.totals().tensors, 0U);
            }
        });
    }
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(kept->totals().stashes, static_cast<std::uint64_t>(threads * rounds));
}

}  // namespace
}  // namespace tensorpool::stashing
