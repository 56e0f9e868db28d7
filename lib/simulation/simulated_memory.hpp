#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <new>
#include <unordered_map>

#include <boost/icl/interval_set.hpp>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "device/host/range_map.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {

// Twice the device's memory, to leave room for gaps and for freed ranges that rest.
inline constexpr std::size_t addresses_per_byte = 2;
inline constexpr std::size_t spare_addresses = std::size_t{256} << 20;
inline constexpr std::size_t pinned_addresses = std::size_t{64} << 30;

inline std::uintptr_t number(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}

// Moves the content into zeroed memory; that at `from` is undefined afterwards. Without a kernel
// that moves pages they are copied, but for those of zeros, which stay untouched.
inline void move_content(void* to, void* from, std::size_t bytes) noexcept {
    static const bool moves = platform::can_move_memory();
    if (moves && platform::move_memory(to, from, bytes)) return;
    static constexpr std::byte zeros[4096] = {};
    for (std::size_t at = 0; at < bytes; at += sizeof zeros) {
        const std::byte* const page = static_cast<const std::byte*>(from) + at;
        if (std::memcmp(page, zeros, sizeof zeros) == 0) continue;
        std::memcpy(static_cast<std::byte*>(to) + at, page, sizeof zeros);
    }
}

inline constexpr std::size_t large_alignment = std::size_t{2} << 20;

// Enough to name the free in a hazard report, few enough to keep the search short.
inline constexpr std::size_t max_resting = 256;

inline std::size_t alignment_of(std::size_t bytes) noexcept {
    return bytes < large_alignment ? platform::page_bytes() : large_alignment;
}

/// Addresses for the allocations of a simulated device. Freed ranges rest before they are handed
/// out again, so that an access after the free is recognized as one.
class AddressArena {
public:
    /// Called with each range that is about to be handed out again.
    using Forget = std::function<void(std::uintptr_t address, std::size_t bytes)>;

    /// Throws std::bad_alloc if `bytes` of address space cannot be reserved.
    AddressArena(std::size_t bytes, Forget forget)
        : bytes_(base::align_up(bytes, large_alignment)), forget_(std::move(forget)) {
        void* const address = platform::reserve(bytes_, large_alignment);
        if (address == nullptr) throw std::bad_alloc();
        begin_ = reinterpret_cast<std::uintptr_t>(address);
        free_.add(Range::right_open(begin_, begin_ + bytes_));
    }
    ~AddressArena() { platform::release(reinterpret_cast<void*>(begin_), bytes_); }
    AddressArena(const AddressArena&) = delete;
    AddressArena& operator=(const AddressArena&) = delete;

    bool contains(std::uintptr_t address) const noexcept { return address - begin_ < bytes_; }
    /// Returns committed memory, rounded up to whole pages. Ranges of 2 MiB or more are aligned to
    /// 2 MiB. Returns nullptr if no range is free or the system refuses the memory.
    void* take(std::size_t bytes) {
        bytes = base::align_up(bytes, platform::page_bytes());
        std::uintptr_t address = find(bytes);
        while (address == 0 && !resting_.empty()) {
            wake_oldest();
            address = find(bytes);
        }
        if (address == 0) return nullptr;
        void* const memory = reinterpret_cast<void*>(address);
        if (platform::commit(memory, bytes)) return memory;
        give(memory, bytes);
        return nullptr;
    }
    /// Takes a range back; `bytes` is the size given to `take`. Its pages return to the system.
    void give(void* address, std::size_t bytes) {
        bytes = base::align_up(bytes, platform::page_bytes());
        // If decommit fails, the pages keep their content. Callers may expect any content anyway.
        (void)platform::decommit(address, bytes);
        resting_.emplace_back(reinterpret_cast<std::uintptr_t>(address), bytes);
        if (resting_.size() > max_resting) wake_oldest();
    }

private:
    using Ranges = boost::icl::interval_set<std::uintptr_t>;
    using Range = Ranges::interval_type;

    std::uintptr_t find(std::size_t bytes) {
        const auto middle = free_.lower_bound(Range::right_open(next_, next_ + 1));
        const std::uintptr_t later = find_from(middle, free_.end(), bytes);
        return later != 0 ? later : find_from(free_.begin(), free_.end(), bytes);
    }
    std::uintptr_t find_from(Ranges::const_iterator first, Ranges::const_iterator last,
                             std::size_t bytes) {
        for (; first != last; ++first) {
            const std::uintptr_t address = base::align_up(first->lower(), alignment_of(bytes));
            if (address > first->upper() || first->upper() - address < bytes) continue;
            next_ = address + bytes;
            free_.subtract(Range::right_open(address, next_));
            return address;
        }
        return 0;
    }
    void wake_oldest() {
        const auto [address, bytes] = resting_.front();
        resting_.pop_front();
        forget_(address, bytes);
        free_.add(Range::right_open(address, address + bytes));
    }

