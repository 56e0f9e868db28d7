#include "simulation/simulated_memory.hpp"

#include <cstring>
#include <iterator>
#include <new>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {
namespace {

// Twice the device's memory, to leave room for gaps and for freed ranges that rest.
constexpr std::size_t addresses_per_byte = 2;
constexpr std::size_t spare_addresses = std::size_t{256} << 20;
constexpr std::size_t pinned_addresses = std::size_t{64} << 30;

std::uintptr_t number(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}

// Copies into zeroed memory. Pages of zeros are skipped, so that they stay untouched.
void copy_touched(void* to, const void* from, std::size_t bytes) noexcept {
    static constexpr std::byte zeros[4096] = {};
    for (std::size_t at = 0; at < bytes; at += sizeof zeros) {
        const std::byte* const page = static_cast<const std::byte*>(from) + at;
        if (std::memcmp(page, zeros, sizeof zeros) == 0) continue;
        std::memcpy(static_cast<std::byte*>(to) + at, page, sizeof zeros);
    }
}

}  // namespace

SimulatedMemory::SimulatedMemory(const SimulationOptions& options,
                                 const AddressArena::Forget& forget)
    : late_free_size_(options.late_free_size),
      unified_(options.unified_memory),
      granularity_(options.granularity),
      pinned_(pinned_addresses, forget) {
    for (int device = 0; device < options.devices; ++device) {
        DeviceShare& share = shares_.emplace_back();
        const std::size_t addresses = options.memory_bytes * addresses_per_byte + spare_addresses;
        share.arena = std::make_unique<AddressArena>(addresses, forget);
        share.total = options.memory_bytes;
        share.others = options.other_process_bytes;
    }
}

SimulatedMemory::~SimulatedMemory() {
    for (const auto& [address, reservation] : reservations_.ranges()) {
        platform::release(reinterpret_cast<void*>(address), reservation.bytes);
    }
    for (const auto& [handle, memory] : physical_) {
        if (memory->content != nullptr) platform::unmap(memory->content, memory->bytes);
    }
}

void SimulatedMemory::give_back(int device, std::size_t bytes) noexcept {
    DeviceShare& share = this->share(device);
    share.used -= bytes;
    if (late_free_size_) share.late += bytes;
}

