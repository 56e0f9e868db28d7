#pragma once

/// @file
/// The options of a runtime. All sizes are bytes.

#include <optional>

#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/host_memory_source.hpp>
#include <tensorpool/device/pinned_options.hpp>
#include <tensorpool/device/stream_ordered_allocator.hpp>

namespace tensorpool {

/// The options of a runtime.
struct RuntimeOptions {
    /// The options of the allocator of device memory. The CPU's runtime has none, because its
    /// memory is host memory.
    CachingOptions caching;
    /// If set, device memory comes from a StreamOrderedAllocator with these options instead of a
    /// CachingAllocator. The CPU's runtime has neither.
    std::optional<StreamOrderedOptions> stream_ordered;
    /// The options of the allocator of pinned host memory.
    PinnedOptions pinned;
    /// The source of host memory. With nullptr, runtimes of `get_runtime` use the source of the
    /// CPU's options, if that is set, and all others use `system_memory_source()`.
    std::shared_ptr<HostMemorySource> host_source;
    /// The priority of the runtime's own stream, `Runtime::stream`.
    int stream_priority = 0;
    /// The size of each of the two pinned buffers for copies between devices that are no peers. It
    /// is so large that the time to start a copy (some 10 us) is small beside the time of the copy
    /// (some 160 us over PCIe 4).
    std::size_t staging_bytes = std::size_t{4} << 20;
};

}  // namespace tensorpool
