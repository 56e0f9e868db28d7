#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/statistics_scope.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "statistics/fake_segment_linux.hpp"
#include "statistics/target_process_linux.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::FakeSegment;
using testing::TargetProcess;

[[maybe_unused]] const bool acted = testing::act_as_target_if_requested();

/// Returns why a process cannot be read; nullopt if it can.
std::optional<AttachFailure> failure_of(std::uint64_t process) {
    try {
        StatisticsReader::attach(process);
        return std::nullopt;
    } catch (const AttachError& error) {
        return error.failure();
    }
}

std::string message_of(std::uint64_t process) {
    try {
        StatisticsReader::attach(process);
        return "";
    } catch (const AttachError& error) {
        return error.what();
    }
}

/// Returns why a process cannot be read by a reader without privileges (the Unix user `nobody`).
std::optional<AttachFailure> failure_for_nobody(std::uint64_t process) {
    const int code = testing::exit_code_of_child([&] {
        if (::geteuid() == 0 &&
            (::setresgid(testing::nobody, testing::nobody, testing::nobody) != 0 ||
             ::setresuid(testing::nobody, testing::nobody, testing::nobody) != 0)) {
            return 100;
        }
        const auto failure = failure_of(process);
        return failure ? static_cast<int>(*failure) : 101;
    });
    if (code == 101) return std::nullopt;
    EXPECT_TRUE(code >= 0 && code < 100) << code;
    return static_cast<AttachFailure>(code);
}

std::optional<ObservedProcess> listed(std::uint64_t process) {
    for (const ObservedProcess& one : StatisticsReader::list()) {
        if (one.process == process) return one;
    }
    return std::nullopt;
}

const PoolStatistics& photos_of(const ProcessSnapshot& snapshot) {
    for (const PoolStatistics& pool : snapshot.pools) {
        if (std::string(pool.name) == "photos") return pool;
    }
    throw std::runtime_error("no pool photos");
}

std::size_t descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

TEST(StatisticsReader, ReadsRunningProcess) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::attach(target.number());
    EXPECT_EQ(reader.process(), target.number());
    EXPECT_TRUE(reader.is_running());
    ProcessSnapshot snapshot = reader.snapshot();
    EXPECT_EQ(snapshot.process, target.number());
    EXPECT_TRUE(snapshot.consistent);
    EXPECT_GT(snapshot.minor_faults, 0U);
    EXPECT_GT(snapshot.resident_bytes, 0U);
    EXPECT_EQ(photos_of(snapshot).allocations, 100U);
    EXPECT_EQ(photos_of(snapshot).in_use_bytes, 100U * 1024);
    target.send("f");
    snapshot = reader.snapshot();
    EXPECT_EQ(photos_of(snapshot).deallocations, 100U);
    EXPECT_EQ(photos_of(snapshot).in_use_bytes, 0U);
}

TEST(StatisticsReader, ReportsThreadNames) {
    TargetProcess target("pt");
    const ProcessSnapshot snapshot = StatisticsReader::attach(target.number()).snapshot();
    std::set<std::string> names;
    for (const ThreadStatistics& thread : snapshot.threads) names.insert(thread.name);
    EXPECT_TRUE(names.contains("worker"));
}

TEST(StatisticsReader, ListsProcessesWithPool) {
    TargetProcess with("p");
    TargetProcess without("");
    const auto found = listed(with.number());
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->readable);
    EXPECT_EQ(found->problem, "");
    EXPECT_NE(found->name, "");
    EXPECT_FALSE(listed(without.number()));
}

TEST(StatisticsReader, ListIsInOrderOfNumbers) {
    TargetProcess one("p");
    TargetProcess other("p");
    const auto list = StatisticsReader::list();
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end(),
                               [](const auto& a, const auto& b) { return a.process < b.process; }));
}

TEST(StatisticsReader, IgnoresForeignSegmentHeldOpen) {
    FakeSegment foreign(FakeSegment::Sealed::yes, "tensorpool");
    testing::put(foreign.header().process, 1);
    foreign.add_pool("foreign", 3);
    { const StatisticsScope scope("own segment"); }
    const auto own = static_cast<std::uint64_t>(::getpid());
    for (const PoolStatistics& pool : StatisticsReader::attach(own).snapshot().pools) {
        EXPECT_STRNE(pool.name, "foreign");
    }
}

TEST(StatisticsReader, ReadsTimelineAfterProcessEnded) {
    TargetProcess target("pm");
    StatisticsReader reader = StatisticsReader::attach(target.number());
    const TimelinePart before = reader.entries_since();
    ASSERT_FALSE(before.entries.empty());
    EXPECT_EQ(before.entries.back().kind, EntryKind::mark);
    EXPECT_EQ(before.entries.back().name, "hello");
    EXPECT_TRUE(reader.entries_since(before.last).entries.empty());
    target.end();
    EXPECT_EQ(reader.entries_since().entries.size(), before.entries.size());
}

TEST(StatisticsReader, ReportsThatProcessEnded) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::attach(target.number());
    target.kill();
    target.wait_until_zombie();
    EXPECT_FALSE(reader.is_running()) << "its parent has not waited for it yet";
    EXPECT_EQ(failure_of(target.number()), AttachFailure::no_process);
    target.end();
    EXPECT_FALSE(reader.is_running());
    try {
        reader.snapshot();
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_EQ(error.failure(), AttachFailure::ended);
    }
    EXPECT_FALSE(listed(target.number()));
}

