#include "pages/lent_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "pages/address_space.hpp"
#include "pages/span.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

constexpr unsigned pool = 2010;

class LentMemoryTest : public ::testing::Test {
protected:
    ~LentMemoryTest() override { space_.take_back(pool, {0, space_.map().page_count()}); }

    PageRun lend(PageCount pages) { return space_.lend(pool, pages, pages); }
    unsigned char* address_of(PageNumber page) {
        return reinterpret_cast<unsigned char*>(space_.address_of(page));
    }
    PageMap::Word* entries() { return space_.map().entries(); }
    static PageNumber end_of(PageRun run) { return run.first + run.count; }

private:
    AddressSpace& space_ = address_space();

protected:
    LentMemory& memory = space_.memory();
};

TEST_F(LentMemoryTest, DecommitZeroesExactlyItsPages) {
    const PageRun run = lend(granule_pages);
    ASSERT_TRUE(memory.commit(run));
    std::memset(address_of(run.first), 1, run.count * page_bytes);
    const PageRun middle{run.first + 16, 32};
    ASSERT_TRUE(memory.decommit(middle));
    ASSERT_TRUE(memory.commit(middle));
    for (PageNumber page = run.first; page < end_of(run); ++page) {
        const bool dropped = page >= middle.first && page < end_of(middle);
        ASSERT_EQ(address_of(page)[0], dropped ? 0 : 1) << page;
        ASSERT_EQ(address_of(page)[page_bytes - 1], dropped ? 0 : 1) << page;
    }
}

TEST_F(LentMemoryTest, DecommitDropsEntriesOfWholeGranulesOnly) {
    // The entries of one granule fill a page of 4 KiB.
    const auto step = static_cast<PageCount>(platform::page_bytes() / 4096 * granule_pages);
    const PageRun run = lend(5 * step);
    ASSERT_TRUE(memory.commit(run));
    const Span span;
    const std::uint64_t word = PageEntry(&span, pool, PageKind::extent_hot).word();
    for (PageNumber page = run.first; page < end_of(run); ++page) entries()[page] = word;
    const PageRun middle{run.first + 5, 4 * step};
    ASSERT_TRUE(memory.decommit(middle));
    for (PageNumber page = run.first; page < end_of(run); ++page) {
        const bool inside = page >= run.first + step && page < run.first + 4 * step;
        ASSERT_EQ(entries()[page], inside ? 0 : word) << page - run.first;
        entries()[page] = word;  // they can be written again
    }
}

TEST_F(LentMemoryTest, OfferedPagesStayAccessible) {
    const PageRun run = lend(granule_pages);
    ASSERT_TRUE(memory.commit(run));
    std::memset(address_of(run.first), 1, run.count * page_bytes);
    (void)memory.offer({run.first + 16, 32});
    EXPECT_EQ(address_of(run.first + 15)[page_bytes - 1], 1);
    EXPECT_EQ(address_of(run.first + 48)[0], 1);
    std::memset(address_of(run.first + 16), 2, 32 * page_bytes);
    EXPECT_EQ(address_of(run.first + 16)[0], 2);
}

TEST_F(LentMemoryTest, MovedPagesKeepTheirContent) {
    const PageRun run = lend(2 * granule_pages);
    const PageRun from{run.first, 32};
    const PageNumber to = run.first + granule_pages;
    if (!memory.may_move(from)) GTEST_SKIP() << "the system cannot move memory";
    ASSERT_TRUE(memory.commit(from));
    ASSERT_TRUE(memory.commit({to, 32}));
    std::memset(address_of(from.first), 7, from.count * page_bytes);
    EXPECT_EQ(memory.move(from, to), LentMemory::Moved::all);
    for (PageNumber page = to; page != to + 32; ++page) ASSERT_EQ(address_of(page)[0], 7) << page;
    EXPECT_EQ(address_of(from.first)[0], 0) << "its old pages are fresh";
}

}  // namespace
}  // namespace tensorpool::pages
