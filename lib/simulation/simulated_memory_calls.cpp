#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using namespace device;

namespace {

[[noreturn]] void run_out(const std::string& text) {
    throw DeviceError(DeviceStatus::out_of_memory, text);
}

[[noreturn]] void run_out(const Simulation& s, int device, std::size_t bytes) {
    run_out(std::to_string(bytes) + " bytes requested, " +
            std::to_string(s.memory.share(device).info().free_bytes) + " free");
}

bool exceeds(std::size_t bytes, std::size_t limit) noexcept {
    return limit != 0 && bytes > limit;
}

void check_request(const Simulation& s, std::size_t bytes) {
    if (bytes == 0) refuse("0 bytes");
    if (exceeds(bytes, s.book.faults().largest_request)) run_out("a fault on demand");
}

bool knows(const SimulationOptions& options, StorageKind kind) noexcept {
    if (kind == StorageKind::shared) return options.shared_storage;
    return kind == StorageKind::private_storage || options.managed_storage;
}

// Returns the allocation that begins at the address and has this origin, or nullptr.
const Allocation* find(const Simulation& s, const void* memory, Allocation::Origin origin) {
    const Allocation* const found = s.memory.find_exact(number(memory));
    return found != nullptr && found->origin == origin ? found : nullptr;
}

// Returns the allocation that `deallocate` may free at the address, or nullptr.
const Allocation* ending(const Simulation& s, int device, void* memory, std::size_t bytes) {
    const Allocation* const found = find(s, memory, Allocation::Origin::device);
    const bool right = found != nullptr && found->device == device && found->bytes == bytes;
    return right && !found->ending ? found : nullptr;
}

// Rejects a call that cannot free anything at the address. It is a hazard too, unless memory exists
// there and only another argument is wrong.
[[noreturn]] void refuse_end(Simulation& s, const char* call, const void* memory,
                             const char* text) {
    const Allocation* const there = s.memory.find(number(memory));
    if (there == nullptr || there->ending) {
        s.lifetimes.wrong_end(s.watch.host_operation(call), number(memory));
    }
    refuse(text);
}

// Runs the pending work of all devices first if some of it may still use the memory.
void end_lifetime(Simulation& s, SimulationLock& lock, std::uintptr_t address, const char* call,
                  LifetimeTracker::Gone gone = LifetimeTracker::Gone::no) {
    const device::Operation operation = s.watch.host_operation(call);
    if (!s.lifetimes.end(operation, address, s.watch.host, gone)) s.scheduler.drain(lock);
}

// Managed memory of any device may be accessed by all.
void check_managed(const Simulation& s, const void* memory, std::size_t bytes) {
    const Allocation* const found = s.memory.find(number(memory));
    const bool is_managed = found != nullptr && found->kind == StorageKind::managed;
    if (bytes == 0 || !is_managed || bytes > found->end() - number(memory)) {
        refuse("not a part of managed memory");
    }
}

void check_range(const Simulation& s, const void* address, std::size_t bytes) {
    const std::size_t granularity = s.options.granularity;
    if (bytes == 0 || !base::is_aligned(bytes, granularity) ||
        !base::is_aligned(address, granularity)) {
        refuse("expected multiples of " + std::to_string(granularity) + " above 0");
    }
}

void begin_mapping(Simulation& s, std::uintptr_t address, std::size_t bytes, MemoryHandle memory) {
    s.lifetimes.begin(s.watch.host_operation("map_memory"), address, bytes,
                      s.options.unified_memory);
    s.lifetimes.restore(memory, address);
}

void end_mappings(Simulation& s, SimulationLock& lock, std::uintptr_t begin, std::uintptr_t end) {
    for (std::uintptr_t address = begin; address < end;) {
        const std::size_t bytes = s.memory.find(address)->bytes;
        s.lifetimes.save(s.memory.mapped_at(address), address, bytes);
        end_lifetime(s, lock, address, "unmap_memory");
        address += bytes;
    }
}

}  // namespace

DeviceStatus SimulatedBackend::allocate(int device, std::size_t bytes, StorageKind kind,
                                        void** memory) noexcept {
    return simulation_->call(SimulatedCall::allocate, device, [&](auto& s, auto&) {
        check_request(s, bytes);
        if (!knows(s.options, kind)) throw DeviceError(DeviceStatus::not_supported, "");
        void* const found = exceeds(bytes, s.options.largest_allocation)
                                ? nullptr
                                : s.memory.allocate(device, bytes, kind);
        if (found == nullptr) run_out(s, device, bytes);
        paint_fresh(s.options, found, bytes);
        s.lifetimes.begin(s.watch.host_operation("allocate"), number(found), bytes,
                          s.memory.find(number(found))->host_reaches);
        *memory = found;
    });
}