TEST(StatisticsReader, ReportsThatProcessRunsAnotherProgram) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::attach(target.number());
    target.send("x");
    EXPECT_FALSE(reader.is_running());
    EXPECT_THROW(reader.snapshot(), AttachError);
    EXPECT_EQ(failure_of(target.number()), AttachFailure::no_segment);
}

TEST(StatisticsReader, ContinuesIfProcessClosesDescriptor) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::attach(target.number());
    target.send("cf");
    EXPECT_TRUE(reader.is_running());
    EXPECT_EQ(photos_of(reader.snapshot()).deallocations, 100U);
}

TEST(AttachError, ReportsMissingProcess) {
    TargetProcess target("");
    target.end();
    for (const std::uint64_t process :
         {target.number(), std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        EXPECT_EQ(failure_of(process), AttachFailure::no_process) << process;
        EXPECT_NE(message_of(process).find("tensorpool: process " + std::to_string(process) + ": "),
                  std::string::npos)
            << message_of(process);
    }
}

TEST(AttachError, ReportsProcessWithoutPool) {
    TargetProcess target("");
    EXPECT_EQ(failure_of(target.number()), AttachFailure::no_segment);
    const std::string begin = "tensorpool: process " + std::to_string(target.number()) + " (";
    EXPECT_TRUE(message_of(target.number()).starts_with(begin)) << message_of(target.number());
}

TEST(AttachError, ReportsNoSegmentIfStatisticsAreOff) {
    TargetProcess target("p", {"TENSORPOOL_STATISTICS=off"});
    ASSERT_TRUE(target.is_ready());
    EXPECT_EQ(failure_of(target.number()), AttachFailure::no_segment);
}

TEST(AttachError, ReportsClosedDescriptor) {
    TargetProcess target("pc");
    EXPECT_EQ(failure_of(target.number()), AttachFailure::closed);
    const auto found = listed(target.number());
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->readable);
    EXPECT_NE(found->problem.find("closed"), std::string::npos) << found->problem;
}

// Callers that wait for a segment continue to wait in this state.
TEST(AttachError, ReportsNoSegmentDuringInitialization) {
    TargetProcess target("pb");
    EXPECT_EQ(failure_of(target.number()), AttachFailure::no_segment);
    EXPECT_FALSE(listed(target.number()));
}

TEST(AttachError, ReportsOtherVersion) {
    TargetProcess target("pv");
    EXPECT_EQ(failure_of(target.number()), AttachFailure::other_version);
    ASSERT_TRUE(listed(target.number()));
    EXPECT_FALSE(listed(target.number())->readable);
}

TEST(AttachError, ReportsOverwrittenSegment) {
    TargetProcess target("po");
    EXPECT_EQ(failure_of(target.number()), AttachFailure::damaged);
}

TEST(AttachError, ReportsSegmentOverwrittenDuringRead) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::attach(target.number());
    target.send("o");
    try {
        reader.snapshot();
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_EQ(error.failure(), AttachFailure::damaged);
    }
    EXPECT_THROW(reader.entries_since(), AttachError);
}

TEST(AttachError, ReportsProcessOfAnotherUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
    TargetProcess target("p");
    EXPECT_EQ(failure_for_nobody(target.number()), AttachFailure::other_user);
}

TEST(AttachError, ProcessesOfSameUserCanAttach) {
    TargetProcess target(::geteuid() == 0 ? "pu" : "p");
    ASSERT_TRUE(target.is_ready());
    EXPECT_EQ(failure_for_nobody(target.number()), std::nullopt);
}

TEST(AttachError, ReportsProcessThatIsNotDumpable) {
    TargetProcess target(::geteuid() == 0 ? "pud" : "pd");
    ASSERT_TRUE(target.is_ready());
    EXPECT_EQ(failure_for_nobody(target.number()), AttachFailure::not_dumpable);
}

TEST(AttachError, ReportsProcessWithMoreCapabilities) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give capabilities away";
    TargetProcess target("pku");
    ASSERT_TRUE(target.is_ready());
    EXPECT_EQ(failure_for_nobody(target.number()), AttachFailure::more_privileged);
}

// A name space that the reader's own user created may be read.
TEST(AttachError, ReportsProcessInOtherUserNameSpace) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to make one for another user";
    TargetProcess target("p");
    if (!target.send("n")) GTEST_SKIP() << "the system does not allow user name spaces";
    for (const char* map : {"/gid_map", "/uid_map"}) {
        std::ofstream("/proc/" + std::to_string(target.number()) + map) << "65534 65534 1\n";
    }
    if (!target.send("u")) GTEST_SKIP() << "the system does not map users";
    EXPECT_EQ(failure_for_nobody(target.number()), AttachFailure::more_privileged);
}

TEST(StatisticsReader, RepeatedAttachLeaksNothing) {
    TargetProcess target("p");
    { StatisticsReader::attach(target.number()).snapshot(); }
    const std::size_t descriptors_before = descriptors();
    const std::size_t mappings_before = mappings();
    for (int round = 0; round < 1000; ++round) {
        StatisticsReader reader = StatisticsReader::attach(target.number());
        EXPECT_EQ(photos_of(reader.snapshot()).allocations, 100U);
    }
    EXPECT_EQ(descriptors(), descriptors_before);
    EXPECT_LE(mappings(), mappings_before + 2) << "the heap may have grown";
}

}  // namespace
}  // namespace tensorpool
