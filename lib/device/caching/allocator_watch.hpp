#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tensorpool/device/allocator_events.hpp>
#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/timeline.hpp>

#include "device/owned_device_record.hpp"

namespace tensorpool::device {

/// Reports an allocator's actions to callbacks, the timeline, a backend that watches blocks, and a
/// recorder. Called with no lock of the allocator held. Any thread.
class AllocatorWatch {
public:
    AllocatorWatch(Backend& backend, Device device, const CachingOptions& options,
                   OwnedDeviceRecord& record);

    void add(std::string name, AllocatorCallback callback);
    bool remove(std::string_view name) noexcept;
    /// Writes the names of the callbacks into the report of a failure.
    void add_callback_names(DeviceAllocationFailure& failure) const noexcept;
    /// Whether anything besides a recorder needs to see each call.
    bool wants_all() const noexcept;

    struct Seen {
        void* address = nullptr;
        std::size_t bytes = 0;
        std::size_t requested = 0;
        StreamHandle stream = nullptr;
        bool deferred = false;  // freed, but held back until other streams have passed
    };
    enum class Memory : bool { fresh, recycled };
    /// Called after a block was handed to a caller.
    void handed_out(const Seen& block, Memory memory) noexcept;
    /// Called before the freed block can be handed out again.
    void freed(const Seen& block) noexcept;
    /// Called when another stream uses the block.
    void used(const Seen& block) noexcept;
    /// Called when all other streams have passed. For a block of scalars, `requested` is 0.
    void reusable(const Seen& block) noexcept;
    /// Memory came from the device, or is about to return to it. Only a recorder sees these.
    void gained(const void* address, std::size_t bytes) const noexcept;
    void losing(const void* address, std::size_t bytes) const noexcept;
    /// A request failed.
    void refused(std::size_t bytes) const noexcept;
    /// Called before memory returns to the device.
    void released(void* address, std::size_t bytes, StreamHandle stream) noexcept;
    void failing(std::size_t bytes, StreamHandle stream) noexcept;

    void write(EntryKind kind, std::size_t bytes, LimitKind limit = LimitKind::none) const noexcept;
    /// Whether this thread is in a callback of any allocator. It must then not wait for another
    /// thread, which may be waiting for work that this thread does after the callback.
    static bool is_in_callback() noexcept;

private:
    using Callbacks = std::vector<std::pair<std::string, AllocatorCallback>>;

    std::shared_ptr<const Callbacks> callbacks() const noexcept;
    void notify(AllocatorEvent::Kind kind, const Seen& block) noexcept;
    void note(BlockNote::Kind kind, const Seen& block) noexcept;
    void keep(TimelineSet part, EntryKind kind, std::size_t bytes) noexcept;
    void keep_profile() noexcept;

    Backend& backend_;
    const Device device_;
    const TimelineSet timeline_;
    const bool watches_blocks_;
    const std::string name_;
    OwnedDeviceRecord& record_;
    std::atomic<std::uint64_t> profiled_ = 0;  // bytes in use, as of the last entry
    mutable std::mutex mutex_;                 // guards what follows
    std::shared_ptr<const Callbacks> callbacks_;
};

}  // namespace tensorpool::device
