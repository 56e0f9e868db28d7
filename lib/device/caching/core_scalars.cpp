#include "device/caching/caching_core.hpp"

// Constants of up to 8 bytes: 64 of them in one small block.

namespace tensorpool::device {
namespace {

std::size_t place_of(const Block& block, const void* address) noexcept {
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.address);
    return offset / ScalarPage::place_bytes;
}

std::uint64_t bit(std::size_t place) noexcept {
    return std::uint64_t{1} << place;
}

void unlink(StreamCache& cache, const ScalarPage& page) noexcept {
    for (ScalarPage** at = &cache.memory.pages; *at != nullptr; at = &(*at)->next) {
        if (*at != &page) continue;
        *at = page.next;
        return;
    }
}

}  // namespace

void* CachingCore::allocate_scalar(std::size_t bytes, StreamHandle stream,
                                   DeviceAllocationFailure* failure) {
    const std::uint64_t capture = capture_of(stream);
    Lock lock(mutex_);
    StreamCache& cache = cache_of(stream, capture);
    if (cache.memory.pages == nullptr) {
        ScalarPage& page = scalars_.take();
        const Request request = request_of(small_grain, cache);
        Outcome outcome;
        try {
            outcome = obtain(cache, request, lock);
        } catch (...) {
            scalars_.give(page);
            throw;
        }
        if (outcome.block == nullptr) {
            scalars_.give(page);
            explain(outcome, request, *failure);
            return nullptr;
        }
        open_page(cache, *outcome.block, page);
    }
    void* const address = take_scalar(cache, bytes);
    lock.unlock();
    if (is_watched()) {
        watch_.handed_out({address, ScalarPage::place_bytes, bytes, stream},
                          AllocatorWatch::Memory::recycled);
    }
    return address;
}

void CachingCore::open_page(StreamCache& cache, Block& block, ScalarPage& page) noexcept {
    page.block = &block;
    page.used = 0;
    page.closed = false;
    page.next = cache.memory.pages;
    cache.memory.pages = &page;
    block.page = &page;
    block.requested = 0;
    block.set(BlockState::scalars);
}

void* CachingCore::take_scalar(StreamCache& cache, std::size_t bytes) noexcept {
    ScalarPage& page = *cache.memory.pages;
    const std::size_t place = page.lowest_free();
    page.used |= bit(place);
    page.bytes[place] = static_cast<std::uint8_t>(bytes);
    if (page.is_full()) cache.memory.pages = page.next;
    const std::lock_guard guard(cache);
    cache.count_allocation(bytes, ScalarPage::place_bytes);
    return page.block->address + place * ScalarPage::place_bytes;
}

bool CachingCore::has_scalar(const Block& block, const void* address) noexcept {
    const bool begins = base::is_aligned(
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.address),
        ScalarPage::place_bytes);
    return begins && block.page != nullptr &&
           (block.page->used & bit(place_of(block, address))) != 0;
}

void CachingCore::free_scalar(Block& block, void* address, Lock& lock) noexcept {
    if (!has_scalar(block, address)) refuse_free(address, &block);
    if (is_watched()) {
        const StreamHandle stream = block.home.load(std::memory_order_relaxed)->stream();
        lock.unlock();
        watch_.freed({address, ScalarPage::place_bytes, ScalarPage::place_bytes, stream});
        lock.lock();
    }
    ScalarPage& page = *block.page;
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    const std::size_t place = place_of(block, address);
    {
        const std::lock_guard guard(home);
        home.count_free(page.bytes[place], ScalarPage::place_bytes);
    }
    const bool was_full = page.is_full();
    page.used &= ~bit(place);
    if (page.closed) {
        // No place is used again: `used` counts down to the end of the page.
        if (page.used == 0) end_page(block);
    } else if (was_full) {
        page.next = home.memory.pages;
        home.memory.pages = &page;
    }
}

/// Another stream uses one of its scalars: it is all freed at once, as one block.
void CachingCore::close_page(Block& block) noexcept {
    if (block.page->closed) return;
    block.page->closed = true;
    unlink(*block.home.load(std::memory_order_relaxed), *block.page);
}

/// The block goes as any other. REQUIRES: no scalar of it is in use, and it is in no list.
void CachingCore::end_page(Block& block) noexcept {
    scalars_.give(*block.page);
    block.page = nullptr;
    block.set(BlockState::taken);
    if (block.uses != nullptr) return deferred_.defer(block);
    totals_.let_go(block.bytes);
    const StreamCache& home = *block.home.load(std::memory_order_relaxed);
    heap_.put_back(block, home.memory.marks.stamp());
}

/// Pages without a scalar in use.
void CachingCore::end_empty_pages(StreamCache& cache) noexcept {
    for (ScalarPage** at = &cache.memory.pages; *at != nullptr;) {
        ScalarPage& page = **at;
        if (page.used != 0) {
            at = &page.next;
            continue;
        }
        *at = page.next;
        end_page(*page.block);
    }
}

}  // namespace tensorpool::device
