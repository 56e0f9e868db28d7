#pragma once

#include <tensorpool/device/allocator_events.hpp>
#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/device_allocation_error.hpp>

#include "device/caching/blocks/block_heap.hpp"
#include "device/call_errors.hpp"
#include "device/owned_device_record.hpp"
#include "events/timeline.hpp"
#include "limits/budget_node.hpp"

namespace tensorpool::device {

inline std::size_t granule_bytes(const DeviceAbilities& abilities, const CachingOptions& options) {
    const bool grows = options.expandable && abilities.virtual_memory && abilities.granularity != 0;
    const bool plain = options.storage == StorageKind::private_storage;
    return grows && plain ? base::align_up(slab_step, abilities.granularity) : 0;
}

inline constinit thread_local unsigned callbacks_under_way = 0;

[[noreturn]] inline void refuse_callback(const std::string& name, const char* why) {
    throw std::invalid_argument("tensorpool: add_callback: \"" + name + "\": " + why);
}

inline constexpr double largest_part = 2;

[[noreturn]] inline void refuse(const CachingOptions& options, const std::string& what) {
    throw std::invalid_argument("tensorpool: caching allocator '" + options.name + "': " + what);
}

inline bool has_storage(const DeviceAbilities& abilities, StorageKind kind) {
    if (kind == StorageKind::shared) return abilities.shared_storage;
    return kind == StorageKind::private_storage || abilities.managed_storage;
}

inline void check_exportable(const CachingOptions& options, const DeviceAbilities& abilities) {
    if (!options.expandable || options.storage != StorageKind::private_storage) {
        refuse(options, "exportable is set; expected expandable slabs of private storage with it");
    }
    if (abilities.exportable_memory) return;
    refuse(options,
           "exportable is set; expected a device with exportable memory, found one without");
}

/// Reports an allocator's actions to callbacks, the timeline, a backend that watches blocks, and a
/// recorder. Called with no lock of the allocator held. Any thread.
class AllocatorWatch {
public:
    AllocatorWatch(Backend& backend, Device device, const CachingOptions& options,
                   OwnedDeviceRecord& record)
        : backend_(backend),
          device_(device),
          timeline_(options.timeline),
          watches_blocks_(backend.abilities(device.index).watches_blocks),
          name_(options.name),
          record_(record) {}

    void add(std::string name, AllocatorCallback callback) {
        if (name.empty() || !callback) {
            refuse_callback(name, name.empty() ? "it has no name; expected one"
                                               : "it has no function; expected one");
        }
        const std::lock_guard guard(mutex_);
        auto next =
            callbacks_ ? std::make_shared<Callbacks>(*callbacks_) : std::make_shared<Callbacks>();
        const auto has_name = [&](const auto& entry) { return entry.first == name; };
        if (std::any_of(next->begin(), next->end(), has_name)) {
            refuse_callback(name, "the name is taken; expected another one");
        }
        next->emplace_back(std::move(name), std::move(callback));
        callbacks_ = std::move(next);
    }
    bool remove(std::string_view name) noexcept try {
        std::shared_ptr<const Callbacks> former;  // destroyed after the lock is released: its
                                                  // destructor may call this allocator
        const std::lock_guard guard(mutex_);
        if (!callbacks_) return false;
        auto next = std::make_shared<Callbacks>(*callbacks_);
        const auto is_it = [&](const auto& entry) { return entry.first == name; };
        if (std::erase_if(*next, is_it) == 0) return false;
        former = std::move(callbacks_);
        if (!next->empty()) callbacks_ = std::move(next);
        return true;
    } catch (...) {
        return false;  // no memory for the new list
    }
    void add_callback_names(DeviceAllocationFailure& failure) const noexcept {
        const std::shared_ptr<const Callbacks> all = callbacks();
        if (!all) return;
        base::FixedText text(failure.callbacks, sizeof failure.callbacks);
        const char* between = "";
        for (const auto& [name, callback] : *all) {
            text.add("%s%s", between, name.c_str());
            between = ", ";
        }
    }
    /// Whether anything besides a recorder needs to see each call.
    bool wants_all() const noexcept {
        const std::lock_guard guard(mutex_);
        return callbacks_ != nullptr || timeline_ != TimelineSet::none || watches_blocks_;
    }

