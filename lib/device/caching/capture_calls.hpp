#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <tensorpool/device/capture_pool.hpp>

#include "device/caching/block_search.hpp"

namespace tensorpool::device {

/// The calls by which a program announces captures, and reserves and releases their memory. Any
/// thread: they take the allocator's lock.
class CaptureCalls {
public:
    CaptureCalls(AllocatorState& state, FreeBlocks& free, Captures& captures, StreamCaches& caches,
                 BlockSearch& search) noexcept
        : state_(state), free_(free), captures_(captures), caches_(caches), search_(search) {}

    bool reserve(std::size_t bytes, DeviceAllocationFailure& failure);
    void begin() noexcept;
    void end() noexcept;
    void release(std::uint64_t id);
    using Filter = std::function<bool(StreamHandle)>;
    void begin_pool(CapturePool pool, Filter takes_part);
    void end_pool(CapturePool pool);
    void release_pool(CapturePool pool) noexcept;

private:
    using Lock = std::lock_guard<std::mutex>;

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    StreamCaches& caches_;
    BlockSearch& search_;
};

}  // namespace tensorpool::device
