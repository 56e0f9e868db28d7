#include <algorithm>
#include <numeric>

#include "device/caching/caching_core.hpp"

// Memory that no block in use lies in goes back to the device, once no work uses it.

namespace tensorpool::device {
namespace {

std::size_t index(const Block& block) noexcept {
    return static_cast<std::size_t>(block.slab->pool);
}

/// Chances to be used that a free block of this stream has missed.
std::uint64_t age(const StreamCache& cache, const Block& block) noexcept {
    return cache.memory.searches[index(block)] - block.born;
}

bool has_granules(const Block& block) noexcept {
    const Slab& slab = *block.slab;
    const auto begin = static_cast<std::size_t>(block.address - slab.base);
    return base::align_up(begin, slab.granule) <
           base::align_down(begin + block.bytes, slab.granule);
}

std::uint64_t mean_age(const std::vector<Block*>& blocks) noexcept {
    std::uint64_t sum = 0;
    for (const Block* block : blocks) {
        sum += age(*block->home.load(std::memory_order_relaxed), *block);
    }
    return blocks.empty() ? 0 : sum / blocks.size();
}

}  // namespace

/// Asks how far the stream has come, and leaves a mark in it if it is still at work.
void CachingCore::look_at_marks(StreamCache& cache) noexcept {
    StreamMarks& marks = cache.memory.marks;
    CaptureState state;
    (void)backend_.capture_state(device_, cache.stream(), state);
    if (state.capturing) return;  // it may not be asked, and an event would be part of the graph
    if (backend_.query_stream(device_, cache.stream()) == DeviceStatus::ok) {
        if (marks.is_waiting()) events_.give(marks.reach());
        return marks.pass_all();
    }
    if (marks.is_waiting()) {
        if (backend_.query_event(device_, marks.event()) != DeviceStatus::ok) return;
        events_.give(marks.reach());
    }
    try {
        const EventHandle event = events_.take();
        if (event == nullptr) return;
        if (backend_.record_event(device_, event, cache.stream()) == DeviceStatus::ok) {
            detail::add(totals_.events, 1);
            marks.wait_for(event);
        } else {
            events_.give(event);
        }
    } catch (...) {
        return;  // no memory for it: asked again the next time
    }
}

bool CachingCore::is_idle(const StreamCache& cache, const Block& block) const noexcept {
    return cache.memory.marks.has_passed(block.stamp);
}

/// Free blocks that can go back, or that granules of can.
void CachingCore::collect_idle(StreamCache& cache, Which which, std::vector<Block*>& found) const {
    for (FreeSet& set : cache.memory.free) {
        for (auto block = set.rbegin(); block != set.rend(); ++block) {
            const Slab& slab = *block->slab;
            const bool whole = !slab.is_expandable() && block->bytes == slab.bytes;
            const bool part = slab.is_expandable() && which != Which::whole_slabs &&
                              block->bytes >= slab.granule && has_granules(*block);
            if ((whole || part) && is_idle(cache, *block)) found.push_back(&*block);
        }
    }
}

/// Up to about `bytes` of it, or all that is older than the mean. What came of it. Throws
/// std::bad_alloc; then nothing has changed.
std::size_t CachingCore::give_back(Which which, std::size_t bytes, Lock& lock) {
    std::vector<Block*> found;
    for (const auto& cache : caches_) {
        if (cache->capture() != 0 || cache->memory.slabs.empty()) continue;
        look_at_marks(*cache);
        collect_idle(*cache, which, found);
    }
    const auto age_of = [](const Block* block) {
        return age(*block->home.load(std::memory_order_relaxed), *block);
    };
    if (which == Which::aged) {
        const std::uint64_t mean = mean_age(found);
        std::erase_if(found, [&](const Block* block) { return age_of(block) < mean; });
    }
    std::stable_sort(found.begin(), found.end(), [&](const Block* one, const Block* other) {
        return age_of(one) > age_of(other);
    });
    take_out(found, bytes);
    return give_back(found, lock);
}

/// Takes free blocks, or their whole granules, out of the sets until there are `bytes`; the rest of
/// the list goes.
void CachingCore::take_out(std::vector<Block*>& blocks, std::size_t bytes) noexcept {
    std::size_t sum = 0;
    std::size_t count = 0;
    try {
        for (; count < blocks.size() && sum < bytes; ++count) {
            Block*& block = blocks[count];
            if (block->slab->is_expandable()) {
                block = heap_.take_granules(*block, bytes - sum);
            } else {
                heap_.take_out(*block);
            }
            sum += block->bytes;
        }
    } catch (...) {
        // no memory for a record: what was taken so far has to do
    }
    blocks.resize(count);
}

/// REQUIRES: taken blocks, whole slabs or whole granules.
std::size_t CachingCore::give_back(std::vector<Block*>& blocks, Lock& lock) noexcept {
    if (blocks.empty()) return 0;
    ++returns_;
    lock.unlock();
    for (Block* const block : blocks) {
        const StreamHandle stream = block->home.load(std::memory_order_relaxed)->stream();
        if (is_watched()) watch_.released(block->address, block->bytes, stream);
        if (return_to_device(*block) != DeviceStatus::ok) block->link = block;
    }
    lock.lock();
    if (--returns_ == 0) grown_.notify_all();
    std::size_t bytes = 0;
    for (Block* const block : blocks) {
        if (block->link == block) {  // the device did not take it
            heap_.put_back(*block, block->stamp);
            continue;
        }
        bytes += block->bytes;
        if (block->slab->is_expandable()) {
            heap_.unmapped(*block);
        } else {
            heap_.remove_slab(*block->slab);
        }
    }
    if (bytes == 0) return 0;
    totals_.count_give_back(bytes);
    place_.note_capacity();
    watch_.write(EntryKind::give_back, bytes);
    return bytes;
}

/// Without the lock. Not ok when it is still there.
DeviceStatus CachingCore::return_to_device(Block& block) noexcept {
    Slab& slab = *block.slab;
    block.link = nullptr;
    if (!slab.is_expandable()) {
        watch_.losing(block.address, block.bytes);
        const DeviceStatus status =
            backend_.deallocate(device_, block.address, block.bytes, options_.storage);
        if (status != DeviceStatus::ok) watch_.gained(block.address, block.bytes);
        return status;
    }
    const DeviceStatus status = backend_.unmap_memory(device_, block.address, block.bytes);
    if (status != DeviceStatus::ok) return status;
    watch_.losing(block.address, block.bytes);
    for (std::byte* at = block.address; at != block.end(); at += slab.granule) {
        MemoryHandle& granule = slab.granule_at(at);
        (void)backend_.destroy_memory(device_, granule);
        granule = nullptr;
    }
    return DeviceStatus::ok;
}

void CachingCore::keep_soft_limit(std::size_t growth, Lock& lock) {
    if (soft_limit_ == 0) return;
    const std::size_t capacity =
        static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed)) +
        growing_bytes_ + growth;
    if (capacity <= soft_limit_) return;
    const std::size_t bytes = give_back(Which::aged, capacity - soft_limit_, lock);
    if (bytes != 0) watch_.write(EntryKind::aged, bytes);
}

