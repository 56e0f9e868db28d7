#include "device/host/host_virtual_memory.hpp"

#include <string>
#include <utility>
#include <vector>

#include <tensorpool/device/device_status.hpp>

#include "base/alignment.hpp"
#include "device/call_errors.hpp"
#include "device/host/host_memory.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {
namespace {

[[noreturn]] void run_out(const std::string& text) {
    throw DeviceError(DeviceStatus::out_of_memory, text);
}

std::string range_text(const void* address, std::size_t bytes) {
    return std::to_string(bytes) + " B at " + to_text(address);
}

void check_size(std::size_t bytes) {
    if (bytes != 0 && base::is_aligned(bytes, HostVirtualMemory::granularity)) return;
    refuse("found " + std::to_string(bytes) + " B, expected a multiple of " +
           std::to_string(HostVirtualMemory::granularity) + " B above 0");
}

void check_range(const void* address, std::size_t bytes) {
    check_size(bytes);
    if (base::is_aligned(address, HostVirtualMemory::granularity)) return;
    refuse("found address " + to_text(address) + ", expected a multiple of " +
           std::to_string(HostVirtualMemory::granularity));
}

}  // namespace

HostVirtualMemory::HostVirtualMemory() noexcept : is_there_(platform::can_move_memory()) {}

HostVirtualMemory::~HostVirtualMemory() {
    for (const auto& [address, range] : reservations_.ranges()) {
        platform::release(reinterpret_cast<void*>(address), range.bytes);
    }
    memories_.for_each([](Memory& memory) {
        if (memory.home != nullptr) platform::release(memory.home, memory.bytes);
    });
}

void* HostVirtualMemory::reserve(std::size_t bytes) {
    check_size(bytes);
    void* const address = platform::reserve(bytes, granularity);
    if (address == nullptr) run_out("no address space of " + std::to_string(bytes) + " B is left");
    try {
        const std::lock_guard guard(mutex_);
        reservations_.add(address, bytes, {});
    } catch (...) {
        platform::release(address, bytes);
        throw;
    }
    return address;
}

void HostVirtualMemory::release(void* address, std::size_t bytes) {
    {
        const std::lock_guard guard(mutex_);
        const auto* const range = reservations_.find(address);
        if (range == nullptr || range->bytes != bytes) {
            refuse(range_text(address, bytes) + " is not exactly one reservation");
        }
        if (mappings_.overlaps(address, bytes)) {
            refuse("memory is still mapped in " + range_text(address, bytes));
        }
        reservations_.take(address);
    }
    platform::release(address, bytes);
}

MemoryHandle HostVirtualMemory::create(std::size_t bytes) {
    check_size(bytes);
    void* const home = map_host_pages(bytes);
    try {
        return memories_.add([&](Memory& memory) {
            memory = {static_cast<char*>(home), bytes, nullptr};
        });
    } catch (...) {
        platform::unmap(home, bytes);
        throw;
    }
}

HostVirtualMemory::Memory& HostVirtualMemory::memory_of(MemoryHandle handle) const {
    if (Memory* const memory = memories_.find(handle)) return *memory;
    refuse("memory " + to_text(handle) + " does not exist or was destroyed");
}

void HostVirtualMemory::destroy(MemoryHandle handle) {
    Memory memory;
    {
        const std::lock_guard guard(mutex_);
        Memory& found = memory_of(handle);
        if (found.mapped_at != nullptr) {
            refuse("memory " + to_text(handle) + " is still mapped at " + to_text(found.mapped_at));
        }
        memories_.end(handle);
        memory = std::exchange(found, {});
    }
    memories_.recycle(handle);
    platform::unmap(memory.home, memory.bytes);
}

void HostVirtualMemory::map(void* address, std::size_t bytes, MemoryHandle handle) {
    check_range(address, bytes);
    const std::lock_guard guard(mutex_);
    Memory& memory = memory_of(handle);
    if (memory.bytes != bytes) {
        refuse("memory " + to_text(handle) + " has " + std::to_string(memory.bytes) + " B, found " +
               std::to_string(bytes) + "; expected to map all of it");
    }
    if (memory.mapped_at != nullptr) {
        refuse("memory " + to_text(handle) + " is mapped at " + to_text(memory.mapped_at) +
               ", expected memory that is not mapped");
    }
    if (reservations_.find_around(address, bytes) == nullptr) {
        refuse(range_text(address, bytes) + " does not lie within one reservation");
    }
    if (!mappings_.add(address, bytes, &memory)) {
        refuse("memory is already mapped in " + range_text(address, bytes));
    }
    if (!platform::move_memory(address, memory.home, bytes)) {
        mappings_.take(address);
        run_out("the system refused to map " + range_text(address, bytes));
    }
    memory.mapped_at = static_cast<char*>(address);
}

std::size_t HostVirtualMemory::count_whole_mappings(char* address, std::size_t bytes) {
    std::size_t count = 0;
    for (std::size_t done = 0; done < bytes; ++count) {
        const auto* const range = mappings_.find(address + done);
        if (range == nullptr || range->bytes > bytes - done) {
            refuse(range_text(address, bytes) +
                   " is not one or more whole mappings: no mapping of " + "at most " +
                   std::to_string(bytes - done) + " B begins at " + to_text(address + done));
        }
        done += range->bytes;
    }
    return count;
}

void HostVirtualMemory::unmap(void* address, std::size_t bytes) {
    check_range(address, bytes);
    const std::lock_guard guard(mutex_);
    auto* begin = static_cast<char*>(address);
    std::vector<Mapping> unmapped;
    unmapped.reserve(count_whole_mappings(begin, bytes));
    for (const char* const end = begin + bytes; begin != end;) {
        Mapping mapping = mappings_.take(begin);
        begin += mapping.mapped().bytes;
        if (!take_home(mapping)) {
            mappings_.put_back(std::move(mapping));
            for (Mapping& undone : unmapped) take_back(std::move(undone));
            run_out("the system refused to unmap " + range_text(address, bytes));
        }
        unmapped.push_back(std::move(mapping));
    }
}

bool HostVirtualMemory::take_home(const Mapping& mapping) noexcept {
    Memory& memory = *mapping.mapped().value;
    if (!platform::move_memory(memory.home, memory.mapped_at, memory.bytes)) return false;
    memory.mapped_at = nullptr;
    return true;
}

void HostVirtualMemory::take_back(Mapping mapping) noexcept {
    Memory& memory = *mapping.mapped().value;
    auto* const address = reinterpret_cast<char*>(mapping.key());
    // If even this fails, nothing is mapped at the addresses and the memory stays in its home.
    if (!platform::move_memory(address, memory.home, memory.bytes)) return;
    memory.mapped_at = address;
    mappings_.put_back(std::move(mapping));
}

}  // namespace tensorpool::device
