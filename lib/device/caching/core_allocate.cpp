#include <algorithm>

#include "device/caching/caching_core.hpp"

// What an allocation does that found nothing in its stream's bins.

namespace tensorpool::device {

void* CachingCore::allocate_or_throw(std::size_t bytes, StreamHandle stream) {
    DeviceAllocationFailure failure;
    void* const block = allocate(bytes, stream, &failure);
    if (block == nullptr && bytes != 0) refuse(failure);
    return block;
}

void* CachingCore::allocate(std::size_t bytes, StreamHandle stream,
                            DeviceAllocationFailure* failure) {
    statistics::look_for_recorder();
    if (bytes == 0) return nullptr;
    const std::uint64_t capture = capture_of(stream);
    Lock lock(mutex_);
    StreamCache& cache = cache_of(stream, capture);
    const Request request = request_of(bytes, cache);
    Outcome outcome;
    if (is_too_large(bytes)) {
        outcome = failed(DeviceStatus::out_of_memory, Cause::request);
    } else {
        outcome.block = cache.take(request.rounded, bytes);
        if (outcome.block == nullptr) {
            outcome = obtain(cache, request, lock);
            if (outcome.block != nullptr) {
                const std::lock_guard guard(cache);
                cache.count_new(*outcome.block, bytes);
            }
        }
    }
    if (outcome.block == nullptr) {
        DeviceAllocationFailure unwanted;
        explain(outcome, request, failure != nullptr ? *failure : unwanted);
        return nullptr;
    }
    const AllocatorWatch::Seen seen = {outcome.block->address, outcome.block->bytes, bytes, stream};
    lock.unlock();
    if (is_watched()) watch_.handed_out(seen, outcome.memory);
    return seen.address;
}

Request CachingCore::request_of(std::size_t bytes, const StreamCache& cache) const noexcept {
    // Also without any slack a block serves what its slab was made for.
    const std::size_t slack = std::max(options_.oversize_slack_bytes, slab_step);
    Request request = {bytes, round_bytes(bytes), Pool::small, slack, false};
    const bool alone = !is_expandable(cache) && request.rounded >= options_.oversize_bytes;
    // A capture has one pool, so that what was reserved for it serves all sizes.
    if (bytes > small_limit && cache.capture() == 0)
        request.pool = alone ? Pool::oversize : Pool::large;
    return request;
}

/// Also what the device can never have, for which no tables of granules are made. Managed storage
/// may exceed the device: the rest of it lies on the host.
bool CachingCore::is_too_large(std::size_t bytes) const noexcept {
    const auto exceeds = [&](std::size_t limit) { return limit != 0 && bytes > limit; };
    return bytes > most_bytes || exceeds(options_.max_allocation) ||
           exceeds(abilities_.largest_allocation) ||
           (options_.storage != StorageKind::managed && exceeds(total_bytes_));
}

/// From the sets of the stream, after everything that it has parked went there.
Block* CachingCore::take_free(StreamCache& cache, const Request& request) {
    complete(cache.capture());
    flush(cache);
    Block* block = heap_.take_best(cache, request);
    // The other kind of a large block: whole, if it is not much too large, or part of a slab.
    if (block == nullptr && request.pool != Pool::small) {
        Request other = request;
        other.pool = request.pool == Pool::large ? Pool::oversize : Pool::large;
        block = heap_.take_best(cache, other);
    }
    if (block != nullptr) detail::add(totals_.free_hits, 1);
    return block;
}

CachingCore::Outcome CachingCore::obtain(StreamCache& cache, const Request& request, Lock& lock) {
    const auto pool = static_cast<std::size_t>(request.pool);
    while (true) {
        Outcome outcome;
        outcome.block = take_free(cache, request);
        if (outcome.block != nullptr) return outcome;
        // A callback may be told in the middle of that very growth.
        if (!cache.memory.growing[pool] || AllocatorWatch::is_telling()) break;
        grown_.wait(lock);  // what another thread is getting may do for both
    }
    Request growth = request;
    growth.repeats = cache.memory.growths.repeats(request.rounded);
    const Outcome outcome = grow(cache, growth, lock);
    const bool is_memory = outcome.status == DeviceStatus::out_of_memory;
    if (outcome.block != nullptr || !is_memory) return outcome;
    return under_pressure(cache, request, outcome, lock);
}

/// Blocks that other streams used and have passed are free. Not while the caller captures: then no
/// event may be asked.
void CachingCore::complete(std::uint64_t capture) noexcept {
    if (deferred_.is_empty() || capture != 0) return;
    deferred_.begin();
    for (const auto& stream : caches_) {
        while (Block* const block = deferred_.next(*stream)) {
            StreamCache& home = *block->home.load(std::memory_order_relaxed);
            // Under the lock, for nobody may get the block before; the backend does not call back.
            watch_.reusable({block->address, block->bytes, block->requested, home.stream()});
            heap_.put_back(*block, home.memory.marks.stamp());
        }
    }
}

std::size_t CachingCore::flush(StreamCache& cache) noexcept {
    return put_back_all(cache, cache.take_all());
}

/// A list of blocks that were parked.
std::size_t CachingCore::put_back_all(StreamCache& cache, Block* block) noexcept {
    std::size_t bytes = 0;
    while (block != nullptr) {
        Block& parked = *block;
        block = parked.link;
        bytes += parked.bytes;
        totals_.let_go(parked.bytes);
        heap_.put_back(parked, cache.memory.marks.stamp());
    }
    return bytes;
}

std::size_t CachingCore::flush_all() noexcept {
    std::size_t bytes = 0;
    for (const auto& cache : caches_) {
        end_empty_pages(*cache);
        bytes += flush(*cache);
    }
    return bytes;
}

std::size_t CachingCore::free_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const auto& cache : caches_) {
        for (const Slab& slab : cache->memory.slabs) bytes += slab.free_bytes;
    }
    return bytes;
}

}  // namespace tensorpool::device
