#pragma once

#include <cstddef>
#include <mutex>

#include <tensorpool/device/backend.hpp>

#include "device/host/handle_table.hpp"
#include "device/host/range_map.hpp"

namespace tensorpool::device {

/// Addresses without memory and memory that moves there. Memory that is mapped nowhere waits in a
/// home of its own, address space that it keeps, so that to unmap needs nothing new. It is private
/// memory of the process, so the child of a fork has a copy, as of all other memory of a CPU; a
/// file in memory (memfd) would be one for both.
///
/// What is wrong with a call is thrown as DeviceError. Any thread.
class HostVirtualMemory {
public:
    /// Of everything here: a huge page. With 4 KiB the system's 65530 mappings are spent at 128
    /// MiB.
    static constexpr std::size_t granularity = std::size_t{2} << 20;

    HostVirtualMemory() noexcept;
    /// All goes that was not given back.
    ~HostVirtualMemory();
    HostVirtualMemory(const HostVirtualMemory&) = delete;
    HostVirtualMemory& operator=(const HostVirtualMemory&) = delete;

    /// Whether the system can do all this. Otherwise nothing but this may be called.
    bool is_there() const noexcept { return is_there_; }

    void* reserve(std::size_t bytes);
    void release(void* address, std::size_t bytes);
    MemoryHandle create(std::size_t bytes);
    void destroy(MemoryHandle handle);
    void map(void* address, std::size_t bytes, MemoryHandle handle);
    void unmap(void* address, std::size_t bytes);

private:
    struct Memory {
        char* home = nullptr;  // nullptr: it has none and no pages
        std::size_t bytes = 0;
        char* mapped_at = nullptr;  // nullptr: it is at home
    };
    struct Nothing {};
    using Mapping = RangeMap<Memory*>::Node;

    Memory& memory_of(MemoryHandle handle) const;
    std::size_t count_whole_mappings(char* address, std::size_t bytes);
    bool take_home(const Mapping& mapping) noexcept;
    void take_back(Mapping mapping) noexcept;

    const bool is_there_;
    // Held while memory moves: the records must tell where it is.
    std::mutex mutex_;
    RangeMap<Nothing> reservations_;
    RangeMap<Memory*> mappings_;
    HandleTable<Memory, MemoryHandle> memories_;
};

}  // namespace tensorpool::device
