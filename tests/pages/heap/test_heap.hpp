#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "limits/fake_system.hpp"
#include "pages/heap/page_heap.hpp"

namespace tensorpool::testing {

/// Options of a heap that grows without a surplus (which may use a fraction of 0 of the available
/// memory), keeps all free memory, and has no limit.
inline pages::HeapOptions plain_options() {
    return {.growth = {.step = 0, .factor = 0.0, .fraction = 0.0},
            .retain = {.bytes = SIZE_MAX, .milliseconds = 1000},
            .huge_pages = HugePages::never,
            .clock_ns = FakeSystem::clock_ns};
}
inline pages::HeapOptions limited_options(pages::PageCount max_pages) {
    pages::HeapOptions options = plain_options();
    options.max_capacity = max_pages * pages::page_bytes;
    return options;
}

/// A page heap in the process's address space, with a budget of its own on a system with 64 GiB.
/// All sizes are in pages. Two heaps that exist at the same time need different pool numbers.
class TestHeap {
public:
    explicit TestHeap(const pages::HeapOptions& options = plain_options(), unsigned number = 1000)
        : budget_(set_up_system()),
          heap(pages::address_space(), budget_, number, options, totals) {}
    TestHeap(const TestHeap&) = delete;
    TestHeap& operator=(const TestHeap&) = delete;

    pages::Span* allocate(pages::PageCount count, pages::PageCount alignment = 1,
                          pages::PageKind kind = pages::PageKind::large_in_use) {
        return heap.allocate({.pages = count, .alignment = alignment, .kind = kind}, path);
    }
    /// Allocates spans one after another. In a fresh heap they are adjacent.
    std::vector<pages::Span*> allocate_all(const std::vector<pages::PageCount>& counts) {
        std::vector<pages::Span*> spans;
        for (const pages::PageCount count : counts) spans.push_back(allocate(count));
        return spans;
    }
    void free(pages::Span* span) { heap.free(*span, path); }
    bool reserve(std::size_t count) { return heap.reserve(count * pages::page_bytes, path); }
    std::size_t trim() { return heap.trim(path) / pages::page_bytes; }
    void give_back(std::size_t count) { heap.give_back(count * pages::page_bytes, path); }
    /// Lets a whole period pass and calls `keep_to_retention`.
    bool end_period() {
        FakeSystem::pass_ms(heap.options().retain.milliseconds);
        return heap.keep_to_retention(path);
    }

    std::size_t capacity() const { return in_pages(totals.capacity_bytes); }
    std::size_t free_pages() const { return in_pages(totals.free_bytes); }
    std::size_t committed() const { return budget_.committed() / pages::page_bytes; }
    std::size_t grown() const { return path.grown / pages::page_bytes; }
    std::size_t given_back() const { return path.given_back / pages::page_bytes; }
    unsigned char* address_of(const pages::Span& span) const {
        return reinterpret_cast<unsigned char*>(pages::address_space().address_of(span.first_page));
    }

    statistics::PoolTotals totals{};
    pages::SlowPath path;

private:
    static std::size_t in_pages(const detail::Counter& bytes) {
        return bytes.load() / pages::page_bytes;
    }
    static limits::CommitBudget::Source set_up_system() {
        FakeSystem::set(std::size_t{64} << 30, 0);
        return FakeSystem::source();
    }

    limits::CommitBudget budget_;

public:
    pages::PageHeap heap;
};

}  // namespace tensorpool::testing
