#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/host_memory_source.hpp>

#include "device/device_place.hpp"
#include "device/runtime/held_blocks.hpp"

namespace tensorpool::device {

/// What stands behind a HostAllocator: which blocks are out, for which streams, and what they come
/// to. Neither the source nor the backend is called under its lock.
class HostBlocks {
public:
    /// Of CachingAllocator's blocks too.
    static constexpr std::size_t alignment = 256;

    HostBlocks(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source);
    ~HostBlocks();
    HostBlocks(const HostBlocks&) = delete;
    HostBlocks& operator=(const HostBlocks&) = delete;

    Device device() const noexcept { return device_; }
    /// nullptr where the source has nothing, also after all that is held back was waited for.
    /// Throws std::bad_alloc where there is no memory for the record.
    void* allocate(std::size_t bytes, StreamHandle stream);
    [[noreturn]] void fail(std::size_t bytes);
    void deallocate(void* memory) noexcept;
    void record_use(void* memory, StreamHandle stream);
    std::size_t size_of(const void* memory) const noexcept;
    bool is_used_on(const void* memory, StreamHandle stream) const noexcept;
    void end_stream(StreamHandle stream);
    DeviceStatistics figures() const { return place_.figures(); }
    std::size_t trim() noexcept;

private:
    struct Block {
        std::size_t bytes;
        StreamHandle stream;
        // Other streams. There is always room for one more, so that a free needs no memory.
        std::vector<StreamHandle> uses;
    };
    struct Stream {
        statistics::DeviceStreamCounters* counters;
        /// Frees under way that may still ask about the stream: it does not end meanwhile.
        std::size_t leaving;
    };

    void* take(std::size_t bytes) noexcept;
    void enter(void* memory, std::size_t bytes, StreamHandle stream);
    Block remove(void* memory) noexcept;
    std::span<const StreamHandle> all_streams(Block& block) noexcept;
    void give_at_once(void* memory, Block& block) noexcept;
    void hold_back(void* memory, Block& block, std::span<const StreamHandle> busy) noexcept;
    void leave(Block& block) noexcept;
    void give(const HeldBlocks::Block& block) noexcept;
    Stream& stream_of(StreamHandle stream);

    Backend& backend_;
    const Device device_;
    const std::shared_ptr<HostMemorySource> source_;

    mutable std::mutex mutex_;  // of what follows
    std::unordered_map<const void*, Block> blocks_;
    std::unordered_map<StreamHandle, Stream> streams_;
    std::condition_variable left_;  // none is leaving a stream any more
    DevicePlace place_;
    HeldBlocks held_;  // has locks of its own
};

}  // namespace tensorpool::device
