#include "device/caching/growth.hpp"

#include <algorithm>

#include "device/sharing/shared_block_message.hpp"

namespace tensorpool::device {
namespace {

// How far the bytes held may exceed the peak of bytes in use before free slabs are released for a
// new one, in sixteenths. Source: tests/device/caching/slabs_held_test.cpp.
constexpr unsigned slab_goal_sixteenths = 3;

std::size_t preferred_bytes(const Request& request, std::size_t xlarge) noexcept {
    static_assert(small_slab_bytes == slab_step);  // enough for a small request; captures need more
    const std::size_t needed = base::align_up(request.rounded, slab_step);
    if (request.pool != Pool::large) return needed;
    const bool fits_xlarge = request.rounded >= xlarge_request_bytes && needed <= xlarge / 2;
    return fits_xlarge ? xlarge : std::max(needed, large_slab_bytes);
}

/// Marks a stream's growth in one pool until the object is destroyed, also by an exception.
class Growing {
public:
    Growing(bool& flag, std::condition_variable& grown) : flag_(flag), grown_(grown) {
        flag_ = true;
    }
    ~Growing() {
        flag_ = false;
        grown_.notify_all();
    }
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;

private:
    bool& flag_;
    std::condition_variable& grown_;
};

}  // namespace

Outcome Growth::grow(StreamCache& cache, const Request& request) {
    const Growing growing(cache.memory.growing[static_cast<std::size_t>(request.pool)],
                          state_.grown);
    if (request.pool == Pool::shareable) return shareable_.grow(cache, request);
    return state_.is_expandable(cache) ? expandable_.grow(cache, request)
                                       : grow_by_slab(cache, request);
}

Outcome Growth::grow_by_slab(StreamCache& cache, const Request& request) {
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

Outcome Growth::grow_by_bytes(StreamCache& cache, const Request& request, std::size_t bytes) {
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

Outcome Growth::reserve(const Request& request) {
    return add_slab(captures_.reserved(), request, request.rounded);
}

Outcome Growth::add_slab(StreamCache& cache, const Request& request, std::size_t bytes) {
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
void Growth::keep_slab(StreamCache& cache, Pool pool, void* memory, std::size_t bytes) {
    try {
        state_.heap.add_slab(cache, pool, static_cast<std::byte*>(memory), bytes);
    } catch (...) {
        {
            const Unlocked unlocked(state_.mutex);
            (void)state_.backend.deallocate(state_.device, memory, bytes, state_.options.storage);
        }
        state_.end_growth(bytes, 0);
        throw;
    }
    state_.end_growth(bytes, bytes);
    state_.record.note_capacity();
    state_.watch.gained(memory, bytes);
    if (captures_.has_slabs_of(cache)) detail::add(state_.totals.captured_bytes, bytes);
    state_.watch.write(EntryKind::growth, bytes);
}

void Growth::end_slabs(StreamCache& cache) noexcept {
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

struct ShareableSlabs::Memory {
    std::size_t bytes = 0;
    MemoryHandle handle = nullptr;
    void* address = nullptr;
};

Outcome ShareableSlabs::grow(StreamCache& cache, const Request& request) {
    if (cache.capture() != 0) {
        return Outcome::failed(DeviceStatus::in_capture, Outcome::Cause::capture);
    }
    Memory memory;
    memory.bytes = request.rounded;
    Outcome::Cause limit = Outcome::Cause::limit;
    if (!state_.begin_growth(memory.bytes, *request.budget, limit)) return Outcome::refused(limit);
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
    outcome.block = add_slab(cache, memory);
    outcome.memory = AllocatorWatch::Memory::fresh;
    return outcome;
}

DeviceStatus ShareableSlabs::obtain(Memory& memory) noexcept {
    DeviceStatus status = state_.create_memory(memory.bytes, memory.handle);
    if (status != DeviceStatus::ok) return status;
    status =
        map_anywhere(state_.backend, state_.device, memory.bytes, memory.handle, memory.address);
    if (status != DeviceStatus::ok) {
        (void)state_.backend.destroy_memory(state_.device, memory.handle);
    }
    return status;
}

/// Ends the growth. Throws std::bad_alloc after returning the memory.
Block* ShareableSlabs::add_slab(StreamCache& cache, const Memory& memory) {
    Slab* slab = nullptr;
    BlockHeap::Run run;
    try {
        slab = &state_.heap.add_expandable(cache, Pool::shareable,
                                           static_cast<std::byte*>(memory.address), memory.bytes,
                                           memory.bytes);
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
    state_.record.note_capacity();
    state_.watch.gained(memory.address, memory.bytes);
    state_.watch.write(EntryKind::growth, memory.bytes);
    return block;
}

}  // namespace tensorpool::device