    struct Seen {
        void* address = nullptr;
        std::size_t bytes = 0;
        std::size_t requested = 0;
        StreamHandle stream = nullptr;
        bool deferred = false;  // freed, but held back until other streams have passed
    };
    enum class Memory : bool { fresh, recycled };
    /// Called after a block was handed to a caller.
    void handed_out(const Seen& block, Memory memory) noexcept {
        const bool fresh = memory == Memory::fresh;
        note(BlockNote::Kind::allocated, block);
        events::record_device_block(record_.id(), block.stream, block.address, block.requested);
        keep(fresh ? TimelineSet::allocations : TimelineSet::recycles,
             fresh ? EntryKind::allocation : EntryKind::recycle, block.bytes);
        keep_profile();
        notify(fresh ? AllocatorEvent::Kind::allocated : AllocatorEvent::Kind::recycled, block);
    }
    /// Called before the freed block can be handed out again.
    void freed(const Seen& block) noexcept {
        events::record(block.deferred ? TraceAction::defer : TraceAction::deallocate, record_.id(),
                       block.address, block.bytes);
        note(BlockNote::Kind::freed, block);
        keep(TimelineSet::releases, EntryKind::release, block.bytes);
        notify(AllocatorEvent::Kind::freed, block);
    }
    /// Called when another stream uses the block.
    void used(const Seen& block) noexcept { note(BlockNote::Kind::used, block); }
    /// Called when all other streams have passed. For a block of scalars, `requested` is 0.
    void reusable(const Seen& block) noexcept {
        if (block.requested != 0) {
            events::record(TraceAction::deallocate, record_.id(), block.address, block.bytes);
        }
        note(BlockNote::Kind::reusable, block);
    }
    /// Memory came from the device, or is about to return to it. Only a recorder sees these.
    void gained(const void* address, std::size_t bytes) const noexcept {
        events::record(TraceAction::slab, record_.id(), address, bytes);
    }
    void losing(const void* address, std::size_t bytes) const noexcept {
        events::record(TraceAction::slab_end, record_.id(), address, bytes);
    }
    void refused(std::size_t bytes) const noexcept {
        events::record(TraceAction::refuse, record_.id(), nullptr, bytes);
    }
    /// Called before memory returns to the device.
    void released(void* address, std::size_t bytes, StreamHandle stream) noexcept {
        notify(AllocatorEvent::Kind::released, {address, bytes, bytes, stream});
    }
    void failing(std::size_t bytes, StreamHandle stream) noexcept {
        notify(AllocatorEvent::Kind::allocation_failed, {nullptr, bytes, bytes, stream});
    }

    void write(EntryKind kind, std::size_t bytes,
               LimitKind limit = LimitKind::none) const noexcept {
        events::write_entry(kind, limit, bytes, name_);
    }
    /// Whether this thread is in a callback of any allocator. It must then not wait for another
    /// thread, which may be waiting for work that this thread does after the callback.
    static bool is_in_callback() noexcept { return callbacks_under_way != 0; }

private:
    using Callbacks = std::vector<std::pair<std::string, AllocatorCallback>>;

    std::shared_ptr<const Callbacks> callbacks() const noexcept {
        const std::lock_guard guard(mutex_);
        return callbacks_;
    }
    void notify(AllocatorEvent::Kind kind, const Seen& block) noexcept {
        const std::shared_ptr<const Callbacks> all = callbacks();
        if (!all) return;
        const AllocatorEvent event = {kind, device_, block.address, block.bytes, block.stream};
        ++callbacks_under_way;
        for (const auto& [name, callback] : *all) callback(event);
        --callbacks_under_way;
    }
    void note(BlockNote::Kind kind, const Seen& block) noexcept {
        if (!watches_blocks_) return;
        backend_.note_block({kind, device_.index, block.address, block.bytes, block.stream});
    }
    void keep(TimelineSet part, EntryKind kind, std::size_t bytes) noexcept {
        if (!contains(timeline_, part)) return;
        if (contains(timeline_, TimelineSet::large_only) && bytes <= small_limit) return;
        write(kind, bytes);
    }
    void keep_profile() noexcept {
        if (!contains(timeline_, TimelineSet::profile)) return;
        const std::uint64_t in_use = record_.statistics().in_use_bytes;
        // Relaxed: the thread that raises the value writes the entry; no other data depends on it.
        std::uint64_t last = profiled_.load(std::memory_order_relaxed);
        while (in_use > last + last / 16) {
            if (profiled_.compare_exchange_weak(last, in_use, std::memory_order_relaxed)) {
                return write(EntryKind::profile, in_use);
            }
        }
    }

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
    std::chrono::nanoseconds waited{0};  // by a pinned allocator, for copies that hold blocks back

