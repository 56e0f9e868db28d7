#pragma once

#include <cstddef>
#include <mutex>

#include <tensorpool/device/backend.hpp>

#include "device/host/handle_table.hpp"
#include "device/host/range_map.hpp"

namespace tensorpool::device {

/// Reserved addresses, and memory that is moved to them. Memory that is not mapped stays in a home
/// of its own: address space that it keeps, so that unmapping needs no new resources. It is private
/// memory of the process, so the child of a fork has a copy of it, as of all memory of the CPU. A
/// file in memory (memfd) would be shared by both.
///
/// Errors are thrown as DeviceError. Any thread.
class HostVirtualMemory {
public:
    /// Granularity of all sizes and addresses: a huge page. With 4 KiB, the system's limit of
    /// 65,530 mappings would be reached at 128 MiB.
    static constexpr std::size_t granularity = std::size_t{2} << 20;

    HostVirtualMemory() noexcept;
    /// Unmaps and releases everything that was not freed.
    ~HostVirtualMemory();
    HostVirtualMemory(const HostVirtualMemory&) = delete;
    HostVirtualMemory& operator=(const HostVirtualMemory&) = delete;

    /// Whether the system supports virtual memory. If not, no other function may be called.
    bool is_there() const noexcept { return is_there_; }

    void* reserve(std::size_t bytes);
    void release(void* address, std::size_t bytes);
    MemoryHandle create(std::size_t bytes);
    void destroy(MemoryHandle handle);
    void map(void* address, std::size_t bytes, MemoryHandle handle);
    void unmap(void* address, std::size_t bytes);

private:
    struct Memory {
        char* home = nullptr;  // nullptr: unused record without pages
        std::size_t bytes = 0;
        char* mapped_at = nullptr;  // nullptr: the memory is in its home
    };
    struct Nothing {};
    using Mapping = RangeMap<Memory*>::Node;

    Memory& memory_of(MemoryHandle handle) const;
    std::size_t count_whole_mappings(char* address, std::size_t bytes);
    bool take_home(const Mapping& mapping) noexcept;
    void take_back(Mapping mapping) noexcept;

    const bool is_there_;
    // Held while memory moves, so that the records always match where it is.
    std::mutex mutex_;
    RangeMap<Nothing> reservations_;
    RangeMap<Memory*> mappings_;
    HandleTable<Memory, MemoryHandle> memories_;
};

}  // namespace tensorpool::device
