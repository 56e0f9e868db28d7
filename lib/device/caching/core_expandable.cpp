#include <algorithm>

#include "device/caching/caching_core.hpp"

// More memory where the device has virtual memory: granules are mapped where a request finds room
// between blocks, lowest addresses first. They come from free blocks whose work is done, as far as
// more would be held than is good, and otherwise from the device.

namespace tensorpool::device {
namespace {

// As slab_goal_sixteenths of core_growth.cpp.
constexpr unsigned granule_goal_sixteenths = 1;

/// Address space for one stream and pool, of which there may be several: as much as the device
/// has, and as much again, so that a run of addresses is found between blocks in use.
std::size_t range_bytes(std::size_t total, Pool pool) noexcept {
    return pool == Pool::small ? total / 4 : 2 * total;
}

}  // namespace

/// What one request moves, maps and makes. Elements of granule tables under it are its own.
struct CachingCore::Granules {
    BlockHeap::Place place;
    std::vector<Block*> moved;  // where they come from; `link` to itself: still mapped there
    std::vector<MemoryHandle> handles;      // neither here nor there
    const std::byte* mapped_end = nullptr;  // of the place, as far as it got
    std::size_t fresh_bytes = 0;            // that may be made
    std::size_t created_bytes = 0;
    std::size_t destroyed_bytes = 0;
};

CachingCore::Outcome CachingCore::grow_in_place(StreamCache& cache, const Request& request,
                                                Lock& lock) {
    keep_soft_limit(request.rounded, lock);
    Outcome outcome;
    for (const bool all : {false, true}) {
        DeviceStatus status = DeviceStatus::ok;
        const BlockHeap::Place place = find_place(cache, request, lock, status);
        if (place.first == nullptr) return failed(status, Cause::own_use);
        outcome = map_place(place, request, all, lock);
        if (outcome.block != nullptr || outcome.status != DeviceStatus::out_of_memory) break;
    }
    return outcome;
}

BlockHeap::Place CachingCore::find_place(StreamCache& cache, const Request& request, Lock& lock,
                                         DeviceStatus& status) {
    for (Slab& slab : cache.memory.slabs) {
        if (!slab.is_expandable() || slab.pool != request.pool) continue;
        const BlockHeap::Place place = heap_.take_place(slab, request.rounded);
        if (place.first != nullptr) return place;
    }
    Slab* slab = take_empty_range(cache, request);
    if (slab == nullptr) slab = add_range(cache, request, lock, status);
    return slab != nullptr ? heap_.take_place(*slab, request.rounded) : BlockHeap::Place{};
}

/// One of another stream in which nothing is mapped: streams that come and end would take more
/// addresses each time.
Slab* CachingCore::take_empty_range(StreamCache& cache, const Request& request) noexcept {
    for (const auto& other : caches_) {
        for (Slab& slab : other->memory.slabs) {
            const bool fits = slab.pool == request.pool && slab.bytes >= request.rounded;
            if (!fits || !slab.is_empty_range()) continue;
            heap_.move_range(slab, cache);
            return &slab;
        }
    }
    return nullptr;
}

/// Half as many addresses as long as the device refuses, down to what the request needs.
Slab* CachingCore::add_range(StreamCache& cache, const Request& request, Lock& lock,
                             DeviceStatus& status) {
    const std::size_t least = base::align_up(request.rounded, granule_);
    std::size_t bytes =
        std::max(least, base::align_up(range_bytes(total_bytes_, request.pool), granule_));
    void* address = nullptr;
    lock.unlock();
    while (true) {
        status = backend_.reserve_addresses(device_, bytes, &address);
        if (status == DeviceStatus::ok || bytes == least) break;
        bytes = std::max(least, base::align_up(bytes / 2, granule_));
    }
    lock.lock();
    if (status != DeviceStatus::ok) return nullptr;
    try {
        return &heap_.add_expandable(cache, request.pool, static_cast<std::byte*>(address), bytes,
                                     granule_);
    } catch (...) {
        (void)backend_.release_addresses(device_, address, bytes);
        throw;
    }
}

CachingCore::Outcome CachingCore::map_place(const BlockHeap::Place& place, const Request& request,
                                            bool all, Lock& lock) {
    Granules granules;
    granules.place = place;
    const std::size_t wanted = bytes_to_move(place.missing, request, all);
    try {
        granules.handles.reserve(place.missing / granule_);
        granules.moved = take_idle_granules(*place.slab->home, wanted);
    } catch (...) {
        heap_.untake_place(place);  // nothing was moved
        throw;
    }
    std::size_t moved = 0;
    for (const Block* block : granules.moved) moved += block->bytes;
    const std::size_t fresh = place.missing - moved;
    if (!may_grow(fresh)) {
        for (Block* block : granules.moved) heap_.put_back(*block, block->stamp);
        heap_.untake_place(place);
        return failed(DeviceStatus::out_of_memory, Cause::limit);
    }
    growing_bytes_ += fresh;
    granules.fresh_bytes = fresh;
    lock.unlock();
    const DeviceStatus status = move_granules(granules);
    lock.lock();
    growing_bytes_ -= fresh;
    settle(granules);
    if (status != DeviceStatus::ok) {
        heap_.untake_place(place);
        return failed(status, status == DeviceStatus::in_capture ? Cause::capture : Cause::own_use);
    }
    Outcome outcome;
    outcome.block = heap_.merge_place(place, request.rounded);
    outcome.memory = AllocatorWatch::Memory::fresh;
    return outcome;
}

/// Of what is missing, what is to come from free blocks: all that would exceed the goal or the
/// limit.
std::size_t CachingCore::bytes_to_move(std::size_t missing, const Request& request,
                                       bool all) const noexcept {
    if (all) return missing;
    const std::size_t held =
        static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed)) +
        growing_bytes_;
    std::size_t most = request.repeats ? most_bytes : goal(request, granule_goal_sixteenths);
    if (hard_limit_ != 0) most = std::min(most, hard_limit_);
    const std::size_t fresh = most > held ? base::align_down(most - held, granule_) : 0;
    return missing - std::min(missing, fresh);
}