DeviceStatus SimulatedBackend::deallocate(int device, void* memory, std::size_t bytes,
                                          StorageKind kind) noexcept {
    return simulation_->call(SimulatedCall::deallocate, device, [&](auto& s, auto& lock) {
        if (memory == nullptr) return;
        const Allocation* const found = ending(s, device, memory, bytes);
        if (found == nullptr || found->kind != kind) {
            refuse_end(s, "deallocate", memory, "no such allocation");
        }
        end_lifetime(s, lock, number(memory), "deallocate");
        s.memory.end(number(memory));
    });
}

DeviceStatus SimulatedBackend::allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                              void** memory) noexcept {
    return simulation_->call(SimulatedCall::allocate_async, device, [&](auto& s, auto&) {
        const auto on = s.streams.get(device, stream);
        s.captures.check_free(*on, "allocate_async");
        check_request(s, bytes);
        void* const found = s.memory.allocate(device, bytes, StorageKind::private_storage);
        if (found == nullptr) run_out(s, device, bytes);
        paint_fresh(s.options, found, bytes);
        const device::Operation by = s.ordering.next_operation(*on, "allocate_async");
        s.lifetimes.begin(by, number(found), bytes, false, by);
        *memory = found;
    });
}

DeviceStatus SimulatedBackend::deallocate_async(int device, void* memory, std::size_t bytes,
                                                StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::deallocate_async, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        s.captures.check_free(*found, "deallocate_async");
        if (ending(s, device, memory, bytes) == nullptr) {
            refuse_end(s, "deallocate_async", memory, "no such allocation");
        }
        const auto address = number(memory);
        const device::Operation operation = s.ordering.next_operation(*found, "deallocate_async");
        (void)s.lifetimes.end(operation, address, found->clock);
        s.memory.begin_end(address);
        device::Work work;
        work.then = [&s, address] { s.memory.end(address); };
        s.enqueue(lock, *found, std::move(work));
    });
}

// Freed memory is kept nowhere.
DeviceStatus SimulatedBackend::set_release_threshold(int device, std::size_t) noexcept {
    return simulation_->call(SimulatedCall::set_release_threshold, device, [](auto&, auto&) {});
}

DeviceStatus SimulatedBackend::trim_stream_ordered(int device, std::size_t& given_back) noexcept {
    return simulation_->call(SimulatedCall::trim_stream_ordered, device,
                             [&](auto&, auto&) { given_back = 0; });
}

void* SimulatedBackend::host_pointer(int device, void* memory) noexcept {
    void* found = nullptr;
    (void)simulation_->call(SimulatedCall::host_pointer, device, [&](auto& s, auto&) {
        const Allocation* const there = s.memory.find(number(memory));
        const bool reached = there != nullptr && there->host_reaches && !there->on_host();
        if (reached && there->device == device) found = memory;
    });
    return found;
}

DeviceStatus SimulatedBackend::advise_memory(int device, void* memory, std::size_t bytes,
                                             MemoryAdvice, Processor) noexcept {
    return simulation_->call(SimulatedCall::advise_memory, device,
                             [&](auto& s, auto&) { check_managed(s, memory, bytes); });
}

DeviceStatus SimulatedBackend::prefetch_memory(int device, void* memory, std::size_t bytes,
                                               Processor, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::prefetch_memory, device, [&](auto& s, auto&) {
        s.captures.check_free(*s.streams.get(device, stream), "prefetch_memory");
        check_managed(s, memory, bytes);
    });
}

// Pinned host memory -----------------------------------------------------------------------------

DeviceStatus SimulatedBackend::allocate_pinned(int device, std::size_t bytes,
                                               void** memory) noexcept {
    return simulation_->call(SimulatedCall::allocate_pinned, device, [&](auto& s, auto&) {
        if (bytes == 0) refuse("0 bytes");
        void* const found = s.memory.allocate_pinned(device, bytes);
        if (found == nullptr) run_out("the host has no more");
        paint_fresh(s.options, found, bytes);
        s.lifetimes.begin(s.watch.host_operation("allocate_pinned"), number(found), bytes, true);
        *memory = found;
    });
}

