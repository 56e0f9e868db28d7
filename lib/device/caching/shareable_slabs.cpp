#include "device/caching/shareable_slabs.hpp"

#include "device/sharing/mapped_memory.hpp"

namespace tensorpool::device {

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
