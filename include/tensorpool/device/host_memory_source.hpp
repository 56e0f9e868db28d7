#pragma once

/// @file
/// The interface through which runtimes get host memory. The adaptor in pool_source.hpp provides a
/// pool's.

#include <cstddef>
#include <memory>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A source of host memory. Any thread may call any function at any time.
class TENSORPOOL_API HostMemorySource {
public:
    HostMemorySource() noexcept = default;
    virtual ~HostMemorySource();
    HostMemorySource(const HostMemorySource&) = delete;
    HostMemorySource& operator=(const HostMemorySource&) = delete;

    /// Allocates `bytes` bytes, more than 0, aligned to `alignment`, a power of two. Returns
    /// nullptr if they are unavailable.
    virtual void* allocate(std::size_t bytes, std::size_t alignment) noexcept = 0;
    /// Frees memory. `bytes` and `alignment` are those of its allocation.
    virtual void deallocate(void* memory, std::size_t bytes, std::size_t alignment) noexcept = 0;
    /// Gives free memory back to the system and returns the number of bytes given back. Optional;
    /// default: nothing.
    virtual std::size_t trim() noexcept;
};

/// Returns the default source: the aligned `operator new` of the C++ library.
TENSORPOOL_API std::shared_ptr<HostMemorySource> system_memory_source();

}  // namespace tensorpool
