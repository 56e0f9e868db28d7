#pragma once

#include "device/caching/reclaim.hpp"
#include "device/sharing/shared_block_message.hpp"

namespace tensorpool::device {

// How far the bytes held may exceed the peak of bytes in use before free slabs are released for a
// new one, in sixteenths. Source: tests/device/caching/slabs_held_test.cpp.
inline constexpr unsigned slab_goal_sixteenths = 3;

inline std::size_t preferred_bytes(const Request& request, std::size_t xlarge) noexcept {
    static_assert(small_slab_bytes == slab_step);  // enough for a small request; captures need more
    const std::size_t needed = base::align_up(request.rounded, slab_step);
    if (request.pool != Pool::large) return needed;
    const bool fits_xlarge = request.rounded >= xlarge_request_bytes && needed <= xlarge / 2;
    return fits_xlarge ? xlarge : std::max(needed, large_slab_bytes);
}

// How far the bytes held may exceed the peak of bytes in use before granules move instead, in
// sixteenths. Source: tests/device/caching/slabs_held_test.cpp, as for slab_goal_sixteenths.
inline constexpr unsigned granule_goal_sixteenths = 1;

/// Address space of one range for one stream and pool. For large blocks it is twice the device's
/// memory, so that free runs of addresses remain between blocks in use. A stream may have several.
inline std::size_t range_bytes(std::size_t total, Pool pool) noexcept {
    return pool == Pool::small ? total / 4 : 2 * total;
}

/// Growth on devices with virtual memory: maps granules where a request finds room between blocks,
/// lowest addresses first. Granules come from free blocks with no pending work if new ones would
/// exceed the goal or the limit, and otherwise from the device.
class ExpandableSlabs {
public:
    ExpandableSlabs(AllocatorState& state, Reclaim& reclaim) noexcept
        : state_(state), reclaim_(reclaim) {}

    Outcome grow(StreamCache& cache, const Request& request) {
        reclaim_.keep_soft_limit(request.rounded);
        Outcome outcome;
        for (const bool all : {false, true}) {
            DeviceStatus status = DeviceStatus::ok;
            const BlockHeap::Run run = find_run(cache, request, status);
            if (run.first == nullptr) return Outcome::failed(status, Outcome::Cause::own_use);
            outcome = map_run(run, request, all);
            if (!outcome.lacks_memory()) break;
        }
        return outcome;
    }
    /// Unmaps a slab and releases its addresses, whatever is in it.
    void end(Slab& slab) noexcept {
        slab.holes.clear();
        const std::size_t count = slab.bytes / slab.granule;
        for (std::size_t i = 0; i < count; ++i) {
            if (slab.granules[i] == nullptr) continue;
            (void)state_.backend.unmap_memory(state_.device, slab.base + i * slab.granule,
                                              slab.granule);
            (void)state_.backend.destroy_memory(state_.device, slab.granules[i]);
        }
        (void)state_.backend.release_addresses(state_.device, slab.base, slab.bytes);
    }

private:
    /// The granules that one request moves, maps and creates. The elements of granule tables under
    /// them belong to the request's thread.
    struct Granules {
        BlockHeap::Run run;
        std::vector<Block*> moved;              // blocks to take them from; kept ones stay mapped
        std::vector<MemoryHandle> handles;      // unmapped, not yet mapped again
        const std::byte* mapped_end = nullptr;  // end of the part of the run mapped so far
        std::size_t fresh_bytes = 0;            // bytes that may be created
        std::size_t created_bytes = 0;
        std::size_t destroyed_bytes = 0;
    };

