#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/alignment.hpp"
#include "platform/memory/numa_policy.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"

namespace tensorpool::platform {
namespace {

using testing::holds_in_child;

constexpr std::size_t gib = std::size_t{1} << 30;
/// More than any machine can address.
constexpr std::size_t impossible_bytes = std::size_t{1} << 60;

/// A reservation of some pages that a test commits and decommits. The destructor releases it.
class Reservation {
public:
    explicit Reservation(std::size_t pages)
        : bytes(pages * page_bytes()),
          begin(static_cast<unsigned char*>(reserve(bytes, page_bytes()))) {}
    ~Reservation() { release(begin, bytes); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    unsigned char* page(std::size_t number) const { return begin + number * page_bytes(); }
    bool is_all(unsigned char value) const {
        return std::all_of(begin, begin + bytes, [=](unsigned char c) { return c == value; });
    }
    void fill(unsigned char value) const { std::fill_n(begin, bytes, value); }

    const std::size_t bytes;
    unsigned char* const begin;
};

/// Returns whether reading the page faults.
bool faults_on_read(const unsigned char* address) {
    return !holds_in_child([=] {
        std::signal(SIGSEGV, SIG_DFL);
        std::signal(SIGBUS, SIG_DFL);
        static_cast<void>(*static_cast<const volatile unsigned char*>(address));
        return true;
    });
}

bool faults_on_write(unsigned char* address) {
    return !holds_in_child([=] {
        std::signal(SIGSEGV, SIG_DFL);
        std::signal(SIGBUS, SIG_DFL);
        *static_cast<volatile unsigned char*>(address) = 1;
        return true;
    });
}

TEST(Page, SizeIsAPowerOfTwoOfAtLeast4KiB) {
    EXPECT_TRUE(std::has_single_bit(page_bytes()));
    EXPECT_GE(page_bytes(), 4096U);
}

// Reserving --------------------------------------------------------------------------------------

TEST(Reserve, AddressIsAlignedAsRequested) {
    for (std::size_t alignment = page_bytes(); alignment <= gib; alignment *= 2) {
        const std::size_t bytes = 3 * page_bytes();
        void* const address = reserve(bytes, alignment);
        ASSERT_NE(address, nullptr);
        EXPECT_TRUE(base::is_aligned(address, alignment)) << "alignment " << alignment << " B";
        EXPECT_TRUE(commit(address, bytes));
        release(address, bytes);
    }
}

TEST(Reserve, RangeLargerThanMachineTakesNoMemory) {
    void* const address = reserve(64 * gib, huge_page_bytes);
    ASSERT_NE(address, nullptr);
    EXPECT_TRUE(commit(static_cast<char*>(address) + 32 * gib, page_bytes()));
    release(address, 64 * gib);
}

TEST(Reserve, ReadingFaults) {
    const Reservation range(1);
    EXPECT_TRUE(faults_on_read(range.begin));
}

TEST(Reserve, ReserveAtReservesOnlyFreeAddresses) {
    unsigned char* begin = nullptr;
    {
        const Reservation range(4);
        begin = range.begin;
        EXPECT_EQ(reserve_at(range.page(1), page_bytes()), ReservedAt::taken);
    }
    ASSERT_EQ(reserve_at(begin + page_bytes(), page_bytes()), ReservedAt::done);
    EXPECT_TRUE(faults_on_read(begin + page_bytes()));
    EXPECT_EQ(reserve_at(begin, 4 * page_bytes()), ReservedAt::taken) << "a part of it is taken";
    EXPECT_TRUE(release(begin + page_bytes(), page_bytes()));
    EXPECT_EQ(reserve_at(begin, impossible_bytes), ReservedAt::refused);
}

TEST(Reserve, RejectsZeroAndImpossibleSizes) {
    EXPECT_EQ(reserve(0, page_bytes()), nullptr);
    EXPECT_EQ(reserve(impossible_bytes, page_bytes()), nullptr);
    EXPECT_EQ(reserve(SIZE_MAX - page_bytes() + 1, gib), nullptr);
}

TEST(Release, ReleasesPartAndKeepsRest) {
    const Reservation range(4);
    release(range.page(1), page_bytes());
    EXPECT_FALSE(commit(range.page(1), page_bytes()));
    EXPECT_TRUE(commit(range.page(0), page_bytes()));
    EXPECT_TRUE(commit(range.page(2), 2 * page_bytes()));
}

// Committing -------------------------------------------------------------------------------------

TEST(Commit, MemoryIsZeroAndWritable) {
    const Reservation range(4);
    ASSERT_TRUE(commit(range.begin, range.bytes));
    EXPECT_TRUE(range.is_all(0));
    range.fill(7);
    EXPECT_TRUE(range.is_all(7));
}

TEST(Commit, PartDoesNotAffectNeighbors) {
    const Reservation range(3);
    ASSERT_TRUE(commit(range.page(1), page_bytes()));
    EXPECT_FALSE(faults_on_read(range.page(1)));
    EXPECT_FALSE(faults_on_write(range.page(1)));
    EXPECT_TRUE(faults_on_read(range.page(0)));
    EXPECT_TRUE(faults_on_read(range.page(2)));
}

TEST(Commit, TwiceIsHarmless) {
    const Reservation range(2);
    ASSERT_TRUE(commit(range.begin, range.bytes));
    range.fill(7);
    EXPECT_TRUE(commit(range.begin, range.bytes));
    EXPECT_TRUE(range.is_all(7));
}

TEST(Commit, RejectsUnreservedRange) {
    void* const address = reserve(page_bytes(), page_bytes());
    release(address, page_bytes());
    EXPECT_FALSE(commit(address, page_bytes()));
}

TEST(Decommit, RecommittedMemoryIsZero) {
    const Reservation range(4);
    ASSERT_TRUE(commit(range.begin, range.bytes));
    range.fill(7);
    ASSERT_TRUE(decommit(range.begin, range.bytes));
    ASSERT_TRUE(commit(range.begin, range.bytes));
    EXPECT_TRUE(range.is_all(0));
}

TEST(Decommit, PartPreservesContentOfRest) {
    const Reservation range(3);
    ASSERT_TRUE(commit(range.begin, range.bytes));
    range.fill(7);
    ASSERT_TRUE(decommit(range.page(1), page_bytes()));
    ASSERT_TRUE(commit(range.page(1), page_bytes()));
    EXPECT_EQ(*(range.page(1) - 1), 7);
    EXPECT_EQ(*range.page(1), 0);
    EXPECT_EQ(*range.page(2), 7);
}

TEST(Prefault, PreservesContent) {
    const Reservation range(4);
    ASSERT_TRUE(commit(range.begin, range.bytes));
    range.fill(7);
    EXPECT_TRUE(prefault(range.begin, range.bytes));
    EXPECT_TRUE(range.is_all(7));
}

TEST(PreferHugePages, RejectsRangeWithoutWholeHugePage) {
    const Reservation range(4);
    EXPECT_FALSE(prefer_huge_pages(range.begin, range.bytes));
    EXPECT_FALSE(prefer_huge_pages(range.begin, 0));
    EXPECT_FALSE(prefer_huge_pages(nullptr, 0));
}

TEST(Map, MemoryIsAlignedZeroAndWritable) {
    for (std::size_t alignment = page_bytes(); alignment <= 64 * huge_page_bytes; alignment *= 4) {
        auto* const address = static_cast<unsigned char*>(map(page_bytes(), alignment));
        ASSERT_NE(address, nullptr);
        EXPECT_TRUE(base::is_aligned(address, alignment));
        EXPECT_TRUE(std::all_of(address, address + page_bytes(), [](auto c) { return c == 0; }));
        *address = 1;
        unmap(address, page_bytes());
    }
}

TEST(Map, RejectsZeroAndImpossibleSizes) {
    EXPECT_EQ(map(0, page_bytes()), nullptr);
    EXPECT_EQ(map(impossible_bytes, page_bytes()), nullptr);
}

TEST(Unmap, EndsMapping) {
    void* const address = map(page_bytes(), page_bytes());
    ASSERT_NE(address, nullptr);
    unmap(address, page_bytes());
    EXPECT_FALSE(commit(address, page_bytes()));
}

// The rest ---------------------------------------------------------------------------------------

TEST(Errno, IsPreservedByFailingCalls) {
    constexpr int before = 12345;
    errno = before;
    EXPECT_EQ(reserve(impossible_bytes, page_bytes()), nullptr);
    EXPECT_EQ(map(impossible_bytes, page_bytes()), nullptr);
    void* const gone = reserve(page_bytes(), page_bytes());
    release(gone, page_bytes());
    EXPECT_FALSE(commit(gone, page_bytes()));
    release(static_cast<char*>(gone) + 1, page_bytes());
    set_numa_policy(gone, page_bytes(), NumaPolicy::prefer, 5000);
    set_numa_policy(gone, page_bytes(), NumaPolicy::interleave, 0);
    prefer_huge_pages(gone, 2 * huge_page_bytes);
    numa_node_count();
    total_memory();
    available_memory();
    resident_memory();
    available_address_space();
    EXPECT_EQ(errno, before);
}

TEST(Clock, NeverGoesBack) {
    std::uint64_t latest = monotonic_clock_ns();
    for (int reading = 0; reading < 1000; ++reading) {
        const std::uint64_t now = monotonic_clock_ns();
        ASSERT_GE(now, latest);
        latest = now;
    }
}

TEST(Environment, ReturnsValueOrNull) {
    ASSERT_EQ(setenv("TENSORPOOL_PLATFORM_TEST", "value", 1), 0);
    EXPECT_STREQ(environment_variable("TENSORPOOL_PLATFORM_TEST"), "value");
    ASSERT_EQ(unsetenv("TENSORPOOL_PLATFORM_TEST"), 0);
    EXPECT_EQ(environment_variable("TENSORPOOL_PLATFORM_TEST"), nullptr);
}

}  // namespace
}  // namespace tensorpool::platform
