#pragma once

#include <tensorpool/device/allocator_events.hpp>
#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/device_allocation_error.hpp>

#include "device/caching/blocks/block_heap.hpp"
#include "device/owned_device_record.hpp"
#include "events/recorder_hooks.hpp"
#include "limits/budget_node.hpp"

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

/// The result of the search for a block.
struct Outcome {
    using Cause = DeviceAllocationFailure::Cause;

    Block* block = nullptr;
    AllocatorWatch::Memory memory = AllocatorWatch::Memory::recycled;
    DeviceStatus status = DeviceStatus::ok;
    Cause cause = Cause::own_use;

    static Outcome failed(DeviceStatus status, Cause cause) noexcept {
        return {nullptr, AllocatorWatch::Memory::recycled, status, cause};
    }
    /// The cause of a failed call to the device.
    static Cause cause_of(DeviceStatus status) noexcept {
        return status == DeviceStatus::in_capture ? Cause::capture : Cause::own_use;
    }
    static Outcome refused(Cause limit) noexcept {
        return failed(DeviceStatus::out_of_memory, limit);
    }
    /// Whether releasing memory to the device may help.
    bool lacks_memory() const noexcept {
        return block == nullptr && status == DeviceStatus::out_of_memory;
    }
};

/// Checks the options and returns the device's index. Throws std::invalid_argument that names the
/// allocator, the option, the value found and the value expected.
int validated(Backend& backend, int device, const CachingOptions& options);
/// Throws std::invalid_argument like `validated` unless the limit `name` may be this part of what
/// the device recommends.
void check_limit(const CachingOptions& options, const char* name, double part);

/// The state shared by the parts of one caching allocator: its device, limits, counters, and the
/// blocks under its lock. It makes no decisions; the parts do.
///
/// Order of locks: the allocator's lock, then a stream's. No lock is taken under a stream's. The
/// parts' functions REQUIRE the allocator's lock unless they say otherwise. Slow calls to the
/// device and callbacks are made in the scope of an `Unlocked`.
struct AllocatorState {
    AllocatorState(Backend& backend, int device, const CachingOptions& options);
    ~AllocatorState() { budget.refund(capacity()); }
    AllocatorState(const AllocatorState&) = delete;
    AllocatorState& operator=(const AllocatorState&) = delete;

    Device name_of_device() const noexcept { return {backend.type(), device}; }
    /// Throws DeviceError with "tensorpool: NAME on DEVICE: CALL: WHAT: STATUS: the backend's
    /// text".
    [[noreturn]] void throw_error(DeviceStatus status, const char* call, const char* what) const;

    /// The reasons to close the fast path.
    enum Gate : unsigned { watched = 1, captures = 2, sleeping = 4 };
    bool is_gated() const noexcept {
        // Relaxed: a thread that closes the gate sees all its own calls that begin after that.
        return gate.load(std::memory_order_relaxed) != 0 || is_capture_under_way() ||
               events::is_recording();
    }
    /// Whether a capture that was begun through the backend is under way.
    bool is_capture_under_way() const noexcept {
        return captures_under_way.load(std::memory_order_relaxed) != 0;
    }
    bool is_watched() const noexcept {
        return (gate.load(std::memory_order_relaxed) & watched) != 0 || events::is_recording();
    }

    /// Sets a limit, and the counter that reports it, to this part of what the device recommends.
    void set_limit(std::size_t& limit, detail::Counter& counter, double part) noexcept;

    /// Bytes that the allocator holds, or is requesting from the device now.
    std::size_t capacity() const noexcept {
        return static_cast<std::size_t>(totals.capacity_bytes.load(std::memory_order_relaxed)) +
               growing_bytes;
    }
    bool may_grow(std::size_t bytes) const noexcept {
        return hard_limit == 0 || (capacity() <= hard_limit && bytes <= hard_limit - capacity());
    }
    /// Sets aside the room for a growth, within the hard limit and the budget. Returns false, with
    /// the limit in `limit`, if one of them does not allow it.
    bool begin_growth(std::size_t bytes, limits::BudgetRequest& request,
                      Outcome::Cause& limit) noexcept {
        limit = may_grow(bytes) ? Outcome::Cause::budget : Outcome::Cause::limit;
        request.clear();
        if (!may_grow(bytes) || !budget.charge(bytes, request)) return false;
        growing_bytes += bytes;
        return true;
    }
    /// Ends a growth for which `bytes` were set aside, and counts the `got` bytes that the device
    /// gave.
    void end_growth(std::size_t bytes, std::size_t got) noexcept {
        growing_bytes -= bytes;
        if (got != 0) totals.count_growth(got);
        budget.refund(bytes - got);
    }
    void count_give_back(std::size_t bytes) noexcept {
        totals.count_give_back(bytes);
        budget.refund(bytes);
    }
    /// The bytes that may be held for this request without releasing any: the most ever held, and
    /// `sixteenths` of it more.
    std::size_t goal(const Request& request, unsigned sixteenths) const noexcept;
    std::size_t granule_of(Pool pool) const noexcept {
        return pool == Pool::small ? granule : large_granule;
    }
    /// Creates physical memory of the kind that the options ask for.
    DeviceStatus create_memory(std::size_t bytes, MemoryHandle& memory) noexcept {
        return options.exportable ? backend.create_exportable_memory(device, bytes, &memory)
                                  : backend.create_memory(device, bytes, &memory);
    }
    bool is_expandable(const StreamCache& cache) const noexcept {
        return granule != 0 && cache.capture() == 0;
    }

    Backend& backend;
    const int device;
    const CachingOptions options;
    const DeviceAbilities abilities;
    const StreamCalls calls;
    const std::atomic<unsigned>& captures_under_way;
    const std::size_t granule;  // of small blocks; 0: slabs are not expandable
    std::size_t total_bytes = 0;
    std::size_t large_granule = 0;  // of larger blocks
    std::size_t xlarge_bytes = 0;   // of slabs for the largest requests that share one; 0: none
    std::size_t recommended_bytes = 0;
    StreamTable streams;
    alignas(64) std::atomic<unsigned> gate = 0;

    alignas(64) mutable std::mutex mutex;  // guards everything below
    std::condition_variable grown;         // a growth ended, or memory returned to the device
    OwnedDeviceRecord record;
    statistics::DeviceTotals& totals;
    const limits::HeldBudget budget;
    AllocatorWatch watch;
    BlockHeap heap;
    EventPool events;
    DeferredFrees deferred;
    std::vector<std::unique_ptr<StreamCache>> caches;
    std::size_t hard_limit = 0;  // in bytes; 0: no limit
    std::size_t soft_limit = 0;
    bool asleep = false;            // memory of blocks in use is with the device: see Sleep
    std::size_t growing_bytes = 0;  // being requested from the device
    std::size_t returns = 0;        // threads that are releasing memory to the device
};

}  // namespace tensorpool::device