    std::uintptr_t begin_ = 0;
    std::size_t bytes_;
    Forget forget_;
    Ranges free_;
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
    SimulatedMemory(const SimulationOptions& options, const AddressArena::Forget& forget)
        : late_free_size_(options.late_free_size),
          unified_(options.unified_memory),
          granularity_(options.granularity),
          pinned_(pinned_addresses, forget) {
        for (int device = 0; device < options.devices; ++device) {
            DeviceShare& share = shares_.emplace_back();
            const std::size_t addresses =
                options.memory_bytes * addresses_per_byte + spare_addresses;
            share.arena = std::make_unique<AddressArena>(addresses, forget);
            share.total = options.memory_bytes;
            share.others = options.other_process_bytes;
        }
    }
    ~SimulatedMemory() {
        for (const auto& [address, reservation] : reservations_.ranges()) {
            platform::release(reinterpret_cast<void*>(address), reservation.bytes);
        }
        for (const auto& [handle, memory] : physical_) {
            if (memory->content != nullptr) platform::unmap(memory->content, memory->bytes);
        }
    }

    DeviceShare& share(int device) noexcept { return shares_[static_cast<std::size_t>(device)]; }
    const DeviceShare& share(int device) const noexcept {
        return shares_[static_cast<std::size_t>(device)];
    }

    /// Returns nullptr if the device has too little memory left.
    void* allocate(int device, std::size_t bytes, StorageKind kind) {
        DeviceShare& share = this->share(device);
        if (bytes > share.total) return nullptr;
        const std::size_t pages = base::align_up(bytes, platform::page_bytes());
        if (pages > share.room()) return nullptr;
        void* const memory = share.arena->take(bytes);
        if (memory == nullptr) return nullptr;
        const bool host_reaches = unified_ || kind != StorageKind::private_storage;
        add({number(memory), bytes, device, Allocation::Origin::device, kind, host_reaches});
        share.used += pages;
        return memory;
    }
    void* allocate_pinned(int device, std::size_t bytes) {
        void* const memory = bytes <= pinned_addresses ? pinned_.take(bytes) : nullptr;
        if (memory == nullptr) return nullptr;
        add({number(memory), bytes, device, Allocation::Origin::pinned, StorageKind::shared, true});
        return memory;
    }
    /// Registers memory of the host. Returns false if a part of it is already an allocation.
    bool register_pinned(int device, void* memory, std::size_t bytes) {
        const auto after = allocations_.lower_bound(number(memory) + bytes);
        if (after != allocations_.begin() && std::prev(after)->second.end() > number(memory)) {
            return false;
        }
        add({number(memory), bytes, device, Allocation::Origin::registered, StorageKind::shared,
             true});
        return true;
    }
    /// Marks the allocation as being freed by a stream: no other call may free it.
    void begin_end(std::uintptr_t address) { allocations_.at(address).ending = true; }
    /// Frees the allocation that begins at the address. REQUIRES: `find_exact` finds it.
    void end(std::uintptr_t address) {
        const auto found = allocations_.find(address);
        const Allocation ended = found->second;
        allocations_.erase(found);
        void* const memory = reinterpret_cast<void*>(address);
        if (ended.origin == Allocation::Origin::pinned) pinned_.give(memory, ended.bytes);
        if (ended.origin != Allocation::Origin::device) return;
        share(ended.device).arena->give(memory, ended.bytes);
        give_back(ended.device, base::align_up(ended.bytes, platform::page_bytes()));
    }

