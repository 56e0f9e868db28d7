#pragma once

/// @file
/// Where a runtime gets host memory from. The adaptor in pool_source.hpp hands in a pool.

#include <cstddef>
#include <memory>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// Any thread may call any function at any time.
class TENSORPOOL_API HostMemorySource {
public:
    HostMemorySource() noexcept = default;
    virtual ~HostMemorySource();
    HostMemorySource(const HostMemorySource&) = delete;
    HostMemorySource& operator=(const HostMemorySource&) = delete;

    /// `bytes` above 0, aligned to `alignment`, a power of two; nullptr when they cannot be had.
    virtual void* allocate(std::size_t bytes, std::size_t alignment) noexcept = 0;
    /// With the bytes and the alignment it was made with.
    virtual void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept = 0;
    /// Optional; default: nothing. Gives back what is free; bytes given back.
    virtual std::size_t trim() noexcept;
};

/// The one that stands in where none is handed in: the C++ library's aligned `operator new`.
TENSORPOOL_API std::shared_ptr<HostMemorySource> system_memory_source();

}  // namespace tensorpool
