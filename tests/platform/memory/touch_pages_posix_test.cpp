#include "platform/memory/touch_pages_posix.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tensorpool::platform {
namespace {

TEST(TouchPages, BringsEveryPageIntoMemory) {
    const std::size_t pages = 16;
    const std::size_t bytes = pages * page_bytes();
    void* const address = map(bytes, page_bytes());
    ASSERT_NE(address, nullptr);
    touch_pages(address, bytes);
    std::vector<unsigned char> in_memory(pages);
    ASSERT_EQ(mincore(address, bytes, in_memory.data()), 0);
    EXPECT_TRUE(std::ranges::all_of(in_memory, [](unsigned char page) { return page & 1; }));
    unmap(address, bytes);
}

TEST(TouchPages, PreservesContent) {
    const std::size_t bytes = 4 * page_bytes();
    auto* const address = static_cast<unsigned char*>(map(bytes, page_bytes()));
    ASSERT_NE(address, nullptr);
    std::fill_n(address, bytes, static_cast<unsigned char>(0xA5));
    touch_pages(address, bytes);
    EXPECT_TRUE(std::all_of(address, address + bytes, [](unsigned char c) { return c == 0xA5; }));
    unmap(address, bytes);
}

TEST(TouchPages, DoesNotLoseWritesOfOtherThreads) {
    void* const address = map(page_bytes(), page_bytes());
    ASSERT_NE(address, nullptr);
    auto* const counter = static_cast<unsigned char*>(address);
    std::atomic<bool> done{false};
    std::thread toucher([&] {
        while (!done.load()) touch_pages(address, page_bytes());
    });
    const unsigned rounds = 100'000;
    for (unsigned i = 0; i < rounds; ++i) {
        const unsigned char before = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
        ASSERT_EQ(before, static_cast<unsigned char>(i));
    }
    done.store(true);
    toucher.join();
    unmap(address, page_bytes());
}

}  // namespace
}  // namespace tensorpool::platform