    void* reserve(int device, std::size_t bytes) {
        void* const address = platform::reserve(bytes, granularity_);
        if (address != nullptr) reservations_.add(address, bytes, device);
        return address;
    }
    /// Returns false if `reserve` did not return this range, or if something is mapped in it.
    bool release(void* address, std::size_t bytes) {
        const auto* const found = reservations_.find(address);
        if (found == nullptr || found->bytes != bytes) return false;
        const auto mapping = mappings_.lower_bound(number(address));
        if (mapping != mappings_.end() && mapping->first < number(address) + bytes) return false;
        reservations_.take(address);
        platform::release(address, bytes);
        return true;
    }
    MemoryHandle create(int device, std::size_t bytes) {
        DeviceShare& share = this->share(device);
        if (bytes > share.room()) return nullptr;
        auto memory = std::make_unique<Physical>(Physical{device, bytes});
        const auto handle = reinterpret_cast<MemoryHandle>(memory.get());
        physical_.emplace(handle, std::move(memory));
        share.used += bytes;
        return handle;
    }
    /// Returns false if the memory does not exist or is mapped.
    bool destroy(int device, MemoryHandle memory) {
        const auto found = physical_.find(memory);
        if (found == physical_.end() || found->second->mapped_at != 0) return false;
        if (found->second->device != device) return false;
        const std::size_t bytes = found->second->bytes;
        if (found->second->content != nullptr) platform::unmap(found->second->content, bytes);
        physical_.erase(found);
        give_back(device, bytes);
        return true;
    }
    enum class Mapped : std::uint8_t { yes, no_memory, not_there };
    Mapped map(int device, void* address, std::size_t bytes, MemoryHandle memory) {
        const auto found = physical_.find(memory);
        if (found == physical_.end() || found->second->mapped_at != 0) return Mapped::not_there;
        Physical& physical = *found->second;
        if (physical.device != device || physical.bytes != bytes) return Mapped::not_there;
        if (!reserved_and_free(device, number(address), bytes)) return Mapped::not_there;
        if (!platform::commit(address, bytes)) return Mapped::no_memory;
        if (physical.content != nullptr) {
            move_content(address, physical.content, bytes);
            platform::unmap(std::exchange(physical.content, nullptr), bytes);
        }
        physical.mapped_at = number(address);
        mappings_.emplace(number(address), memory);
        add({number(address), bytes, device, Allocation::Origin::mapped,
             StorageKind::private_storage, unified_});
        return Mapped::yes;
    }
    /// Returns whether the range is exactly one mapping or several adjacent ones.
    bool can_unmap(int device, std::uintptr_t address, std::size_t bytes) const {
        const std::uintptr_t end = address + bytes;
        while (address < end) {
            const auto mapping = mappings_.find(address);
            if (mapping == mappings_.end()) return false;
            const Physical& memory = *physical_.at(mapping->second);
            if (memory.device != device) return false;
            address += memory.bytes;
        }
        return address == end;
    }
    /// Unmaps the range; the content stays with its physical memory. Returns false, and changes
    /// nothing, if the host has no memory to keep the content in. REQUIRES: `can_unmap`.
    bool unmap(std::uintptr_t address, std::size_t bytes) {
        const std::uintptr_t end = address + bytes;
        for (std::uintptr_t at = address; at < end;) {
            Physical& memory = *physical_.at(mappings_.at(at));
            memory.content = platform::map(memory.bytes, granularity_);
            if (memory.content == nullptr) {
                drop_contents(address, at);
                return false;
            }
            at += memory.bytes;
        }
        while (address < end) {
            const auto mapping = mappings_.find(address);
            Physical& memory = *physical_.at(mapping->second);
            move_content(memory.content, reinterpret_cast<void*>(address), memory.bytes);
            (void)platform::decommit(reinterpret_cast<void*>(address), memory.bytes);
            memory.mapped_at = 0;
            mappings_.erase(mapping);
            allocations_.erase(address);
            address += memory.bytes;
        }
        return true;
    }

    const Allocation* find(std::uintptr_t address) const noexcept {
        auto found = allocations_.upper_bound(address);
        if (found == allocations_.begin()) return nullptr;
        --found;
        return address < found->second.end() ? &found->second : nullptr;
    }
    const Allocation* find_exact(std::uintptr_t address) const noexcept {
        const auto found = allocations_.find(address);
        return found == allocations_.end() ? nullptr : &found->second;
    }
    /// Returns the first address of the range outside all allocations, or the end of the range.
    std::uintptr_t first_gap(std::uintptr_t address, std::size_t bytes) const noexcept {
        const std::uintptr_t end = address + bytes;
        while (address < end) {
            const Allocation* const there = find(address);
            if (there == nullptr) return address;
            address = there->end();
        }
        return end;
    }
    /// Whether the address lies in a range that belongs to a simulated device.
    bool simulated(std::uintptr_t address) const noexcept {
        if (pinned_.contains(address)) return true;
        for (const DeviceShare& share : shares_) {
            if (share.arena->contains(address)) return true;
        }
        return reservations_.find_around(reinterpret_cast<void*>(address), 1) != nullptr;
    }
    MemoryHandle mapped_at(std::uintptr_t address) const noexcept {
        const auto found = mappings_.find(address);
        return found == mappings_.end() ? nullptr : found->second;
    }

private:
    struct Physical {
        int device = 0;
        std::size_t bytes = 0;
        std::uintptr_t mapped_at = 0;
        void* content = nullptr;  // `bytes` while unmapped; nullptr: mapped, or no content yet
    };

    void add(const Allocation& allocation) { allocations_.emplace(allocation.address, allocation); }
    void give_back(int device, std::size_t bytes) noexcept {
        DeviceShare& share = this->share(device);
        share.used -= bytes;
        if (late_free_size_) share.late += bytes;
    }
    void drop_contents(std::uintptr_t begin, std::uintptr_t end) noexcept {
        while (begin < end) {
            Physical& memory = *physical_.at(mappings_.at(begin));
            platform::unmap(std::exchange(memory.content, nullptr), memory.bytes);
            begin += memory.bytes;
        }
    }
    bool reserved_and_free(int device, std::uintptr_t address, std::size_t bytes) const {
        const auto* const reservation =
            reservations_.find_around(reinterpret_cast<void*>(address), bytes);
        if (reservation == nullptr || reservation->value != device) return false;
        return first_gap(address, 1) == address &&
               (mappings_.lower_bound(address) == mappings_.end() ||
                mappings_.lower_bound(address)->first >= address + bytes);
    }

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
