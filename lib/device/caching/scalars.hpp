#pragma once

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {

/// One small block cut into 64 positions of 8 bytes.
struct ScalarPage {
    static constexpr std::size_t scalar_bytes = 8;
    static constexpr std::size_t scalar_count = 64;
    static_assert(scalar_count * scalar_bytes == small_grain);

    Block* block = nullptr;
    std::uint64_t used = 0;  // one bit for each position
    // Set when another stream uses one of the scalars. No position is reused then, and when the
    // last scalar is freed, the block is deferred like any block that other streams use.
    bool closed = false;
    ScalarPage* next = nullptr;  // in its stream's list of open pages with a free position
    std::uint8_t bytes[scalar_count] = {};

    bool is_full() const noexcept { return ~used == 0; }
    /// REQUIRES: the page is not full.
    std::size_t lowest_free() const noexcept {
        return static_cast<std::size_t>(std::countr_one(used)) % scalar_count;
    }
};

inline std::size_t position_of(const Block& block, const void* address) noexcept {
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.address);
    return offset / ScalarPage::scalar_bytes;
}

inline std::uint64_t bit(std::size_t position) noexcept {
    return std::uint64_t{1} << position;
}

inline void unlink(StreamCache& cache, const ScalarPage& page) noexcept {
    for (ScalarPage** at = &cache.memory.pages; *at != nullptr; at = &(*at)->next) {
        if (*at != &page) continue;
        *at = page.next;
        return;
    }
}

/// Constants of up to 8 bytes, 64 of them in one small block, called a page. A page without scalars
/// in use is freed when the allocator looks for free memory.
class Scalars {
public:
    explicit Scalars(AllocatorState& state) noexcept : state_(state) {}

    /// Takes a record for a page to be opened. Throws std::bad_alloc.
    ScalarPage& take_record() { return records_.take(); }
    void give_record(ScalarPage& page) noexcept { records_.give(page); }
    void open(StreamCache& cache, Block& block, ScalarPage& page) noexcept {
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
    /// REQUIRES: the stream has a page with a free position.
    void* take(StreamCache& cache, std::size_t bytes) noexcept {
        ScalarPage& page = *cache.memory.pages;
        const std::size_t position = page.lowest_free();
        page.used |= bit(position);
        page.bytes[position] = static_cast<std::uint8_t>(bytes);
        if (page.is_full()) cache.memory.pages = page.next;
        const std::lock_guard guard(cache);
        cache.count_allocation(bytes, ScalarPage::scalar_bytes);
        return page.block->address + position * ScalarPage::scalar_bytes;
    }
    static bool has(const Block& block, const void* address) noexcept {
        const bool begins = base::is_aligned(
            static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.address),
            ScalarPage::scalar_bytes);
        return begins && block.page != nullptr &&
               (block.page->used & bit(position_of(block, address))) != 0;
    }
    /// REQUIRES: `has(block, address)`.
    void free(Block& block, void* address) noexcept {
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
    /// Closes a page of which another stream uses a scalar: it is freed as one block.
    void close(Block& block) noexcept {
        if (block.page->closed) return;
        block.page->closed = true;
        unlink(*block.home.load(std::memory_order_relaxed), *block.page);
    }
    /// Ends the stream's pages that have no scalar in use.
    void end_empty(StreamCache& cache) noexcept {
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

private:
    /// Frees the page's block like any other. REQUIRES: no scalar of it is in use, and it is in no
    /// list.
    void end(Block& block) noexcept {
        records_.give(*block.page);
        block.page = nullptr;
        block.set(BlockState::taken);
        if (block.uses != nullptr) return state_.deferred.defer(block);
        state_.totals.let_go(block.bytes);
        const StreamCache& home = *block.home.load(std::memory_order_relaxed);
        state_.heap.put_back(block, home.memory.marks.stamp());
    }

    AllocatorState& state_;
    RecordPool<ScalarPage> records_;
};

/// Finds free blocks in the sets of their streams. Fills the sets with blocks that streams parked
/// and with blocks that waited for other streams.
class FreeBlocks {
public:
    FreeBlocks(AllocatorState& state, Scalars& scalars) noexcept
        : state_(state), scalars_(scalars) {}

    /// Takes a block from the sets of the stream, after moving its parked blocks there. Returns
    /// nullptr if there is none. Throws std::bad_alloc.
    Block* take(StreamCache& cache, const Request& request) {
        complete();
        put_back(cache, cache.take_all());
        if (request.pool == Pool::shareable) return nullptr;
        Block* block = state_.heap.take_best(cache, request);
        // Large and oversize requests may use each other's blocks: whole if the excess is small, or
        // a part of a slab.
        if (block == nullptr && request.pool != Pool::small) {
            Request other = request;
            other.pool = request.pool == Pool::large ? Pool::oversize : Pool::large;
            block = state_.heap.take_best(cache, other);
        }
        if (block != nullptr) detail::add(state_.totals.free_hits, 1);
        return block;
    }
    /// Frees blocks whose other streams have passed.
    void complete() noexcept {
        if (state_.deferred.is_empty()) return;
        state_.deferred.begin();
        for (const auto& stream : state_.caches) {
            while (DeferrableBlock* const block = state_.deferred.next(stream->memory.queue)) {
                reuse(static_cast<Block&>(*block));
            }
        }
    }
    /// Frees the blocks behind the first `added` uses of this stream, which are known to be done.
    void complete_up_to(StreamCache& stream, std::uint64_t added) noexcept {
        while (DeferrableBlock* const block =
                   state_.deferred.next_up_to(stream.memory.queue, added)) {
            reuse(static_cast<Block&>(*block));
        }
    }
    /// Puts a list of parked blocks into the sets and returns their bytes.
    std::size_t put_back(StreamCache& cache, Block* block) noexcept {
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
    /// Puts the parked blocks of all streams into the sets and returns their bytes.
    std::size_t flush_all() noexcept {
        std::size_t bytes = 0;
        for (const auto& cache : state_.caches) {
            scalars_.end_empty(*cache);
            bytes += put_back(*cache, cache->take_all());
        }
        return bytes;
    }
    /// The bytes in the sets.
    std::size_t bytes() const noexcept {
        std::size_t bytes = 0;
        for (const auto& cache : state_.caches) {
            for (const Slab& slab : cache->memory.slabs) bytes += slab.free_bytes;
        }
        return bytes;
    }

    /// Puts a block that all streams have passed into the sets.
    // The note is sent under the lock, so that no other thread gets the block first. The backend
    // does not call back.
    void reuse(Block& block) noexcept {
        const StreamCache& home = *block.home.load(std::memory_order_relaxed);
        state_.watch.reusable({block.address, block.bytes, block.requested, home.stream()});
        state_.heap.put_back(block, home.memory.marks.stamp());
    }

private:
    AllocatorState& state_;
    Scalars& scalars_;
};

}  // namespace tensorpool::device