    BlockHeap::Run find_run(StreamCache& cache, const Request& request, DeviceStatus& status) {
        for (Slab& slab : cache.memory.slabs) {
            if (!slab.is_expandable() || slab.pool != request.pool) continue;
            const BlockHeap::Run run = state_.heap.take_run(slab, request.rounded);
            if (run.first != nullptr) return run;
        }
        Slab* slab = take_empty_range(cache, request);
        if (slab == nullptr) slab = add_range(cache, request, status);
        return slab != nullptr ? state_.heap.take_run(*slab, request.rounded) : BlockHeap::Run{};
    }
    /// Takes over another stream's range in which nothing is mapped. Otherwise streams that are
    /// created and destroyed in turn would use up more and more addresses.
    Slab* take_empty_range(StreamCache& cache, const Request& request) noexcept {
        for (const auto& other : state_.caches) {
            for (Slab& slab : other->memory.slabs) {
                const bool fits = slab.pool == request.pool && slab.bytes >= request.rounded;
                if (!fits || !slab.is_empty_range()) continue;
                state_.heap.move_range(slab, cache);
                return &slab;
            }
        }
        return nullptr;
    }
    Slab* add_range(StreamCache& cache, const Request& request, DeviceStatus& status) {
        const std::size_t granule = state_.granule_of(request.pool);
        const std::size_t least = base::align_up(request.rounded, granule);
        std::size_t bytes =
            std::max(least, base::align_up(range_bytes(state_.total_bytes, request.pool), granule));
        void* address = nullptr;
        {
            const Unlocked unlocked(state_.mutex);
            status = reserve_addresses(least, granule, bytes, address);
        }
        if (status != DeviceStatus::ok) return nullptr;
        try {
            return &state_.heap.add_expandable(cache, request.pool,
                                               static_cast<std::byte*>(address), bytes, granule);
        } catch (...) {
            (void)state_.backend.release_addresses(state_.device, address, bytes);
            throw;
        }
    }
    /// Halves the number of addresses while the device refuses, down to what the request needs.
    DeviceStatus reserve_addresses(std::size_t least, std::size_t granule, std::size_t& bytes,
                                   void*& address) noexcept {
        while (true) {
            const DeviceStatus status =
                state_.backend.reserve_addresses(state_.device, bytes, &address);
            if (status == DeviceStatus::ok || bytes == least) return status;
            bytes = std::max(least, base::align_up(bytes / 2, granule));
        }
    }

