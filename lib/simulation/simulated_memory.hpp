#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "device/host/range_map.hpp"
#include "simulation/address_arena.hpp"

namespace tensorpool::device {

/// Memory that is there: one `allocate`, one mapping, pinned or registered host memory.
struct Allocation {
    enum class Origin : std::uint8_t { device, mapped, pinned, registered };

    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    int device = 0;
    Origin origin = Origin::device;
    StorageKind kind = StorageKind::private_storage;
    bool host_reaches = false;  // at the same address
    bool ending = false;        // a stream will end it

    std::uintptr_t end() const noexcept { return address + bytes; }
    bool on_host() const noexcept {
        return origin == Origin::pinned || origin == Origin::registered;
    }
};

/// The memory of one simulated device: its addresses, and how much of its bytes is taken.
struct DeviceShare {
    std::unique_ptr<AddressArena> arena;
    std::size_t total = 0;
    std::size_t used = 0;
    std::size_t others = 0;  // of other processes
    std::size_t late = 0;    // given back, and not yet counted as free

    std::size_t room() const noexcept { return total - std::min(total, used + others); }
    DeviceMemoryInfo info() const noexcept { return {room() - std::min(room(), late), total}; }
};

/// The real bytes behind simulated devices: allocations, addresses without memory, and memory that
/// is mapped there. It also knows how much of each device is taken. One thread at a time.
class SimulatedMemory {
public:
    /// Throws std::bad_alloc where there is not so much address space.
    SimulatedMemory(const SimulationOptions& options, AddressArena::Forget forget);
    ~SimulatedMemory();
    SimulatedMemory(const SimulatedMemory&) = delete;
    SimulatedMemory& operator=(const SimulatedMemory&) = delete;

    DeviceShare& share(int device) noexcept { return shares_[static_cast<std::size_t>(device)]; }
    const DeviceShare& share(int device) const noexcept {
        return shares_[static_cast<std::size_t>(device)];
    }

    /// nullptr where there is not so much.
    void* allocate(int device, std::size_t bytes, StorageKind kind);
    void* allocate_pinned(int device, std::size_t bytes);
    /// False where a part of it is there already.
    bool register_pinned(int device, void* memory, std::size_t bytes);
    /// A stream will end it: no other call may.
    void begin_end(std::uintptr_t address) { allocations_.at(address).ending = true; }
    /// Ends what begins at the address: it is of `find_exact`.
    void end(std::uintptr_t address);

    void* reserve(int device, std::size_t bytes);
    /// False for what `reserve` did not give, or where something is mapped.
    bool release(void* address, std::size_t bytes);
    MemoryHandle create(int device, std::size_t bytes);
    /// False for one that is not there or is mapped.
    bool destroy(int device, MemoryHandle memory);
    enum class Mapped : std::uint8_t { yes, no_memory, not_there };
    Mapped map(int device, void* address, std::size_t bytes, MemoryHandle memory);
    /// False where that is not one whole mapping or several.
    bool can_unmap(int device, std::uintptr_t address, std::size_t bytes) const;
    /// REQUIRES: can_unmap. Contents go with their memory; false where there is no room to keep
    /// them, and then all is as before.
    bool unmap(std::uintptr_t address, std::size_t bytes);

    /// What is there at the address, or nullptr.
    const Allocation* find(std::uintptr_t address) const noexcept;
    const Allocation* find_exact(std::uintptr_t address) const noexcept;
    /// The first address of the range where nothing is, or its end.
    std::uintptr_t first_gap(std::uintptr_t address, std::size_t bytes) const noexcept;
    /// Whether the address is one that only a simulated device would have.
    bool simulated(std::uintptr_t address) const noexcept;
    MemoryHandle mapped_at(std::uintptr_t address) const noexcept;

private:
    struct Physical {
        int device = 0;
        std::size_t bytes = 0;
        std::uintptr_t mapped_at = 0;
        void* content = nullptr;  // while it is not mapped, of `bytes`; nullptr: nothing yet
    };

    void add(const Allocation& allocation) { allocations_.emplace(allocation.address, allocation); }
    void give_back(int device, std::size_t bytes) noexcept;
    bool keep_content(Physical& memory);
    void drop_contents(std::uintptr_t begin, std::uintptr_t end) noexcept;
    bool reserved_and_free(int device, std::uintptr_t address, std::size_t bytes) const;

    bool late_free_size_;
    bool unified_;
    std::size_t granularity_;
    std::vector<DeviceShare> shares_;
    AddressArena pinned_;
    std::map<std::uintptr_t, Allocation> allocations_;
    RangeMap<int> reservations_;  // of which device
    std::unordered_map<MemoryHandle, std::unique_ptr<Physical>> physical_;
    std::map<std::uintptr_t, MemoryHandle> mappings_;
};

}  // namespace tensorpool::device