DeviceStatus SimulatedBackend::deallocate_pinned(int device, void* memory,
                                                 std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::deallocate_pinned, device, [&](auto& s, auto& lock) {
        if (memory == nullptr) return;
        const Allocation* const found = find(s, memory, Allocation::Origin::pinned);
        if (found == nullptr || found->bytes != bytes) {
            refuse_end(s, "deallocate_pinned", memory, "no such pinned memory");
        }
        end_lifetime(s, lock, number(memory), "deallocate_pinned");
        s.memory.end(number(memory));
    });
}

DeviceStatus SimulatedBackend::register_pinned(int device, void* memory,
                                               std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::register_pinned, device, [&](auto& s, auto&) {
        if (memory == nullptr || bytes == 0) refuse("nothing to register");
        if (!s.memory.register_pinned(device, memory, bytes)) {
            refuse("a part of it is registered already");
        }
        s.lifetimes.begin(s.watch.host_operation("register_pinned"), number(memory), bytes, true);
    });
}

DeviceStatus SimulatedBackend::unregister_pinned(int device, void* memory) noexcept {
    return simulation_->call(SimulatedCall::unregister_pinned, device, [&](auto& s, auto& lock) {
        if (find(s, memory, Allocation::Origin::registered) == nullptr) {
            refuse("it is not registered");
        }
        const auto address = number(memory);
        end_lifetime(s, lock, address, "unregister_pinned", LifetimeTracker::Gone::yes);
        s.memory.end(address);
    });
}

// Virtual memory ---------------------------------------------------------------------------------

DeviceStatus SimulatedBackend::reserve_addresses(int device, std::size_t bytes,
                                                 void** address) noexcept {
    return simulation_->call(SimulatedCall::reserve_addresses, device, [&](auto& s, auto&) {
        check_range(s, nullptr, bytes);
        void* const found = s.memory.reserve(device, bytes);
        if (found == nullptr) run_out("no such address space");
        *address = found;
    });
}

DeviceStatus SimulatedBackend::release_addresses(int device, void* address,
                                                 std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::release_addresses, device, [&](auto& s, auto&) {
        check_range(s, address, bytes);
        if (!s.memory.release(address, bytes)) refuse("not reserved so, or in use");
        s.lifetimes.forget(number(address), bytes);
    });
}

DeviceStatus SimulatedBackend::create_memory(int device, std::size_t bytes,
                                             MemoryHandle* memory) noexcept {
    return simulation_->call(SimulatedCall::create_memory, device, [&](auto& s, auto&) {
        check_range(s, nullptr, bytes);
        MemoryHandle found = nullptr;
        if (!exceeds(bytes, s.book.faults().largest_request))
            found = s.memory.create(device, bytes);
        if (found == nullptr) run_out(std::to_string(bytes) + " bytes requested");
        *memory = found;
    });
}

DeviceStatus SimulatedBackend::destroy_memory(int device, MemoryHandle memory) noexcept {
    return simulation_->call(SimulatedCall::destroy_memory, device, [&](auto& s, auto&) {
        if (!s.memory.destroy(device, memory)) refuse("no such memory, or it is mapped");
        s.lifetimes.drop(memory);
    });
}

DeviceStatus SimulatedBackend::map_memory(int device, void* address, std::size_t bytes,
                                          MemoryHandle memory) noexcept {
    return simulation_->call(SimulatedCall::map_memory, device, [&](auto& s, auto&) {
        check_range(s, address, bytes);
        switch (s.memory.map(device, address, bytes, memory)) {
            case SimulatedMemory::Mapped::yes:
                return begin_mapping(s, number(address), bytes, memory);
            case SimulatedMemory::Mapped::no_memory:
                run_out("the host has no more");
            case SimulatedMemory::Mapped::not_there:
                break;
        }
        refuse("not whole unmapped memory at free reserved addresses");
    });
}

DeviceStatus SimulatedBackend::unmap_memory(int device, void* address, std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::unmap_memory, device, [&](auto& s, auto& lock) {
        check_range(s, address, bytes);
        const auto begin = number(address);
        if (!s.memory.can_unmap(device, begin, bytes)) {
            constexpr const char* text = "not one or more whole mappings";
            if (s.memory.find(begin) != nullptr) refuse(text);
            refuse_end(s, "unmap_memory", address, text);
        }
        end_mappings(s, lock, begin, begin + bytes);
        if (!s.memory.unmap(begin, bytes)) {
            throw DeviceError(DeviceStatus::failed,
                              "the host has no memory to keep the content in");
        }
    });
}

}  // namespace tensorpool