    Outcome map_run(const BlockHeap::Run& run, const Request& request, bool all) {
        Granules granules;
        granules.run = run;
        const std::size_t wanted = bytes_to_move(run.missing, request, all);
        try {
            granules.handles.reserve(run.missing / run.slab->granule);
            granules.moved =
                reclaim_.take_idle_granules(*run.slab->home, run.slab->granule, wanted);
        } catch (...) {
            state_.heap.untake_run(run);  // no granule was moved
            throw;
        }
        std::size_t moved = 0;
        for (const Block* block : granules.moved) moved += block->bytes;
        granules.fresh_bytes = run.missing - moved;
        Outcome::Cause limit = Outcome::Cause::limit;
        if (!state_.begin_growth(granules.fresh_bytes, *request.budget, limit)) {
            for (Block* block : granules.moved) state_.heap.put_back(*block, block->stamp);
            state_.heap.untake_run(run);
            return Outcome::refused(limit);
        }
        DeviceStatus status = DeviceStatus::ok;
        {
            const Unlocked unlocked(state_.mutex);
            status = move(granules);
        }
        settle(granules);
        if (status != DeviceStatus::ok) {
            state_.heap.untake_run(run);
            return Outcome::failed(status, Outcome::cause_of(status));
        }
        Outcome outcome;
        outcome.block = state_.heap.merge_run(run, request.rounded);
        outcome.memory = AllocatorWatch::Memory::fresh;
        return outcome;
    }
    /// Returns how many of the missing bytes must come from free blocks: those that would exceed
    /// the goal or the limit.
    std::size_t bytes_to_move(std::size_t missing, const Request& request,
                              bool all) const noexcept {
        if (all) return missing;
        const std::size_t held = state_.capacity();
        const bool may_exceed = !state_.options.keep_near_peak || request.repeats;
        std::size_t most = may_exceed ? max_bytes : state_.goal(request, granule_goal_sixteenths);
        if (state_.hard_limit != 0) most = std::min(most, state_.hard_limit);
        const std::size_t fresh =
            most > held ? base::align_down(most - held, state_.granule_of(request.pool)) : 0;
        return missing - std::min(missing, fresh);
    }
    /// Called without the lock. On failure, memory that was moved or created returns to the device.
    DeviceStatus move(Granules& granules) noexcept {
        if (!is_available(granules.fresh_bytes, granules.run.slab->granule)) {
            for (Block* const block : granules.moved) block->set(BlockState::kept);
            return DeviceStatus::out_of_memory;
        }
        unmap(granules);
        DeviceStatus status = create_missing(granules);
        if (status == DeviceStatus::ok) status = map_missing(granules);
        if (status != DeviceStatus::ok) undo(granules);
        return status;
    }
    /// Whether the device has memory for granules of `bytes` bytes in total. If not, creating them
    /// would first take all of its free memory, piece by piece. Its free size may leave out memory
    /// that the system can make free, so the device is tried before memory is refused.
    bool is_available(std::size_t bytes, std::size_t granule) noexcept {
        DeviceMemoryInfo info;
        if (bytes <= granule ||
            state_.backend.memory_info(state_.device, info) != DeviceStatus::ok ||
            bytes <= info.free_bytes) {
            return true;
        }
        MemoryHandle tried = nullptr;
        if (state_.create_memory(bytes, tried) != DeviceStatus::ok) {
            return false;
        }
        (void)state_.backend.destroy_memory(state_.device, tried);
        return true;
    }
    void unmap(Granules& granules) noexcept {
        for (Block* const block : granules.moved) {
            if (!reclaim_.unmap(*block)) continue;
            for (std::byte* at = block->address; at != block->end(); at += block->slab->granule) {
                granules.handles.push_back(std::exchange(block->slab->granule_at(at), nullptr));
            }
        }
    }
    DeviceStatus create_missing(Granules& granules) noexcept {
        const std::size_t granule = granules.run.slab->granule;
        const std::size_t needed = granules.run.missing / granule;
        while (granules.handles.size() < needed) {
            // Granules that could not be unmapped are not replaced by new ones, to keep the limit.
            if (granules.created_bytes == granules.fresh_bytes) return DeviceStatus::out_of_memory;
            MemoryHandle handle = nullptr;
            const DeviceStatus status = state_.create_memory(granule, handle);
            if (status != DeviceStatus::ok) return status;
            granules.handles.push_back(handle);  // capacity was reserved
            granules.created_bytes += granule;
        }
        return DeviceStatus::ok;
    }
    /// Maps each hole of the run at once.
    DeviceStatus map_missing(Granules& granules) noexcept {
        const BlockHeap::Run& run = granules.run;
        const std::byte* const end = run.last->end();
        for (Block* block = run.first; block->address < end; block = block->next) {
            if (!block->is(BlockState::mapping)) continue;  // a free block, already mapped
            const std::size_t count = block->bytes / run.slab->granule;
            const std::span<const MemoryHandle> handles(
                granules.handles.data() + granules.handles.size() - count, count);
            const DeviceStatus status = state_.backend.map_memories(state_.device, block->address,
                                                                    run.slab->granule, handles);
            if (status != DeviceStatus::ok) return status;
            state_.watch.gained(block->address, block->bytes);
            std::copy(handles.begin(), handles.end(), &run.slab->granule_at(block->address));
            granules.handles.resize(granules.handles.size() - count);
            granules.mapped_end = block->end();
            if (block == run.last) break;
        }
        return DeviceStatus::ok;
    }
    void undo(Granules& granules) noexcept {
        const BlockHeap::Run& run = granules.run;
        const std::size_t granule = run.slab->granule;
        for (Block* block = run.first;; block = block->next) {
            if (block->is(BlockState::mapping) && block->address < granules.mapped_end) {
                state_.watch.losing(block->address, block->bytes);
                for (std::byte* at = block->address; at != block->end(); at += granule) {
                    (void)state_.backend.unmap_memory(state_.device, at, granule);
                    granules.handles.push_back(std::exchange(run.slab->granule_at(at), nullptr));
                }
            }
            if (block == run.last) break;
        }
        for (const MemoryHandle handle : granules.handles) {
            (void)state_.backend.destroy_memory(state_.device, handle);
        }
        const std::size_t destroyed = granules.handles.size() * granule;
        granules.destroyed_bytes = destroyed - std::min(destroyed, granules.created_bytes);
        granules.created_bytes = 0;
    }
    /// Updates the counters, and makes holes where granules were taken from.
    void settle(const Granules& granules) noexcept {
        (void)reclaim_.settle(granules.moved);
        state_.end_growth(granules.fresh_bytes, granules.created_bytes);
        if (granules.destroyed_bytes == 0) return;
        state_.count_give_back(granules.destroyed_bytes);
        state_.end_give_back(granules.destroyed_bytes);
    }