/// Waits for all work of the device; what is free by then is idle. The bytes of that, given back.
/// Not while a stream is captured: that ends its capture.
std::size_t CachingCore::synchronize(Lock& lock) noexcept {
    if (is_any_captured()) return 0;
    std::vector<std::uint64_t> stamps;
    try {
        stamps.reserve(caches_.size());
    } catch (...) {
        return 0;
    }
    for (const auto& cache : caches_) stamps.push_back(cache->memory.marks.begin_wait());
    lock.unlock();
    const DeviceStatus status = backend_.synchronize_device(device_);
    if (status == DeviceStatus::ok && abilities_.late_free_size) {
        (void)backend_.settle_memory(device_);
    }
    lock.lock();
    detail::add(totals_.synchronizations, 1);
    if (status != DeviceStatus::ok) return 0;
    // New ones may have come meanwhile: at the end, with marks of their own.
    for (std::size_t i = 0; i < stamps.size(); ++i) caches_[i]->memory.marks.pass(stamps[i]);
    complete(0);
    flush_all();
    try {
        return give_back(Which::all, most_bytes, lock);
    } catch (...) {
        return 0;
    }
}

std::size_t CachingCore::trim() noexcept try {
    Lock lock(mutex_);
    complete(0);
    flush_all();
    return is_any_captured() ? 0 : give_back(Which::all, most_bytes, lock);
} catch (...) {
    return 0;  // no memory for the list of what to give back
}

}  // namespace tensorpool::device
