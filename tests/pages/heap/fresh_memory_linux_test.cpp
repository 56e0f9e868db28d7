#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "pages/heap/test_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

using testing::plain_options;
using testing::TestHeap;

/// The number of resident pages of the system.
std::size_t resident_pages(unsigned char* begin, std::size_t bytes) {
    std::vector<unsigned char> states(bytes / platform::page_bytes());
    EXPECT_EQ(mincore(begin, bytes, states.data()), 0);
    return static_cast<std::size_t>(
        std::ranges::count_if(states, [](unsigned char state) { return (state & 1) != 0; }));
}

/// The number of pages that become resident at the first touch of one without any request.
std::size_t pages_of_one_touch() {
    constexpr std::size_t bytes = platform::huge_page_bytes;
    auto* const memory = static_cast<unsigned char*>(platform::map(bytes, bytes));
    *memory = 1;
    const std::size_t pages = resident_pages(memory, bytes);
    platform::unmap(memory, bytes);
    return pages;
}

class FreshMemoryOnLinux : public ::testing::Test {
protected:
    static HeapOptions options(FolioChoice& choice) {
        HeapOptions options = plain_options();
        options.huge_pages = HugePages::buckets;
        options.folios = &choice;
        return options;
    }

    FolioChoice choice_{platform::folio_sizes};
    TestHeap heap_{options(choice_)};
};

TEST_F(FreshMemoryOnLinux, PrefaultMakesExactlyItsPagesResident) {
    Span* const span = heap_.allocate(2 * granule_pages + 32);
    Span* const next = heap_.allocate(2 * granule_pages);
    heap_.heap.fresh().prefault({span->first_page, span->pages});
    EXPECT_EQ(resident_pages(heap_.address_of(*span), span->bytes()),
              span->bytes() / platform::page_bytes());
    EXPECT_EQ(resident_pages(heap_.address_of(*next), next->bytes()), 0U);
}

TEST_F(FreshMemoryOnLinux, PrefaultedMemoryThatWasReturnedBehavesAsUsual) {
    Span* span = heap_.allocate(2 * granule_pages);
    const PageNumber first = span->first_page;
    heap_.heap.fresh().prefault({span->first_page, span->pages});
    heap_.free(span);
    heap_.give_back(2 * granule_pages);
    span = heap_.allocate(2 * granule_pages);
    ASSERT_EQ(span->first_page, first);
    unsigned char* const block = heap_.address_of(*span);
    EXPECT_EQ(resident_pages(block, span->bytes()), 0U);
    *block = 1;
    EXPECT_EQ(resident_pages(block, span->bytes()), pages_of_one_touch());
}

}  // namespace
}  // namespace tensorpool::pages
