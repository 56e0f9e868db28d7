#include "events/misuse.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "events/timeline.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::events {
namespace {

using statistics::CheckKind;

std::uint64_t failed(CheckKind kind) {
    return statistics::segment().header()->failed_checks[static_cast<unsigned>(kind)];
}

TEST(FailedChecks, AreIgnoredWithoutSegment) {
    if (statistics::segment().header() != nullptr)
        GTEST_SKIP() << "another test has made the segment";
    count_failed_check(CheckKind::misuse, "pool");
    (void)statistics::segment().find_or_add<statistics::ScopeRecord>("failed_checks_test");
    EXPECT_EQ(failed(CheckKind::misuse), 0U);
}

TEST(FailedChecks, AreCountedByKind) {
    (void)statistics::segment().find_or_add<statistics::ScopeRecord>("failed_checks_test");
    const CheckKind kinds[] = {CheckKind::misuse, CheckKind::leak, CheckKind::thread,
                               CheckKind::scope_order};
    for (const CheckKind kind : kinds) {
        std::uint64_t before[4];
        for (const CheckKind other : kinds) before[static_cast<unsigned>(other)] = failed(other);
        count_failed_check(kind, "pool");
        for (const CheckKind other : kinds) {
            EXPECT_EQ(failed(other), before[static_cast<unsigned>(other)] + (other == kind));
        }
    }
}

TEST(FailedChecks, AreWrittenToTimelineWithName) {
    (void)statistics::segment().find_or_add<statistics::ScopeRecord>("failed_checks_test");
    const std::uint64_t before = timeline_since().last;
    count_failed_check(CheckKind::leak, "the pool that leaks");
    const TimelinePart part = timeline_since(before);
    ASSERT_EQ(part.entries.size(), 1U);
    EXPECT_EQ(part.entries[0].kind, EntryKind::check);
    EXPECT_EQ(part.entries[0].name, "the pool that leaks");
}

TEST(FailedChecks, ConcurrentFailuresAreAllCounted) {
    (void)statistics::segment().find_or_add<statistics::ScopeRecord>("failed_checks_test");
    const std::uint64_t before = failed(CheckKind::thread);
    const auto count = [] {
        for (int i = 0; i < 5000; ++i) count_failed_check(CheckKind::thread, "arena");
    };
    std::thread other(count);
    count();
    other.join();
    EXPECT_EQ(failed(CheckKind::thread), before + 10'000);
}

}  // namespace
}  // namespace tensorpool::events
