#include "device/caching/scalars.hpp"

namespace tensorpool::device {
namespace {

std::size_t position_of(const Block& block, const void* address) noexcept {
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.address);
    return offset / ScalarPage::scalar_bytes;
}

std::uint64_t bit(std::size_t position) noexcept {
    return std::uint64_t{1} << position;
}

void unlink(StreamCache& cache, const ScalarPage& page) noexcept {
    for (ScalarPage** at = &cache.memory.pages; *at != nullptr; at = &(*at)->next) {
        if (*at != &page) continue;
        *at = page.next;
        return;
    }
}

}  // namespace

void Scalars::open(StreamCache& cache, Block& block, ScalarPage& page) noexcept {
    page.block = &block;
    page.used = 0;
    page.closed = false;
    page.next = cache.memory.pages;
    cache.memory.pages = &page;
    block.page = &page;
    block.requested = 0;
    ++block.use_count;
    block.set(BlockState::scalars);
}

void* Scalars::take(StreamCache& cache, std::size_t bytes) noexcept {
    ScalarPage& page = *cache.memory.pages;
    const std::size_t position = page.lowest_free();
    page.used |= bit(position);
    page.bytes[position] = static_cast<std::uint8_t>(bytes);
    if (page.is_full()) cache.memory.pages = page.next;
    const std::lock_guard guard(cache);
    cache.count_allocation(bytes, ScalarPage::scalar_bytes);
    return page.block->address + position * ScalarPage::scalar_bytes;
}

bool Scalars::has(const Block& block, const void* address) noexcept {
    const bool begins = base::is_aligned(
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.address),
        ScalarPage::scalar_bytes);
    return begins && block.page != nullptr &&
           (block.page->used & bit(position_of(block, address))) != 0;
}

void Scalars::free(Block& block, void* address) noexcept {
    ScalarPage& page = *block.page;
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    const std::size_t position = position_of(block, address);
    {
        const std::lock_guard guard(home);
        home.count_free(page.bytes[position], ScalarPage::scalar_bytes);
    }
    const bool was_full = page.is_full();
    page.used &= ~bit(position);
    if (page.closed) {
        // A closed page reuses no position; `used` counts down to the end of the page.
        if (page.used == 0) end(block);
    } else if (was_full) {
        page.next = home.memory.pages;
        home.memory.pages = &page;
    }
}

void Scalars::close(Block& block) noexcept {
    if (block.page->closed) return;
    block.page->closed = true;
    unlink(*block.home.load(std::memory_order_relaxed), *block.page);
}

/// Frees the page's block like any other. REQUIRES: no scalar of it is in use, and it is in no
/// list.
void Scalars::end(Block& block) noexcept {
    records_.give(*block.page);
    block.page = nullptr;
    block.set(BlockState::taken);
    if (block.uses != nullptr) return state_.deferred.defer(block);
    state_.totals.let_go(block.bytes);
    const StreamCache& home = *block.home.load(std::memory_order_relaxed);
    state_.heap.put_back(block, home.memory.marks.stamp());
}

void Scalars::end_empty(StreamCache& cache) noexcept {
    for (ScalarPage** at = &cache.memory.pages; *at != nullptr;) {
        ScalarPage& page = **at;
        if (page.used != 0) {
            at = &page.next;
            continue;
        }
        *at = page.next;
        end(*page.block);
    }
}

Block* FreeBlocks::take(StreamCache& cache, const Request& request) {
    complete();
    put_back(cache, cache.take_all());
    if (request.pool == Pool::shareable) return nullptr;
    Block* block = state_.heap.take_best(cache, request);
    // Large and oversize requests may use each other's blocks: whole if the excess is small, or a
    // part of a slab.
    if (block == nullptr && request.pool != Pool::small) {
        Request other = request;
        other.pool = request.pool == Pool::large ? Pool::oversize : Pool::large;
        block = state_.heap.take_best(cache, other);
    }
    if (block != nullptr) detail::add(state_.totals.free_hits, 1);
    return block;
}

void FreeBlocks::complete() noexcept {
    if (state_.deferred.is_empty()) return;
    state_.deferred.begin();
    for (const auto& stream : state_.caches) {
        while (DeferrableBlock* const block = state_.deferred.next(stream->memory.queue)) {
            reuse(static_cast<Block&>(*block));
        }
    }
}

void FreeBlocks::complete_up_to(StreamCache& stream, std::uint64_t added) noexcept {
    while (DeferrableBlock* const block = state_.deferred.next_up_to(stream.memory.queue, added)) {
        reuse(static_cast<Block&>(*block));
    }
}

// The note is sent under the lock, so that no other thread gets the block first. The backend does
// not call back.
void FreeBlocks::reuse(Block& block) noexcept {
    const StreamCache& home = *block.home.load(std::memory_order_relaxed);
    state_.watch.reusable({block.address, block.bytes, block.requested, home.stream()});
    state_.heap.put_back(block, home.memory.marks.stamp());
}

std::size_t FreeBlocks::put_back(StreamCache& cache, Block* block) noexcept {
    std::size_t bytes = 0;
    while (block != nullptr) {
        Block& parked = *block;
        block = parked.link;
        bytes += parked.bytes;
        state_.totals.let_go(parked.bytes);
        state_.heap.put_back(parked, cache.memory.marks.stamp());
    }
    return bytes;
}

std::size_t FreeBlocks::flush_all() noexcept {
    std::size_t bytes = 0;
    for (const auto& cache : state_.caches) {
        scalars_.end_empty(*cache);
        bytes += put_back(*cache, cache->take_all());
    }
    return bytes;
}

std::size_t FreeBlocks::bytes() const noexcept {
    std::size_t bytes = 0;
    for (const auto& cache : state_.caches) {
        for (const Slab& slab : cache->memory.slabs) bytes += slab.free_bytes;
    }
    return bytes;
}

}  // namespace tensorpool::device