    AllocatorState& state_;
    Reclaim& reclaim_;
};

/// Obtains memory from the device for one request: granules of expandable slabs, or slabs of fixed
/// size.
class Growth {
public:
    Growth(AllocatorState& state, Reclaim& reclaim, Captures& captures) noexcept
        : state_(state), reclaim_(reclaim), captures_(captures), expandable_(state, reclaim) {}

    /// Returns a block of new memory. Throws std::bad_alloc.
    Outcome grow(StreamCache& cache, const Request& request) {
        const Growing growing(cache.memory.growing[static_cast<std::size_t>(request.pool)],
                              state_.grown);
        if (request.pool == Pool::shareable) return grow_by_shareable(cache, request);
        return state_.is_expandable(cache) ? expandable_.grow(cache, request)
                                           : grow_by_slab(cache, request);
    }
    /// Allocates a slab for later captures. The outcome has no block.
    Outcome reserve(const Request& request) {
        return add_slab(captures_.reserved(), request, request.rounded);
    }
    /// Releases all slabs of a stream, whatever is in them, when the allocator is destroyed. The
    /// records of their blocks are destroyed with the heap.
    void end_slabs(StreamCache& cache) noexcept {
        for (FreeSet& set : cache.memory.free) set.clear();
        while (!cache.memory.slabs.empty()) {
            Slab& slab = cache.memory.slabs.front();
            cache.memory.slabs.pop_front();
            if (slab.is_expandable()) {
                expandable_.end(slab);
            } else {
                (void)state_.backend.deallocate(state_.device, slab.base, slab.bytes,
                                                state_.options.storage);
            }
            delete &slab;
        }
    }

private:
    /// Memory that other processes can open: a slab that is one block with one granule, because a
    /// descriptor opens all of a granule, and none is cut or handed out again.
    struct ShareableMemory {
        std::size_t bytes = 0;
        MemoryHandle handle = nullptr;
        void* address = nullptr;
    };

