#include "pages/address_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <tensorpool/detail/address_range.hpp>

#include "pages/failing_system.hpp"
#include "pages/span.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"

namespace tensorpool::pages {
namespace {

using testing::Failing;
using testing::holds_in_child;
using testing::SystemCall;

constexpr unsigned one = 2000;
constexpr unsigned other = 2001;

/// Takes back everything that was lent to the pool.
void take_back_all(AddressSpace& space, unsigned pool_number) {
    space.take_back(pool_number, {0, space.map().page_count()});
}

class AddressSpaceTest : public ::testing::Test {
protected:
    ~AddressSpaceTest() override {
        for (unsigned number = one; number < one + 8; ++number) take_back_all(space, number);
    }
    PageRun lend(unsigned number, PageCount pages) { return space.lend(number, pages, pages); }
    unsigned char* address_of(PageNumber page) {
        return reinterpret_cast<unsigned char*>(space.address_of(page));
    }
    static PageNumber end_of(PageRun run) { return run.first + run.count; }

    AddressSpace& space = address_space();
};

TEST_F(AddressSpaceTest, LendsWholeGranules) {
    for (const PageCount pages : {1U, granule_pages - 1, granule_pages, granule_pages + 1}) {
        const PageRun run = lend(one, pages);
        EXPECT_EQ(run.first % granule_pages, 0U);
        EXPECT_EQ(run.count, (pages + granule_pages - 1) / granule_pages * granule_pages);
    }
}

TEST_F(AddressSpaceTest, LendsTheWantedOrElseTheNeededPages) {
    EXPECT_EQ(space.lend(one, 1, 4 * granule_pages).count, 4 * granule_pages);
    EXPECT_EQ(space.lend(one, 5 * granule_pages, 1).count, 5 * granule_pages);
    EXPECT_EQ(space.lend(one, 1, space.max_pages()).count, granule_pages)
        << "part of it is lent already";
}

TEST_F(AddressSpaceTest, PublishesItsRange) {
    const detail::AddressRange& range = detail::pool_addresses;
    const PageRun run = lend(one, 1);
    EXPECT_TRUE(range.contains(address_of(run.first)));
    EXPECT_TRUE(range.contains(space.address_of(0)));
    EXPECT_FALSE(range.contains(space.address_of(0) - 1));
    const char* const end = space.address_of(space.map().page_count());
    EXPECT_GE(end, space.address_of(end_of(run)));
    EXPECT_TRUE(range.contains(end - 1));
    EXPECT_FALSE(range.contains(end));
    EXPECT_FALSE(range.contains(&run));
    EXPECT_FALSE(range.contains(nullptr));
}

TEST(AddressRange, ContainsNothingBeforeItIsSet) {
    static constinit detail::AddressRange range;
    static constinit detail::AddressRange::Word words[2] = {};
    EXPECT_FALSE(range.contains(nullptr));
    EXPECT_FALSE(range.contains(&range));
    range.set(0x1000, 16, words);
    EXPECT_FALSE(range.contains(reinterpret_cast<void*>(0xFFF)));
    EXPECT_TRUE(range.contains(reinterpret_cast<void*>(0x1000)));
    EXPECT_TRUE(range.contains(reinterpret_cast<void*>(0x100F)));
    EXPECT_FALSE(range.contains(reinterpret_cast<void*>(0x1010)));
    range.set(0x1000, 32, words);
    EXPECT_TRUE(range.contains(reinterpret_cast<void*>(0x1010)));
}

TEST(AddressRange, ReturnsThePageMapsEntry) {
    static constinit detail::AddressRange::Word words[2] = {7, 8};
    detail::AddressRange range;
    range.set(0x10000, 0x2000, words);
    EXPECT_EQ(range.page_word(reinterpret_cast<void*>(0x10000)), 7U);
    EXPECT_EQ(range.page_word(reinterpret_cast<void*>(0x10FFF)), 7U);
    EXPECT_EQ(range.page_word(reinterpret_cast<void*>(0x11000)), 8U);
}

TEST_F(AddressSpaceTest, LendFailsForMoreThanTheWindow) {
    lend(one, 1);
    EXPECT_EQ(lend(one, space.max_pages()).count, 0U);
    EXPECT_EQ(lend(one, PageCount{1} << 31).count, 0U);
    EXPECT_NE(lend(one, 1).count, 0U);
}

TEST_F(AddressSpaceTest, LoansAreAdjacentAndDisjoint) {
    const PageRun a = lend(one, granule_pages);
    const PageRun b = lend(other, 3 * granule_pages);
    const PageRun c = lend(one, granule_pages);
    EXPECT_EQ(b.first, end_of(a));
    EXPECT_EQ(c.first, end_of(b));
}

TEST_F(AddressSpaceTest, LowestFittingRangeIsLentFirst) {
    const PageRun a = lend(one, 2 * granule_pages);
    const PageRun b = lend(other, granule_pages);
    const PageRun c = lend(one + 2, granule_pages);
    take_back_all(space, one);
    EXPECT_EQ(lend(one + 3, 3 * granule_pages).first, end_of(c)) << "the gap is too small";
    EXPECT_EQ(lend(one + 3, granule_pages).first, a.first);
    EXPECT_EQ(lend(one + 3, granule_pages).first, a.first + granule_pages);
    take_back_all(space, other);
    EXPECT_EQ(lend(one + 4, 1).first, b.first);
}

TEST_F(AddressSpaceTest, TakesBackTheLoansOfOnePoolOnly) {
    const PageRun a = lend(one, granule_pages);
    const PageRun b = lend(other, granule_pages);
    const PageRun c = lend(one, granule_pages);
    ASSERT_TRUE(space.memory().commit(b));
    address_of(b.first)[0] = 5;
    take_back_all(space, one);
    EXPECT_FALSE(space.is_lent_to(one, address_of(a.first)));
    EXPECT_FALSE(space.is_lent_to(one, address_of(c.first)));
    EXPECT_TRUE(space.is_lent_to(other, address_of(b.first)));
    EXPECT_EQ(address_of(b.first)[0], 5);
}

TEST_F(AddressSpaceTest, EntriesAndContentAreZeroAfterTakeBack) {
    const PageRun run = lend(one, 3 * granule_pages);
    ASSERT_TRUE(space.memory().commit(run));
    std::memset(address_of(run.first), 1, run.count * page_bytes);
    Span span;
    span.first_page = run.first;
    span.pages = run.count;
    space.map().set_all({span.first_page, span.pages}, PageEntry(&span, one, kind_of_bucket(0)));
    space.map().set_granules(span, PageEntry(&span, one, PageKind::large_in_use));
    take_back_all(space, one);

    const PageRun again = lend(other, 3 * granule_pages);
    ASSERT_EQ(again.first, run.first);
    for (PageNumber page = run.first; page < end_of(run); ++page) {
        ASSERT_TRUE(space.map().at(page).empty()) << page;
    }
    for (PageNumber granule = run.first / granule_pages; granule < end_of(run) / granule_pages;
         ++granule) {
        EXPECT_EQ(space.map().granules()[granule], 0U);
    }
    ASSERT_TRUE(space.memory().commit(again));
    const unsigned char* const begin = address_of(again.first);
    EXPECT_TRUE(
        std::all_of(begin, begin + again.count * page_bytes, [](auto c) { return c == 0; }));
}

TEST_F(AddressSpaceTest, TakeBackReleasesMemory) {
    const PageRun run = lend(one, 16 * granule_pages);
    ASSERT_TRUE(space.memory().commit(run));
    std::memset(address_of(run.first), 1, run.count * page_bytes);
    const std::size_t resident = platform::resident_memory();
    take_back_all(space, one);
    EXPECT_LE(platform::resident_memory() + 12 * granule_pages * page_bytes, resident);
}

TEST_F(AddressSpaceTest, ReturnsThePoolOfAnAddress) {
    const PageRun run = lend(one, granule_pages);
    const PageRun next = lend(other, granule_pages);
    EXPECT_TRUE(space.is_lent_to(one, address_of(run.first)));
    EXPECT_TRUE(space.is_lent_to(one, address_of(end_of(run)) - 1));
    EXPECT_FALSE(space.is_lent_to(one, address_of(next.first)));
    EXPECT_FALSE(space.is_lent_to(other, address_of(run.first)));
    EXPECT_FALSE(space.is_lent_to(one, nullptr));
    EXPECT_FALSE(space.is_lent_to(one, &run));
    EXPECT_FALSE(space.is_lent_to(one, address_of(0) - 1));
    EXPECT_FALSE(space.is_lent_to(one, address_of(space.map().page_count())));
    EXPECT_FALSE(space.is_lent(address_of(space.map().page_count())));
    EXPECT_FALSE(space.is_lent(&run));
}

TEST_F(AddressSpaceTest, UsualLoanDoublesAPoolFrom64MibTo1Gib) {
    if (platform::available_address_space() != SIZE_MAX) GTEST_SKIP() << "addresses are limited";
    constexpr std::size_t mib = std::size_t{1} << 20;
    const auto loan = [this](std::size_t lent_mib) {
        return space.usual_loan(lent_mib * mib) * page_bytes / mib;
    };
    EXPECT_EQ(loan(0), 64U);
    EXPECT_EQ(loan(64), 64U);
    EXPECT_EQ(loan(128), 128U);
    EXPECT_EQ(loan(512), 512U);
    EXPECT_EQ(loan(10'000), 1024U);
    EXPECT_EQ(loan(129), 128U) << "rounded down to whole granules";
}

TEST_F(AddressSpaceTest, LoanBeginsAtAMultipleOfItsAlignment) {
    lend(one, 1);
    for (const PageCount alignment : {1U, granule_pages, 4 * granule_pages, 128 * granule_pages}) {
        const PageRun run = space.lend(one, 1, 1, alignment);
        EXPECT_EQ(run.count, granule_pages) << "no more than is needed";
        EXPECT_EQ(run.first % alignment, 0U);
    }
}

TEST_F(AddressSpaceTest, PartOfALoanCanBeTakenBack) {
    const PageRun run = lend(one, 5 * granule_pages);
    ASSERT_TRUE(space.memory().commit(run));
    std::memset(address_of(run.first), 1, run.count * page_bytes);
    const PageRun middle{run.first + granule_pages, 2 * granule_pages};
    space.take_back(one, middle);
    EXPECT_FALSE(space.is_lent(address_of(middle.first)));
    EXPECT_TRUE(space.is_lent_to(one, address_of(end_of(middle))));
    EXPECT_EQ(address_of(middle.first - 1)[0], 1);
    EXPECT_EQ(address_of(end_of(middle))[0], 1);
    EXPECT_EQ(lend(other, 2 * granule_pages).first, middle.first);
    ASSERT_TRUE(space.memory().commit(middle));
    EXPECT_EQ(address_of(middle.first)[0], 0);
}

TEST_F(AddressSpaceTest, NothingIsReservedAhead) {
    lend(one, 1);
    const PageNumber beyond = space.map().page_count() + granule_pages;
    ASSERT_EQ(platform::reserve_at(address_of(beyond), granule_pages * page_bytes),
              platform::ReservedAt::done);
    platform::release(address_of(beyond), granule_pages * page_bytes);
}

// In a child process, because marks of foreign mappings stay while there are other addresses.
TEST_F(AddressSpaceTest, LoansAvoidForeignMappings) {
    EXPECT_TRUE(holds_in_child([this] {
        const PageRun before = lend(one, granule_pages);
        const PageNumber planted = end_of(before) + 3 * granule_pages;
        const std::size_t bytes = platform::page_bytes();
        if (platform::reserve_at(address_of(planted), bytes) != platform::ReservedAt::done ||
            !platform::commit(address_of(planted), bytes)) {
            return false;
        }
        address_of(planted)[0] = 5;
        const PageRun wide = lend(one, 4 * granule_pages);
        const PageRun fits = lend(other, 3 * granule_pages);
        return wide.first > planted && fits.first == end_of(before) &&
               !space.is_lent(address_of(planted)) && space.is_lent(address_of(fits.first)) &&
               address_of(planted)[0] == 5;
    }));
}

TEST_F(AddressSpaceTest, UnmappedForeignRangesAreLentBeforeARefusal) {
    if (platform::available_address_space() != SIZE_MAX) GTEST_SKIP() << "addresses are limited";
    EXPECT_TRUE(holds_in_child([this] {
        lend(one, 1);
        const PageCount lent = space.map().page_count();
        while (lend(one, 5 * granule_pages).first < lent) {
        }
        const PageCount rest = space.max_pages() - space.map().page_count();
        if (lend(one, rest - 7 * granule_pages).count == 0) return false;
        char* const planted = space.address_of(space.max_pages() - 4 * granule_pages);
        const std::size_t bytes = platform::page_bytes();
        if (platform::reserve_at(planted, bytes) != platform::ReservedAt::done) return false;
        if (lend(one, 5 * granule_pages).count != 0) return false;
        platform::release(planted, bytes);
        return lend(one, 5 * granule_pages).count != 0;
    }));
}

TEST_F(AddressSpaceTest, PagesAlignedByNumberAreAlignedByAddress) {
    lend(one, 1);
    const PageCount alignment = space.max_alignment();
    EXPECT_GE(alignment, granule_pages);
    const auto begin = reinterpret_cast<std::uintptr_t>(address_of(0));
    EXPECT_EQ(begin % (alignment * page_bytes), 0U);
}

TEST_F(AddressSpaceTest, LoanWithoutMemoryForThePageMapFailsAndRecovers) {
    lend(one, granule_pages);
    const PageCount more = space.map().page_count() + 64 * granule_pages;
    {
        const Failing failing(SystemCall::commit_records);
        EXPECT_EQ(lend(other, more).count, 0U);
        EXPECT_LT(space.map().page_count(), more);
    }
    EXPECT_EQ(lend(other, more).count, more);
}

TEST_F(AddressSpaceTest, EntriesAreClearedEvenIfTheirMemoryCannotBeDropped) {
    const PageRun run = lend(one, 2 * granule_pages);
    const Span span;
    space.map().entries()[run.first + 700] = PageEntry(&span, one, PageKind::large_in_use).word();
    {
        const Failing failing(SystemCall::decommit_map);
        take_back_all(space, one);
    }
    EXPECT_EQ(space.map().entries()[run.first + 700], 0U);
    EXPECT_EQ(lend(other, 1).first, run.first);
}

// In a child process, because such granules are lost for the lifetime of the process.
TEST_F(AddressSpaceTest, GranulesThatCannotBeDroppedAreNeverLentAgain) {
    EXPECT_TRUE(holds_in_child([this] {
        const PageRun before = lend(other, granule_pages);
        const PageRun run = lend(one, granule_pages);
        if (!space.memory().commit(run)) return false;
        address_of(run.first)[0] = 1;
        space.map().entries()[run.first] = 64;
        {
            const Failing failing(SystemCall::decommit_pages);
            take_back_all(space, one);
        }
        if (!space.map().at(run.first).empty() || space.is_lent_to(one, address_of(run.first)))
            return false;
        take_back_all(space, one);
        const PageRun next = lend(one, granule_pages);
        const PageRun wide = lend(one, 2 * granule_pages);
        take_back_all(space, other);
        return before.count != 0 && next.first == end_of(run) && wide.first == end_of(next) &&
               lend(other, 2 * granule_pages).first == end_of(wide);
    }));
}

TEST_F(AddressSpaceTest, ThreadsGetDisjointLoans) {
    std::vector<std::vector<PageRun>> loans(4);
    std::vector<std::thread> workers;
    for (unsigned worker = 0; worker < 4; ++worker) {
        workers.emplace_back([this, worker, &mine = loans[worker]] {
            for (unsigned round = 0; round < 20; ++round) {
                take_back_all(space, one + worker);
                mine.clear();
                for (int i = 0; i < 5; ++i) mine.push_back(lend(one + worker, granule_pages));
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    std::vector<PageNumber> firsts;
    for (const auto& mine : loans) {
        for (const PageRun run : mine) firsts.push_back(run.first);
    }
    std::sort(firsts.begin(), firsts.end());
    EXPECT_EQ(std::adjacent_find(firsts.begin(), firsts.end()), firsts.end());
    EXPECT_EQ(firsts.size(), 20U);
}

// Another thread may map something there at once, which a look-up must not attribute to a pool.
TEST_F(AddressSpaceTest, TakenBackRunBelongsToNoPoolBeforeItIsUnmapped) {
    const PageRun run = lend(one, granule_pages);
    const unsigned char* const p = address_of(run.first);
    ASSERT_TRUE(space.is_lent(p));
    bool was_lent = true;
    testing::before_unmapping = [&] { was_lent = space.is_lent(p) || space.is_lent_to(one, p); };
    space.take_back(one, run);
    EXPECT_FALSE(testing::before_unmapping) << "the callback was called";
    EXPECT_FALSE(was_lent);
    EXPECT_EQ(lend(other, granule_pages).first, run.first) << "the run is free";
}

TEST(AddressSpaceMap, LoanFallsBackToTheNeededPagesIfTheMapCannotGrow) {
    EXPECT_TRUE(holds_in_child([] {
        static AddressSpace space;
        if (space.lend(one, 1, 1).count == 0) return false;
        // Blocks the addresses of the entries of a granule that is soon needed.
        auto* const entries = reinterpret_cast<std::byte*>(space.map().entries());
        const std::size_t pages = space.map().page_count() + 63 * granule_pages;
        void* const in_the_way = entries + pages * sizeof(PageMap::Word);
        if (platform::reserve_at(in_the_way, platform::page_bytes()) !=
            platform::ReservedAt::done) {
            return false;
        }
        return space.lend(one, 1, 100 * granule_pages).count == granule_pages &&
               space.lend(one, 100 * granule_pages, 100 * granule_pages).count == 0 &&
               space.lend(one, 1, 1).count == granule_pages;
    }));
}

}  // namespace
}  // namespace tensorpool::pages
