#pragma once

/// @file
/// What a runtime can be told when it is made. All sizes are bytes.

#include <cstddef>
#include <memory>

#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/host_memory_source.hpp>
#include <tensorpool/device/pinned_options.hpp>

namespace tensorpool {

struct RuntimeOptions {
    /// Of the allocator for device memory. The CPU's runtime has none: its memory is host memory.
    CachingOptions caching;
    /// Of the allocator for pinned host memory.
    PinnedOptions pinned;
    /// Where host memory comes from. nullptr: of the runtimes that `get_runtime` makes, what the
    /// CPU's have, and of those, as of any other, `system_memory_source()`.
    std::shared_ptr<HostMemorySource> host_source;
    /// Copies between devices that are no peers go through two pinned buffers of this size: so
    /// large that the time to start a copy (some 10 us) is little beside the time that it takes
    /// (some 160 us over PCIe 4).
    std::size_t staging_bytes = std::size_t{4} << 20;
};

}  // namespace tensorpool