/// The stream's own first, then others'; of each the largest blocks first.
std::vector<Block*> CachingCore::take_idle_granules(StreamCache& first, std::size_t bytes) {
    std::vector<Block*> found;
    if (bytes == 0) return found;
    const auto collect = [&](StreamCache& cache) {
        if (cache.capture() != 0 || cache.memory.slabs.empty()) return;
        look_at_marks(cache);
        collect_idle(cache, Which::all, found);
    };
    collect(first);
    for (const auto& cache : caches_) {
        if (cache.get() != &first) collect(*cache);
    }
    std::erase_if(found, [](const Block* block) { return !block->slab->is_expandable(); });
    take_out(found, bytes);
    return found;
}

/// Without the lock. Where it fails, memory that was moved or made goes back to the device.
DeviceStatus CachingCore::move_granules(Granules& granules) noexcept {
    unmap(granules);
    DeviceStatus status = DeviceStatus::ok;
    const std::size_t needed = granules.place.missing / granule_;
    while (granules.handles.size() < needed && status == DeviceStatus::ok) {
        // Not instead of what could not be unmapped: the limit would not hold.
        if (granules.created_bytes == granules.fresh_bytes) {
            status = DeviceStatus::out_of_memory;
            break;
        }
        MemoryHandle handle = nullptr;
        status = backend_.create_memory(device_, granule_, &handle);
        if (status != DeviceStatus::ok) break;
        granules.handles.push_back(handle);  // there is room
        granules.created_bytes += granule_;
    }
    if (status == DeviceStatus::ok) status = map_missing(granules);
    if (status != DeviceStatus::ok) undo(granules);
    return status;
}

void CachingCore::unmap(Granules& granules) noexcept {
    for (Block* const block : granules.moved) {
        const DeviceStatus status = backend_.unmap_memory(device_, block->address, block->bytes);
        if (status == DeviceStatus::ok) watch_.losing(block->address, block->bytes);
        block->link = status == DeviceStatus::ok ? nullptr : block;
        if (status != DeviceStatus::ok) continue;
        for (std::byte* at = block->address; at != block->end(); at += granule_) {
            MemoryHandle& granule = block->slab->granule_at(at);
            granules.handles.push_back(granule);
            granule = nullptr;
        }
    }
}

DeviceStatus CachingCore::map_missing(Granules& granules) noexcept {
    const BlockHeap::Place& place = granules.place;
    const std::byte* const end = place.last->end();
    for (Block* block = place.first; block->address < end; block = block->next) {
        if (block->link == nullptr) continue;  // a free one, mapped already
        for (std::byte* at = block->address; at != block->end(); at += granule_) {
            const MemoryHandle handle = granules.handles.back();
            const DeviceStatus status = backend_.map_memory(device_, at, granule_, handle);
            if (status != DeviceStatus::ok) return status;
            watch_.gained(at, granule_);
            place.slab->granule_at(at) = handle;
            granules.handles.pop_back();
            granules.mapped_end = at + granule_;
        }
        if (block == place.last) break;
    }
    return DeviceStatus::ok;
}

void CachingCore::undo(Granules& granules) noexcept {
    const BlockHeap::Place& place = granules.place;
    for (Block* block = place.first;; block = block->next) {
        for (std::byte* at = block->address; block->link != nullptr && at != block->end();
             at += granule_) {
            if (at >= granules.mapped_end) break;
            watch_.losing(at, granule_);
            (void)backend_.unmap_memory(device_, at, granule_);
            granules.handles.push_back(place.slab->granule_at(at));
            place.slab->granule_at(at) = nullptr;
        }
        if (block == place.last) break;
    }
    for (const MemoryHandle handle : granules.handles) {
        (void)backend_.destroy_memory(device_, handle);
    }
    const std::size_t destroyed = granules.handles.size() * granule_;
    granules.destroyed_bytes = destroyed - std::min(destroyed, granules.created_bytes);
    granules.created_bytes = 0;
}

/// Counts, and makes holes where granules were taken from.
void CachingCore::settle(const Granules& granules) noexcept {
    for (Block* const block : granules.moved) {
        if (block->link == block) {
            heap_.put_back(*block, block->stamp);
        } else {
            heap_.unmapped(*block);
        }
    }
    if (granules.created_bytes != 0) {
        totals_.count_growth(granules.created_bytes);
        watch_.write(EntryKind::growth, granules.created_bytes);
    }
    if (granules.destroyed_bytes != 0) {
        totals_.count_give_back(granules.destroyed_bytes);
        watch_.write(EntryKind::give_back, granules.destroyed_bytes);
    }
    place_.note_capacity();
}

}  // namespace tensorpool::device
