#include <gtest/gtest.h>

#include <cstdio>

#include "explain/explanation.hpp"

namespace tensorpool::command::explain {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// 100 MiB, of which 60 MiB are blocks in use.
Explanation explanation() {
    Explanation made;
    made.resident_bytes = 100 * mib;
    made.in_use.bytes = made.in_use.requested_bytes = 60 * mib;
    return made;
}

/// A profile in which each line holds these MiB. Lines have no names.
profile::NamedProfile profile_of(const std::vector<std::uint64_t>& lines) {
    profile::NamedProfile named;
    named.profile.interval = 512 << 10;
    for (const std::uint64_t of_line : lines) {
        symbols::FrameName frame;
        frame.module = "/bin/train";
        frame.offset = named.frames.size();
        ProfileSite site;
        site.stack = {static_cast<std::uint32_t>(named.frames.size())};
        site.live_bytes = of_line * mib;
        named.frames.push_back(frame);
        named.profile.sites.push_back(site);
    }
    return named;
}

TEST(Sites, AddUpToTheBlocksInUse) {
    Explanation made = explanation();
    add_sites(made, profile_of({30, 10}));
    ASSERT_EQ(made.in_use.sites.size(), 3u);
    EXPECT_EQ(made.in_use.sites[0].bytes, 30 * mib);
    EXPECT_EQ(made.in_use.sites[1].bytes, 10 * mib);
    EXPECT_EQ(made.in_use.sites[2].name, "other call sites");
    EXPECT_EQ(made.in_use.sites[2].bytes, 20 * mib);
}

TEST(Sites, EstimatesAboveTheBlocksInUseAreScaledDown) {
    Explanation made = explanation();
    add_sites(made, profile_of({90, 30}));
    ASSERT_EQ(made.in_use.sites.size(), 2u);
    EXPECT_EQ(made.in_use.sites[0].bytes, 45 * mib);
    EXPECT_EQ(made.in_use.sites[1].bytes, 15 * mib);
}

TEST(Sites, BlocksThatWereNotTouchedWholeCountInPart) {
    Explanation made = explanation();
    made.in_use.requested_bytes = 120 * mib;
    add_sites(made, profile_of({120}));
    ASSERT_EQ(made.in_use.sites.size(), 1u);
    EXPECT_EQ(made.in_use.sites[0].bytes, 60 * mib);
}

TEST(Sites, OnlyLargeOnesHaveNames) {
    Explanation made = explanation();
    std::vector<std::uint64_t> lines(12, 2);
    add_sites(made, profile_of(lines));
    EXPECT_EQ(made.in_use.sites.size(), 11u);
    made = explanation();
    made.resident_bytes = 1000 * mib;
    add_sites(made, profile_of({20, 9}));
    EXPECT_EQ(made.in_use.sites.size(), 2u);
    EXPECT_EQ(made.in_use.sites[1].bytes, 40 * mib);
}

TEST(Sites, WithoutSamplesTheReasonIsGiven) {
    Explanation made = explanation();
    add_sites(made, profile_of({}));
    EXPECT_EQ(made.in_use.note, "no block in use was sampled");
    EXPECT_TRUE(made.in_use.sites.empty());
    EXPECT_NE(to_text(made, Sizes::iec).find("allocated them: no block in use was sampled"),
              std::string::npos);
    add_sites(made, {});
    EXPECT_TRUE(made.in_use.note.starts_with("sampling is off")) << made.in_use.note;
}

TEST(Sites, DamagedProfilesExceedNothing) {
    Explanation made = explanation();
    profile::NamedProfile named = profile_of({1, 1});
    for (ProfileSite& site : named.profile.sites) site.live_bytes = UINT64_MAX;
    add_sites(made, named);
    std::uint64_t sum = 0;
    for (const Allocator& site : made.in_use.sites) sum += site.bytes;
    EXPECT_EQ(sum, 60 * mib);
}

TEST(Scopes, HoldWhatTheyDidNotFree) {
    Explanation made = explanation();
    ProcessSnapshot snapshot;
    const auto add = [&](const char* name, std::uint64_t allocated, std::uint64_t freed) {
        ScopeStatistics scope;
        std::snprintf(scope.name, sizeof scope.name, "%s", name);
        scope.allocated_bytes = allocated;
        scope.deallocated_bytes = freed;
        snapshot.scopes.push_back(scope);
    };
    add("tiny", 1000, 0);
    add("load", 50 * mib, 10 * mib);
    add("backward", mib, 30 * mib);
    add("forward", 500 * mib, mib);
    add_scopes(made, snapshot);
    ASSERT_EQ(made.in_use.scopes.size(), 2u);
    EXPECT_EQ(made.in_use.scopes[0].name, "forward");
    EXPECT_EQ(made.in_use.scopes[0].bytes, 60 * mib) << "no more than is in use";
    EXPECT_EQ(made.in_use.scopes[1].name, "load");
    EXPECT_EQ(made.in_use.scopes[1].bytes, 40 * mib);
}

}  // namespace
}  // namespace tensorpool::command::explain
