#include "device/host/host_memory.hpp"

#include <string>
#include <utility>

#include <tensorpool/device/device_status.hpp>

#include "device/call_errors.hpp"
#include "platform/platform.hpp"
#include "platform/whole_pages.hpp"

namespace tensorpool::device {
namespace {

/// Refuses more than is available. The system could promise more, but it kills processes that use
/// what it cannot back.
void check_available(std::size_t bytes) {
    const std::size_t available = platform::available_memory();
    if (bytes <= available) return;
    throw DeviceError(DeviceStatus::out_of_memory, std::to_string(bytes) + " B requested, " +
                                                       std::to_string(available) + " B available");
}

/// Maps at least `bytes` of zeros from the system, in huge pages if it is large enough.
void* map_pages(std::size_t bytes) {
    check_available(bytes);
    const std::size_t whole = platform::whole_pages(bytes);
    const bool large = whole >= platform::huge_page_bytes;
    void* const memory =
        platform::map(whole, large ? platform::huge_page_bytes : platform::page_bytes());
    if (memory == nullptr) {
        throw DeviceError(DeviceStatus::out_of_memory,
                          "the system refused to map " + std::to_string(whole) + " B");
    }
    if (large) platform::prefer_huge_pages(memory, whole);
    return memory;
}

void unmap_pages(void* memory, std::size_t bytes) noexcept {
    platform::unmap(memory, platform::whole_pages(bytes));
}

}  // namespace

HostMemory::~HostMemory() {
    for (const auto& [address, range] : ranges_.ranges()) {
        unmap_pages(reinterpret_cast<void*>(address), range.bytes);
    }
}

void* HostMemory::allocate(std::size_t bytes, Kind kind) {
    if (bytes == 0) refuse("0 B requested, expected more");
    void* const memory = map_pages(bytes);
    try {
        const std::lock_guard guard(mutex_);
        ranges_.add(memory, bytes, kind);
    } catch (...) {
        unmap_pages(memory, bytes);
        throw;
    }
    return memory;
}

void HostMemory::deallocate(void* memory, std::size_t bytes, Kind kind) {
    if (memory == nullptr) return;
    {
        const std::lock_guard guard(mutex_);
        const auto* const range = ranges_.find(memory);
        if (range == nullptr) {
            refuse("no memory of this backend begins at " + to_text(memory) +
                   ", expected an allocation that was not freed");
        }
        if (range->bytes != bytes || range->value != kind) {
            refuse("memory at " + to_text(memory) + " was allocated as " +
                   std::to_string(range->bytes) + " B of kind " + std::to_string(range->value) +
                   ", found " + std::to_string(bytes) + " B of kind " + std::to_string(kind));
        }
        ranges_.take(memory);
    }
    unmap_pages(memory, bytes);
}

void HostMemory::add_foreign(void* memory, std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    if (memory == nullptr || bytes == 0) {
        refuse("found " + std::to_string(bytes) + " B at " + to_text(memory) + ", expected memory");
    }
    if (ranges_.overlaps(memory, bytes) || !foreign_.add(memory, bytes, 0)) {
        refuse("a part of " + std::to_string(bytes) + " B at " + to_text(memory) +
               " is pinned already or lies outside the address space");
    }
}

void HostMemory::remove_foreign(void* memory) {
    const std::lock_guard guard(mutex_);
    if (foreign_.take(memory).empty()) {
        refuse("no registered memory begins at " + to_text(memory));
    }
}

}  // namespace tensorpool::device
