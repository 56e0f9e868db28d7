#include "device/caching/free_blocks.hpp"

namespace tensorpool::device {

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
