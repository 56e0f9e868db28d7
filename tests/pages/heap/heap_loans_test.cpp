#include "pages/heap/heap_capacity.hpp"

#include <gtest/gtest.h>

#include "pages/heap/test_heap.hpp"

namespace tensorpool::pages {
namespace {

constexpr unsigned pool = 2102;

class HeapLoansTest : public ::testing::Test {
protected:
    ~HeapLoansTest() override { loans.give_back_all(); }

    PageRun borrow(PageCount granules, unsigned shard = 0) {
        const PageCount pages = granules * granule_pages;
        return loans.borrow(pages, pages, 1, shard);
    }
    static bool contains(PageRun all, PageRun run) {
        return all.first <= run.first && run.first + run.count <= all.first + all.count;
    }
    static bool is_lent(PageRun run) {
        return address_space().is_lent_to(pool, address_space().address_of(run.first));
    }

    statistics::PoolTotals totals{};
    HeapLoans loans{address_space(), pool, testing::plain_options(), totals};
};

TEST_F(HeapLoansTest, RangesContainWhatWasLent) {
    const PageRun first = borrow(1);
    const PageRun second = borrow(2, 1);
    EXPECT_TRUE(contains(loans.ordinary(), first));
    EXPECT_TRUE(contains(loans.ordinary(), second));
    EXPECT_EQ(loans.low().count, 0U);
    EXPECT_EQ(loans.bytes(), 3 * granule_bytes);
    const PageRun marked = borrow(1, AddressSpace::marked_shard);
    if (marked.count == 0) GTEST_SKIP() << "no low addresses";
    EXPECT_TRUE(contains(loans.low(), marked));
    EXPECT_FALSE(contains(loans.ordinary(), marked));
}

TEST_F(HeapLoansTest, ReturnedAddressesAreNotCounted) {
    const PageRun run = borrow(3);
    loans.take_out(granule_pages);
    loans.give_back({run.first, granule_pages});
    EXPECT_EQ(loans.bytes(), 2 * granule_bytes);
    EXPECT_EQ(totals.peak_reserved_bytes, 3 * granule_bytes);
    EXPECT_FALSE(is_lent(run));
    EXPECT_TRUE(is_lent({run.first + granule_pages, 1}));
}

TEST_F(HeapLoansTest, RefusedLoanCountsNothing) {
    const PageRun run = borrow(1);
    EXPECT_EQ(borrow(address_space().max_pages() / granule_pages).count, 0U);
    EXPECT_EQ(loans.bytes(), granule_bytes);
    EXPECT_EQ(loans.ordinary().first, run.first);
    EXPECT_EQ(loans.ordinary().count, run.count);
}

TEST_F(HeapLoansTest, EverythingIsReturnedAtTheEnd) {
    const PageRun first = borrow(1);
    const PageRun second = borrow(1, 3);
    loans.give_back_all();
    EXPECT_FALSE(is_lent(first));
    EXPECT_FALSE(is_lent(second));
}

}  // namespace
}  // namespace tensorpool::pages
