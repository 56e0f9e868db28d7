#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/host_memory_source.hpp>

#include "device/deferral/deferred_frees.hpp"
#include "device/device_table.hpp"
#include "device/owned_device_record.hpp"

namespace tensorpool::device {

/// The implementation of HostAllocator: the blocks in use, their streams, and the counters. A
/// block's own stream is treated like any other: a freed block is held back until all have passed.
///
/// Order of locks: `waiting_`, then `mutex_`. The source is called under neither, and no stream is
/// waited for under `mutex_`.
class HostBlocks {
public:
    /// The same as for blocks of CachingAllocator.
    static constexpr std::size_t alignment = 256;

    HostBlocks(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source);
    ~HostBlocks();
    HostBlocks(const HostBlocks&) = delete;
    HostBlocks& operator=(const HostBlocks&) = delete;

    Device device() const noexcept { return device_; }
    /// Returns nullptr if the source has no memory, even after waiting for all blocks held back.
    /// Throws std::bad_alloc if there is no memory for the record.
    void* allocate(std::size_t bytes, StreamHandle stream);
    [[noreturn]] void fail(std::size_t bytes);
    void deallocate(void* memory) noexcept;
    void record_use(void* memory, StreamHandle stream);
    std::size_t size_of(const void* memory) const noexcept;
    bool is_used_on(const void* memory, StreamHandle stream) const noexcept;
    void end_stream(StreamHandle stream);
    DeviceStatistics statistics() const { return record_.statistics(); }
    std::size_t trim() noexcept;

private:
    struct Stream {
        StreamQueue queue;
        statistics::DeviceStreamCounters* counters = nullptr;
        std::uint64_t awaited = 0;  // uses in the queue that the current wait covers
    };
    struct Block : DeferrableBlock {
        Stream* home = nullptr;
        Block* next = nullptr;  // in a list of blocks that return to the source
    };

    void* take(std::size_t bytes) noexcept;
    void enter(void* memory, std::size_t bytes, StreamHandle stream);
    Stream& stream_of(StreamHandle stream);
    Block& remove(void* memory) noexcept;
    void count_give_back(const Block& block) noexcept;

    // Blocks that all streams have passed are put into a list under the lock; they return to the
    // source without it.
    void pass(DeferrableBlock& block, Block*& passed) noexcept;
    void complete(Block*& passed) noexcept;
    void complete_up_to(Stream& stream, std::uint64_t added, Block*& passed) noexcept;
    std::size_t give(Block* passed) noexcept;
    std::size_t complete_and_give() noexcept;
    void wait_and_give() noexcept;
    bool wait_for(const Stream& stream) noexcept;
    void wait_for_device(Block*& passed) noexcept;

    Backend& backend_;
    const Device device_;
    const std::shared_ptr<HostMemorySource> source_;

    std::mutex waiting_;        // held while waiting for streams or ending one, so that none ends
    mutable std::mutex mutex_;  // guards what follows
    OwnedDeviceRecord record_;
    EventPool events_;
    DeferredFrees deferred_;  // with a use reserved for each block in use
    RecordPool<Block> records_;
    std::unordered_map<const void*, Block*> blocks_;  // in use
    std::map<StreamHandle, Stream> streams_;
};

}  // namespace tensorpool::device