    Outcome grow_by_shareable(StreamCache& cache, const Request& request) {
        if (cache.capture() != 0) {
            return Outcome::failed(DeviceStatus::in_capture, Outcome::Cause::capture);
        }
        ShareableMemory memory;
        memory.bytes = request.rounded;
        Outcome::Cause limit = Outcome::Cause::limit;
        if (!state_.begin_growth(memory.bytes, *request.budget, limit))
            return Outcome::refused(limit);
        DeviceStatus status = DeviceStatus::ok;
        {
            const Unlocked unlocked(state_.mutex);
            status = obtain(memory);
        }
        if (status != DeviceStatus::ok) {
            state_.end_growth(memory.bytes, 0);
            return Outcome::failed(status, Outcome::cause_of(status));
        }
        Outcome outcome;
        outcome.block = add_shareable(cache, memory);
        outcome.memory = AllocatorWatch::Memory::fresh;
        return outcome;
    }
    DeviceStatus obtain(ShareableMemory& memory) noexcept {
        DeviceStatus status = state_.create_memory(memory.bytes, memory.handle);
        if (status != DeviceStatus::ok) return status;
        status = map_anywhere(state_.backend, state_.device, memory.bytes, memory.handle,
                              memory.address);
        if (status != DeviceStatus::ok) {
            (void)state_.backend.destroy_memory(state_.device, memory.handle);
        }
        return status;
    }
    /// Ends the growth. Throws std::bad_alloc after returning the memory.
    Block* add_shareable(StreamCache& cache, const ShareableMemory& memory) {
        Slab* slab = nullptr;
        BlockHeap::Run run;
        try {
            slab = &state_.heap.add_expandable(cache, Pool::shareable,
                                               static_cast<std::byte*>(memory.address),
                                               memory.bytes, memory.bytes);
            run = state_.heap.take_run(*slab, memory.bytes);
        } catch (...) {
            (void)state_.backend.unmap_memory(state_.device, memory.address, memory.bytes);
            (void)state_.backend.destroy_memory(state_.device, memory.handle);
            state_.end_growth(memory.bytes, 0);
            if (slab != nullptr) throw;  // keeps its addresses
            (void)state_.backend.release_addresses(state_.device, memory.address, memory.bytes);
            throw;
        }
        slab->granules[0] = memory.handle;
        Block* const block = state_.heap.merge_run(run, memory.bytes);
        state_.end_growth(memory.bytes, memory.bytes);
        state_.watch.gained(memory.address, memory.bytes);
        return block;
    }
    Outcome grow_by_slab(StreamCache& cache, const Request& request) {
        Outcome outcome;
        if (cache.capture() != 0 && captures_.take_reserved(cache, request)) {
            outcome.block = state_.heap.take_best(cache, request);
            return outcome;
        }
        const std::size_t preferred = preferred_bytes(request, state_.xlarge_bytes);
        const std::size_t least = base::align_up(request.rounded, slab_step);
        outcome = grow_by_bytes(cache, request, preferred);
        return outcome.lacks_memory() && least < preferred ? grow_by_bytes(cache, request, least)
                                                           : outcome;
    }
    Outcome grow_by_bytes(StreamCache& cache, const Request& request, std::size_t bytes) {
        if (cache.capture() == 0) {
            reclaim_.keep_soft_limit(bytes);
            const std::size_t capacity = state_.capacity() + bytes;
            const std::size_t wanted = state_.goal(request, slab_goal_sixteenths);
            if (state_.options.keep_near_peak && capacity > wanted && !request.repeats)
                (void)reclaim_.give_back(Reclaim::Which::whole_slabs, capacity - wanted);
        }
        Outcome outcome = add_slab(cache, request, bytes);
        if (outcome.status != DeviceStatus::ok) return outcome;
        outcome.block = state_.heap.take_best(cache, request);
        outcome.memory = AllocatorWatch::Memory::fresh;
        return outcome;
    }
    Outcome add_slab(StreamCache& cache, const Request& request, std::size_t bytes) {
        Outcome::Cause limit = Outcome::Cause::limit;
        if (!state_.begin_growth(bytes, *request.budget, limit)) return Outcome::refused(limit);
        void* memory = nullptr;
        DeviceStatus status = DeviceStatus::ok;
        {
            const Unlocked unlocked(state_.mutex);
            status = state_.backend.allocate(state_.device, bytes, state_.options.storage, &memory);
        }
        if (status == DeviceStatus::ok) {
            keep_slab(cache, request.pool, memory, bytes);
        } else {
            state_.end_growth(bytes, 0);
        }
        return Outcome::failed(status, Outcome::cause_of(status));
    }
    /// Adds newly allocated memory as a slab, and ends the growth. Throws std::bad_alloc after
    /// returning the memory.
    void keep_slab(StreamCache& cache, Pool pool, void* memory, std::size_t bytes) {
        try {
            state_.heap.add_slab(cache, pool, static_cast<std::byte*>(memory), bytes);
        } catch (...) {
            {
                const Unlocked unlocked(state_.mutex);
                (void)state_.backend.deallocate(state_.device, memory, bytes,
                                                state_.options.storage);
            }
            state_.end_growth(bytes, 0);
            throw;
        }
        state_.end_growth(bytes, bytes);
        state_.watch.gained(memory, bytes);
        if (captures_.has_slabs_of(cache)) detail::add(state_.totals.captured_bytes, bytes);
    }

    AllocatorState& state_;
    Reclaim& reclaim_;
    Captures& captures_;
    ExpandableSlabs expandable_;
};

}  // namespace tensorpool::device