void* SimulatedMemory::allocate(int device, std::size_t bytes, StorageKind kind) {
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

void* SimulatedMemory::allocate_pinned(int device, std::size_t bytes) {
    void* const memory = bytes <= pinned_addresses ? pinned_.take(bytes) : nullptr;
    if (memory == nullptr) return nullptr;
    add({number(memory), bytes, device, Allocation::Origin::pinned, StorageKind::shared, true});
    return memory;
}

bool SimulatedMemory::register_pinned(int device, void* memory, std::size_t bytes) {
    const auto after = allocations_.lower_bound(number(memory) + bytes);
    if (after != allocations_.begin() && std::prev(after)->second.end() > number(memory)) {
        return false;
    }
    add({number(memory), bytes, device, Allocation::Origin::registered, StorageKind::shared, true});
    return true;
}

void SimulatedMemory::end(std::uintptr_t address) {
    const auto found = allocations_.find(address);
    const Allocation ended = found->second;
    allocations_.erase(found);
    void* const memory = reinterpret_cast<void*>(address);
    if (ended.origin == Allocation::Origin::pinned) pinned_.give(memory, ended.bytes);
    if (ended.origin != Allocation::Origin::device) return;
    share(ended.device).arena->give(memory, ended.bytes);
    give_back(ended.device, base::align_up(ended.bytes, platform::page_bytes()));
}

// Virtual memory ---------------------------------------------------------------------------------

void* SimulatedMemory::reserve(int device, std::size_t bytes) {
    void* const address = platform::reserve(bytes, granularity_);
    if (address != nullptr) reservations_.add(address, bytes, device);
    return address;
}

bool SimulatedMemory::release(void* address, std::size_t bytes) {
    const auto* const found = reservations_.find(address);
    if (found == nullptr || found->bytes != bytes) return false;
    const auto mapping = mappings_.lower_bound(number(address));
    if (mapping != mappings_.end() && mapping->first < number(address) + bytes) return false;
    reservations_.take(address);
    platform::release(address, bytes);
    return true;
}

MemoryHandle SimulatedMemory::create(int device, std::size_t bytes) {
    DeviceShare& share = this->share(device);
    if (bytes > share.room()) return nullptr;
    auto memory = std::make_unique<Physical>(Physical{device, bytes});
    const auto handle = reinterpret_cast<MemoryHandle>(memory.get());
    physical_.emplace(handle, std::move(memory));
    share.used += bytes;
    return handle;
}

bool SimulatedMemory::destroy(int device, MemoryHandle memory) {
    const auto found = physical_.find(memory);
    if (found == physical_.end() || found->second->mapped_at != 0) return false;
    if (found->second->device != device) return false;
    const std::size_t bytes = found->second->bytes;
    if (found->second->content != nullptr) platform::unmap(found->second->content, bytes);
    physical_.erase(found);
    give_back(device, bytes);
    return true;
}

bool SimulatedMemory::reserved_and_free(int device, std::uintptr_t address,
                                        std::size_t bytes) const {
    const auto* const reservation =
        reservations_.find_around(reinterpret_cast<void*>(address), bytes);
    if (reservation == nullptr || reservation->value != device) return false;
    return first_gap(address, 1) == address &&
           (mappings_.lower_bound(address) == mappings_.end() ||
            mappings_.lower_bound(address)->first >= address + bytes);
}

SimulatedMemory::Mapped SimulatedMemory::map(int device, void* address, std::size_t bytes,
                                             MemoryHandle memory) {
    const auto found = physical_.find(memory);
    if (found == physical_.end() || found->second->mapped_at != 0) return Mapped::not_there;
    Physical& physical = *found->second;
    if (physical.device != device || physical.bytes != bytes) return Mapped::not_there;
    if (!reserved_and_free(device, number(address), bytes)) return Mapped::not_there;
    if (!platform::commit(address, bytes)) return Mapped::no_memory;
    if (physical.content != nullptr) {
        copy_touched(address, physical.content, bytes);
        platform::unmap(std::exchange(physical.content, nullptr), bytes);
    }
    physical.mapped_at = number(address);
    mappings_.emplace(number(address), memory);
    add({number(address), bytes, device, Allocation::Origin::mapped, StorageKind::private_storage,
         unified_});
    return Mapped::yes;
}

bool SimulatedMemory::can_unmap(int device, std::uintptr_t address, std::size_t bytes) const {
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

bool SimulatedMemory::unmap(std::uintptr_t address, std::size_t bytes) {
    const std::uintptr_t end = address + bytes;
    for (std::uintptr_t at = address; at < end;) {
        Physical& memory = *physical_.at(mappings_.at(at));
        if (!keep_content(memory)) {
            drop_contents(address, at);
            return false;
        }
        at += memory.bytes;
    }
    while (address < end) {
        const auto mapping = mappings_.find(address);
        Physical& memory = *physical_.at(mapping->second);
        (void)platform::decommit(reinterpret_cast<void*>(address), memory.bytes);
        memory.mapped_at = 0;
        mappings_.erase(mapping);
        allocations_.erase(address);
        address += memory.bytes;
    }
    return true;
}

void SimulatedMemory::drop_contents(std::uintptr_t begin, std::uintptr_t end) noexcept {
    while (begin < end) {
        Physical& memory = *physical_.at(mappings_.at(begin));
        platform::unmap(std::exchange(memory.content, nullptr), memory.bytes);
        begin += memory.bytes;
    }
}

bool SimulatedMemory::keep_content(Physical& memory) {
    memory.content = platform::map(memory.bytes, granularity_);
    if (memory.content == nullptr) return false;
    copy_touched(memory.content, reinterpret_cast<void*>(memory.mapped_at), memory.bytes);
    return true;
}

// Look-up ----------------------------------------------------------------------------------------

const Allocation* SimulatedMemory::find(std::uintptr_t address) const noexcept {
    auto found = allocations_.upper_bound(address);
    if (found == allocations_.begin()) return nullptr;
    --found;
    return address < found->second.end() ? &found->second : nullptr;
}

const Allocation* SimulatedMemory::find_exact(std::uintptr_t address) const noexcept {
    const auto found = allocations_.find(address);
    return found == allocations_.end() ? nullptr : &found->second;
}

std::uintptr_t SimulatedMemory::first_gap(std::uintptr_t address,
                                          std::size_t bytes) const noexcept {
    const std::uintptr_t end = address + bytes;
    while (address < end) {
        const Allocation* const there = find(address);
        if (there == nullptr) return address;
        address = there->end();
    }
    return end;
}

bool SimulatedMemory::simulated(std::uintptr_t address) const noexcept {
    if (pinned_.contains(address)) return true;
    for (const DeviceShare& share : shares_) {
        if (share.arena->contains(address)) return true;
    }
    return reservations_.find_around(reinterpret_cast<void*>(address), 1) != nullptr;
}

MemoryHandle SimulatedMemory::mapped_at(std::uintptr_t address) const noexcept {
    const auto found = mappings_.find(address);
    return found == mappings_.end() ? nullptr : found->second;
}

namespace {

constexpr std::size_t large_alignment = std::size_t{2} << 20;
// Enough to name the free in a hazard report, few enough to keep the search short.
constexpr std::size_t max_resting = 256;

std::size_t alignment_of(std::size_t bytes) noexcept {
    return bytes < large_alignment ? platform::page_bytes() : large_alignment;
}

}  // namespace

AddressArena::AddressArena(std::size_t bytes, Forget forget)
    : bytes_(base::align_up(bytes, large_alignment)), forget_(std::move(forget)) {
    void* const address = platform::reserve(bytes_, large_alignment);
    if (address == nullptr) throw std::bad_alloc();
    begin_ = reinterpret_cast<std::uintptr_t>(address);
    free_.emplace(begin_, bytes_);
}

AddressArena::~AddressArena() {
    platform::release(reinterpret_cast<void*>(begin_), bytes_);
}

void* AddressArena::take(std::size_t bytes) {
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

std::uintptr_t AddressArena::find(std::size_t bytes) {
    const auto middle = free_.lower_bound(next_);
    const std::uintptr_t later = find_from(middle, free_.end(), bytes);
    return later != 0 ? later : find_from(free_.begin(), free_.end(), bytes);
}

std::uintptr_t AddressArena::find_from(Ranges::iterator first, Ranges::iterator last,
                                       std::size_t bytes) {
    for (; first != last; ++first) {
        const auto [begin, length] = *first;
        const std::uintptr_t address = base::align_up(begin, alignment_of(bytes));
        if (address - begin > length || length - (address - begin) < bytes) continue;
        free_.erase(first);
        if (address != begin) free_.emplace(begin, address - begin);
        const std::size_t rest = length - (address - begin) - bytes;
        if (rest != 0) free_.emplace(address + bytes, rest);
        next_ = address + bytes;
        return address;
    }
    return 0;
}

void AddressArena::give(void* address, std::size_t bytes) {
    bytes = base::align_up(bytes, platform::page_bytes());
    // If decommit fails, the pages keep their content. Callers may expect any content anyway.
    (void)platform::decommit(address, bytes);
    resting_.emplace_back(reinterpret_cast<std::uintptr_t>(address), bytes);
    if (resting_.size() > max_resting) wake_oldest();
}

void AddressArena::wake_oldest() {
    auto [address, bytes] = resting_.front();
    resting_.pop_front();
    forget_(address, bytes);
    auto after = free_.lower_bound(address);
    if (after != free_.end() && address + bytes == after->first) {
        bytes += after->second;
        after = free_.erase(after);
    }
    if (after != free_.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == address) {
            before->second += bytes;
            return;
        }
    }
    free_.emplace_hint(after, address, bytes);
}

}  // namespace tensorpool::device
