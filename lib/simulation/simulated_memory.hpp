#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <unordered_map>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "device/host/range_map.hpp"

namespace tensorpool::device {

/// Addresses for the allocations of a simulated device. Freed ranges rest before they are handed
/// out again, so that an access after the free is recognized as one.
class AddressArena {
public:
    /// Called with each range that is about to be handed out again.
    using Forget = std::function<void(std::uintptr_t address, std::size_t bytes)>;

    /// Throws std::bad_alloc if `bytes` of address space cannot be reserved.
    AddressArena(std::size_t bytes, Forget forget);
    ~AddressArena();
    AddressArena(const AddressArena&) = delete;
    AddressArena& operator=(const AddressArena&) = delete;

    bool contains(std::uintptr_t address) const noexcept { return address - begin_ < bytes_; }
    /// Returns committed memory, rounded up to whole pages. Ranges of 2 MiB or more are aligned to
    /// 2 MiB. Returns nullptr if no range is free or the system refuses the memory.
    void* take(std::size_t bytes);
    /// Takes a range back; `bytes` is the size given to `take`. Its pages return to the system.
    void give(void* address, std::size_t bytes);

private:
    using Ranges = std::map<std::uintptr_t, std::size_t>;

    std::uintptr_t find(std::size_t bytes);
    std::uintptr_t find_from(Ranges::iterator first, Ranges::iterator last, std::size_t bytes);
    void wake_oldest();

    std::uintptr_t begin_ = 0;
    std::size_t bytes_;
    Forget forget_;
    Ranges free_;  // adjacent ranges are merged
    std::deque<std::pair<std::uintptr_t, std::size_t>> resting_;
    std::uintptr_t next_ = 0;  // end of the range that was taken last
};

/// Memory that exists: an allocation of a device, a mapping, or pinned or registered host memory.
struct Allocation {
    enum class Origin : std::uint8_t { device, mapped, pinned, registered };

    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    int device = 0;
    Origin origin = Origin::device;
    StorageKind kind = StorageKind::private_storage;
    bool host_reaches = false;  // the host can access it at the same address
    bool ending = false;        // a free of it is queued in a stream

    std::uintptr_t end() const noexcept { return address + bytes; }
    bool on_host() const noexcept {
        return origin == Origin::pinned || origin == Origin::registered;
    }
};

/// The memory of one simulated device: its addresses, and how many of its bytes are in use.
struct DeviceShare {
    std::unique_ptr<AddressArena> arena;
    std::size_t total = 0;
    std::size_t used = 0;
    std::size_t others = 0;  // in use by other processes
    std::size_t late = 0;    // freed, but not yet reported as free

    std::size_t room() const noexcept { return total - std::min(total, used + others); }
    DeviceMemoryInfo info() const noexcept { return {room() - std::min(room(), late), total}; }
};

/// The real bytes behind the simulated devices: allocations, reserved addresses, and physical
/// memory that is mapped there. Counts how much of each device is in use. Not thread-safe.
class SimulatedMemory {
public:
    /// Throws std::bad_alloc if there is not enough address space.
    SimulatedMemory(const SimulationOptions& options, const AddressArena::Forget& forget);
    ~SimulatedMemory();
    SimulatedMemory(const SimulatedMemory&) = delete;
    SimulatedMemory& operator=(const SimulatedMemory&) = delete;

    DeviceShare& share(int device) noexcept { return shares_[static_cast<std::size_t>(device)]; }
    const DeviceShare& share(int device) const noexcept {
        return shares_[static_cast<std::size_t>(device)];
    }

    /// Returns nullptr if the device has too little memory left.
    void* allocate(int device, std::size_t bytes, StorageKind kind);
    void* allocate_pinned(int device, std::size_t bytes);
    /// Registers memory of the host. Returns false if a part of it is already an allocation.
    bool register_pinned(int device, void* memory, std::size_t bytes);
    /// Marks the allocation as being freed by a stream: no other call may free it.
    void begin_end(std::uintptr_t address) { allocations_.at(address).ending = true; }
    /// Frees the allocation that begins at the address. REQUIRES: `find_exact` finds it.
    void end(std::uintptr_t address);

    void* reserve(int device, std::size_t bytes);
    /// Returns false if `reserve` did not return this range, or if something is mapped in it.
    bool release(void* address, std::size_t bytes);
    MemoryHandle create(int device, std::size_t bytes);
    /// Returns false if the memory does not exist or is mapped.
    bool destroy(int device, MemoryHandle memory);
    enum class Mapped : std::uint8_t { yes, no_memory, not_there };
    Mapped map(int device, void* address, std::size_t bytes, MemoryHandle memory);
    /// Returns whether the range is exactly one mapping or several adjacent ones.
    bool can_unmap(int device, std::uintptr_t address, std::size_t bytes) const;
    /// Unmaps the range; the content stays with its physical memory. Returns false, and changes
    /// nothing, if the host has no memory to keep the content in. REQUIRES: `can_unmap`.
    bool unmap(std::uintptr_t address, std::size_t bytes);

    /// Returns the allocation that contains the address, or nullptr.
    const Allocation* find(std::uintptr_t address) const noexcept;
    const Allocation* find_exact(std::uintptr_t address) const noexcept;
    /// Returns the allocation that begins at the address, or nullptr.
    /// Returns the first address of the range outside all allocations, or the end of the range.
    std::uintptr_t first_gap(std::uintptr_t address, std::size_t bytes) const noexcept;
    /// Whether the address lies in a range that belongs to a simulated device.
    bool simulated(std::uintptr_t address) const noexcept;
    MemoryHandle mapped_at(std::uintptr_t address) const noexcept;

private:
    struct Physical {
        int device = 0;
        std::size_t bytes = 0;
        std::uintptr_t mapped_at = 0;
        void* content = nullptr;  // holds `bytes` while unmapped; nullptr: no content yet
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
    RangeMap<int> reservations_;  // value: device
    std::unordered_map<MemoryHandle, std::unique_ptr<Physical>> physical_;
    std::map<std::uintptr_t, MemoryHandle> mappings_;
};

}  // namespace tensorpool::device