    static Outcome failed(DeviceStatus status, Cause cause) noexcept {
        return {.status = status, .cause = cause};
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

/// Marks a growth, or another change that threads wait for, until the object is destroyed, also by
/// an exception.
class Growing {
public:
    Growing(bool& flag, std::condition_variable& grown) noexcept : flag_(flag), grown_(grown) {
        flag_ = true;
    }
    ~Growing() {
        flag_ = false;
        grown_.notify_all();
    }
    Growing(const Growing&) = delete;
    Growing& operator=(const Growing&) = delete;

private:
    bool& flag_;
    std::condition_variable& grown_;
};

/// What the caching and the pinned allocator share: their device, limits and counters, and the
/// blocks under their lock. Functions REQUIRE the lock unless they say otherwise.
struct SlabAllocator {
    template <class Options>
    SlabAllocator(Backend& of_backend, int of_device, DeviceStatistics::Kind kind,
                  const Options& with)
        : backend(of_backend),
          device(of_device),
          name(with.name),
          record(name, kind, name_of_device()),
          totals(record.totals()),
          budget(with.budget),
          heap(totals),
          events(of_backend, of_device),
          deferred(of_backend, of_device, events, totals) {}
    ~SlabAllocator() { budget.refund(capacity()); }

    /// Without the lock.
    Device name_of_device() const noexcept { return {backend.type(), device}; }
    [[noreturn]] void throw_error(DeviceStatus status, const char* call, const char* what) const {
        device::throw_error(status, name, name_of_device(), call, what, backend);
    }

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
    /// Ends a growth for which `bytes` were set aside. Counts the `got` bytes that the device gave,
    /// and enters them on the timeline.
    void end_growth(std::size_t bytes, std::size_t got) noexcept {
        growing_bytes -= bytes;
        budget.refund(bytes - got);
        if (got == 0) return;
        totals.count_growth(got);
        record.note_capacity();
        events::write_entry(EntryKind::growth, LimitKind::none, got, name);
    }
    void count_give_back(std::size_t bytes) noexcept {
        totals.count_give_back(bytes);
        budget.refund(bytes);
    }
    /// Enters bytes that were counted on the timeline.
    void end_give_back(std::size_t bytes) noexcept {
        record.note_capacity();
        events::write_entry(EntryKind::give_back, LimitKind::none, bytes, name);
    }

    Backend& backend;
    const int device;
    const std::string name;

    alignas(64) mutable std::mutex mutex;  // guards everything below
    std::condition_variable grown;         // a growth ended, or memory returned to the device
    OwnedDeviceRecord record;
    statistics::DeviceTotals& totals;
    const limits::HeldBudget budget;
    BlockHeap heap;
    EventPool events;
    DeferredFrees deferred;
    std::size_t hard_limit = 0;     // in bytes; 0: no limit
    std::size_t growing_bytes = 0;  // being requested from the device
};

/// Throws std::invalid_argument like `validated` unless the limit `name` may be this part of what
/// the device recommends.
inline void check_limit(const CachingOptions& options, const char* name, double part) {
    if (part >= 0 && part <= largest_part) return;  // false for NaN
    refuse(options, std::string(name) + " is " + std::to_string(part) +
                        "; expected 0 for no limit, or up to 2 times what the device recommends");
}
/// Checks the options and returns the device's index. Throws std::invalid_argument that names the
/// allocator, the option, the value found and the value expected.
inline int validated(Backend& backend, int device, const CachingOptions& options) {
    (void)existing_device(backend, device,
                          "tensorpool: caching allocator '" + options.name + "': ");
    check_limit(options, "hard_limit", options.hard_limit);
    check_limit(options, "soft_limit", options.soft_limit);
    if (options.hard_limit != 0 && options.soft_limit > options.hard_limit) {
        refuse(options, "soft_limit is " + std::to_string(options.soft_limit) +
                            "; expected at most the hard_limit, " +
                            std::to_string(options.hard_limit));
    }
    if (options.oversize_bytes <= small_limit) {
        refuse(options, "oversize_bytes is " + std::to_string(options.oversize_bytes) +
                            "; expected more than 1 MiB, the largest size of small blocks");
    }
    if (!has_storage(backend.abilities(device), options.storage)) {
        refuse(options, "the device does not have storage of the requested kind");
    }
    if (options.exportable) check_exportable(options, backend.abilities(device));
    return device;
}

/// The state shared by the parts of one caching allocator: its device, limits, counters, and the
/// blocks under its lock. It makes no decisions; the parts do.
///
/// Order of locks: the allocator's lock, then a stream's. No lock is taken under a stream's. The
/// parts' functions REQUIRE the allocator's lock unless they say otherwise. Slow calls to the
/// device and callbacks are made in the scope of an `Unlocked`.
struct AllocatorState : SlabAllocator {
    AllocatorState(Backend& of_backend, int of_device, const CachingOptions& with)
        : SlabAllocator(of_backend, validated(of_backend, of_device, with),
                        DeviceStatistics::Kind::caching, with),
          options(with),
          abilities(of_backend.abilities(of_device)),
          calls(of_backend, of_device),
          captures_under_way(of_backend.captures_under_way()),
          granule(granule_bytes(abilities, with)),
          watch(of_backend, name_of_device(), with, record) {
        if (abilities.late_free_size) (void)backend.settle_memory(device);
        DeviceMemoryInfo info;
        if (backend.memory_info(device, info) == DeviceStatus::ok) total_bytes = info.total_bytes;
        const bool in_large_steps = !options.keep_near_peak && total_bytes >= large_device_bytes;
        large_granule =
            in_large_steps && granule != 0 ? std::max(large_granule_bytes, granule) : granule;
        if (in_large_steps) {
            xlarge_bytes = abilities.unified_memory ? xlarge_unified_slab_bytes : xlarge_slab_bytes;
        }
        recommended_bytes =
            abilities.recommended_bytes != 0 ? abilities.recommended_bytes : total_bytes;
        set_limit(hard_limit, totals.limit_bytes, options.hard_limit);
        set_limit(soft_limit, totals.soft_limit_bytes, options.soft_limit);
    }
    /// The reasons to close the fast path.
    enum Gate : unsigned { watched = 1, captures = 2, sleeping = 4 };
    [[gnu::always_inline]] bool is_gated() const noexcept {
        // Relaxed: a thread that closes the gate sees all its own calls that begin after that.
        return gate.load(std::memory_order_relaxed) != 0 || is_capture_under_way() ||
               events::is_recording();
    }
    /// Whether a capture that was begun through the backend is under way.
    bool is_capture_under_way() const noexcept {
        return captures_under_way.load(std::memory_order_relaxed) != 0;
    }
    [[gnu::always_inline]] bool is_watched() const noexcept {
        return (gate.load(std::memory_order_relaxed) & watched) != 0 || events::is_recording();
    }

    /// Sets a limit, and the counter that reports it, to this part of what the device recommends.
    void set_limit(std::size_t& limit, detail::Counter& counter, double part) noexcept {
        const auto bytes = static_cast<std::size_t>(static_cast<double>(recommended_bytes) * part);
        detail::add(counter, bytes - limit);
        limit = bytes;
    }

    /// The bytes that may be held for this request without releasing any: the most ever held, and
    /// `sixteenths` of it more.
    std::size_t goal(const Request& request, unsigned sixteenths) const noexcept {
        const std::uint64_t held =
            totals.held_bytes.load(std::memory_order_relaxed) + request.rounded;
        const std::uint64_t most =
            std::max(held, totals.peak_held_bytes.load(std::memory_order_relaxed));
        return static_cast<std::size_t>(most + most / 16 * sixteenths);
    }
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

    AllocatorWatch watch;
    // Guarded by the lock:
    std::vector<std::unique_ptr<StreamCache>> caches;
    std::size_t soft_limit = 0;  // in bytes; 0: no limit
    bool asleep = false;         // memory of blocks in use is with the device: see Sleep
    std::size_t returns = 0;     // threads that are releasing memory to the device
};

}  // namespace tensorpool::device
