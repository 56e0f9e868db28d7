#include <tensorpool/device/host_backend.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/call_errors.hpp"
#include "device/host/range_map.hpp"
#include "platform/platform.hpp"

namespace tensorpool {

using device::refuse;
using device::to_text;

namespace {

/// Refuses more than is available. The system could promise more, but it kills processes that use
/// what it cannot back.
void check_available(std::size_t bytes) {
    const std::size_t available = platform::available_memory();
    if (bytes <= available) return;
    throw DeviceError(DeviceStatus::out_of_memory, std::to_string(bytes) + " B requested, " +
                                                       std::to_string(available) + " B available");
}

/// Maps at least `bytes` of zeros from the system, in huge pages if it is large enough.
void* map_pages(std::size_t bytes) {
    check_available(bytes);
    const std::size_t whole = platform::whole_pages(bytes);
    const bool large = whole >= platform::huge_page_bytes;
    void* const memory =
        platform::map(whole, large ? platform::huge_page_bytes : platform::page_bytes());
    if (memory == nullptr) {
        throw DeviceError(DeviceStatus::out_of_memory,
                          "the system refused to map " + std::to_string(whole) + " B");
    }
    if (large) platform::prefer_huge_pages(memory, whole);
    return memory;
}

void unmap_pages(void* memory, std::size_t bytes) noexcept {
    platform::unmap(memory, platform::whole_pages(bytes));
}

/// Memory from the system, in whole pages of zeros, and the record of what is allocated. Kinds of
/// memory are distinguished by a number. Errors are thrown as DeviceError. Any thread.
class HostMemory {
public:
    using Kind = int;

    /// Unmaps everything that was not freed.
    ~HostMemory() {
        for (const auto& [address, range] : ranges_.ranges()) {
            unmap_pages(reinterpret_cast<void*>(address), range.bytes);
        }
    }

    void* allocate(std::size_t bytes, Kind kind) {
        if (bytes == 0) refuse("0 B requested, expected more");
        void* const memory = map_pages(bytes);
        try {
            const std::lock_guard guard(mutex_);
            ranges_.add(memory, bytes, kind);
        } catch (...) {
            unmap_pages(memory, bytes);
            throw;
        }
        return memory;
    }
    /// Does nothing for nullptr.
    void deallocate(void* memory, std::size_t bytes, Kind kind) {
        if (memory == nullptr) return;
        {
            const std::lock_guard guard(mutex_);
            const auto* const range = ranges_.find(memory);
            if (range == nullptr) {
                refuse("no memory of this backend begins at " + to_text(memory) +
                       ", expected an allocation that was not freed");
            }
            if (range->bytes != bytes || range->value != kind) {
                refuse("memory at " + to_text(memory) + " was allocated as " +
                       std::to_string(range->bytes) + " B of kind " + std::to_string(range->value) +
                       ", found " + std::to_string(bytes) + " B of kind " + std::to_string(kind));
            }
            ranges_.take(memory);
        }
        unmap_pages(memory, bytes);
    }

    /// Registers memory owned by others. Rejected if a part of it is allocated or registered.
    void add_foreign(void* memory, std::size_t bytes) {
        const std::lock_guard guard(mutex_);
        if (memory == nullptr || bytes == 0) {
            refuse("found " + std::to_string(bytes) + " B at " + to_text(memory) +
                   ", expected memory");
        }
        if (ranges_.overlaps(memory, bytes) || !foreign_.add(memory, bytes, 0)) {
            refuse("a part of " + std::to_string(bytes) + " B at " + to_text(memory) +
                   " is pinned already or lies outside the address space");
        }
    }
    void remove_foreign(void* memory) {
        const std::lock_guard guard(mutex_);
        if (!foreign_.take(memory)) {
            refuse("no registered memory begins at " + to_text(memory));
        }
    }

private:
    std::mutex mutex_;
    device::RangeMap<Kind> ranges_;
    device::RangeMap<Kind> foreign_;
};

constexpr HostMemory::Kind pinned_kind = 0;

HostMemory::Kind number_of(StorageKind kind) {
    if (kind <= StorageKind::managed) return static_cast<HostMemory::Kind>(kind);
    refuse("storage kind " + std::to_string(static_cast<int>(kind)) + " is unknown");
}

void check_advised(const void* memory, std::size_t bytes) {
    if (memory != nullptr && bytes != 0) return;
    refuse("found " + std::to_string(bytes) + " B at " + to_text(memory) + ", expected memory");
}

void check_range(const char* what, const void* memory, std::size_t bytes) {
    if (memory != nullptr || bytes == 0) return;
    refuse(std::string(what) + " is nullptr, expected " + std::to_string(bytes) + " B of memory");
}

void check_copy(CopyKind kind, const void* to, const void* from, std::size_t bytes) {
    if (kind > CopyKind::device_to_device) {
        refuse("copy kind " + std::to_string(static_cast<int>(kind)) + " is unknown");
    }
    check_range("to", to, bytes);
    check_range("from", from, bytes);
}

/// What orders the work of one stream: held while a piece of it runs.
using Stream = std::mutex;

struct Event {
    explicit Event(bool timing) : has_timing(timing) {}

    const bool has_timing;
    // 0: never recorded. Relaxed suffices: threads that compare times have synchronized already.
    std::atomic<std::uint64_t> recorded_ns{0};
};

/// Objects by handles, which are never used twice, so any invalid one is recognized. An object
/// lives as long as a call uses it. Any thread.
template <class T, class Handle>
class HandleTable {
public:
    Handle add(std::shared_ptr<T> object) {
        const std::lock_guard guard(mutex_);
        const auto handle = reinterpret_cast<Handle>(4 * ++last_);
        objects_.emplace(handle, std::move(object));
        return handle;
    }
    /// Returns nullptr for an invalid handle.
    std::shared_ptr<T> find(Handle handle) const {
        const std::lock_guard guard(mutex_);
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    bool remove(Handle handle) {
        const std::lock_guard guard(mutex_);
        return objects_.erase(handle) != 0;
    }
    std::vector<std::shared_ptr<T>> all() const {
        const std::lock_guard guard(mutex_);
        std::vector<std::shared_ptr<T>> objects;
        for (const auto& [handle, object] : objects_) objects.push_back(object);
        return objects;
    }

private:
    mutable std::mutex mutex_;
    std::unordered_map<Handle, std::shared_ptr<T>> objects_;
    std::uintptr_t last_ = 0;
};

}  // namespace

struct HostBackend::State {
    State() : name(platform::processor_name().text) {
        if (name.empty()) name = "CPU";
    }

    /// Makes a call, that of the function of the backend, for device 0. Returns what `body`
    /// returns, ok if it returns nothing, or the status of what it throws.
    template <class Body>
    DeviceStatus call(int device, Body body, const char* function = __builtin_FUNCTION()) noexcept {
        return errors.guard(function, [&] {
            if (device != 0) {
                refuse("device " + std::to_string(device) + ", expected 0, the only one");
            }
            return body();
        });
    }

    std::shared_ptr<Stream> stream_of(StreamHandle handle) const {
        if (handle == nullptr) return default_stream;
        if (auto stream = streams.find(handle)) return stream;
        refuse("stream " + to_text(handle) +
               ": expected nullptr, the default stream, or one that was created and not destroyed");
    }
    /// Does the work in the order of the stream.
    template <class Work>
    void work(StreamHandle handle, Work work) const {
        const std::shared_ptr<Stream> stream = stream_of(handle);
        const std::lock_guard guard(*stream);
        work();
    }
    void copy(CopyKind kind, void* to, const void* from, std::size_t bytes,
              StreamHandle stream) const {
        check_copy(kind, to, from, bytes);
        work(stream, [&] {
            if (bytes != 0) std::memcpy(to, from, bytes);
        });
    }
    void fill(void* to, std::uint8_t byte, std::size_t bytes, StreamHandle stream) const {
        check_range("memory", to, bytes);
        work(stream, [&] {
            if (bytes != 0) std::memset(to, byte, bytes);
        });
    }
    /// Waits for the work that other threads are submitting.
    void wait_for_all() const {
        auto waited = streams.all();
        waited.push_back(default_stream);
        for (const auto& stream : waited) {
            const std::lock_guard guard(*stream);
        }
    }

    std::shared_ptr<Event> event_of(EventHandle handle) const {
        if (auto event = events.find(handle)) return event;
        refuse_event(handle);
    }
    [[noreturn]] static void refuse_event(EventHandle handle) {
        refuse("event " + to_text(handle) + ": expected one that was created and not destroyed");
    }

    const std::size_t total_bytes = platform::total_memory();
    std::string name;
    device::CallErrors errors;
    HostMemory memory;
    HostMemory pinned;
    const std::shared_ptr<Stream> default_stream = std::make_shared<Stream>();
    HandleTable<Stream, StreamHandle> streams;
    HandleTable<Event, EventHandle> events;
};

HostBackend::HostBackend() : state_(std::make_unique<State>()) {}
HostBackend::~HostBackend() = default;

// Devices ----------------------------------------------------------------------------------------

DeviceType HostBackend::type() const noexcept {
    return DeviceType::cpu;
}

int HostBackend::device_count() noexcept {
    return 1;
}

std::string HostBackend::device_name(int device) {
    return device == 0 ? state_->name : std::string();
}

DeviceAbilities HostBackend::abilities(int device) noexcept {
    if (device != 0) return {};
    return {.unified_memory = true,
            .shared_storage = true,
            .managed_storage = true,
            .managed_advice = true,
            .stream_ordered_allocation = true,
            .largest_allocation = state_->total_bytes};
}

DeviceStatus HostBackend::memory_info(int device, DeviceMemoryInfo& info) noexcept {
    return state_->call(device, [&] {
        const std::size_t total = state_->total_bytes;
        info = {std::min(platform::available_memory(), total), total};
    });
}

DeviceStatus HostBackend::settle_memory(int device) noexcept {
    return state_->call(device, [] {});
}

DeviceStatus HostBackend::synchronize_device(int device) noexcept {
    return state_->call(device, [&] { state_->wait_for_all(); });
}

// Memory -----------------------------------------------------------------------------------------

DeviceStatus HostBackend::allocate(int device, std::size_t bytes, StorageKind kind,
                                   void** memory) noexcept {
    return state_->call(device, [&] { *memory = state_->memory.allocate(bytes, number_of(kind)); });
}

DeviceStatus HostBackend::deallocate(int device, void* memory, std::size_t bytes,
                                     StorageKind kind) noexcept {
    return state_->call(device, [&] { state_->memory.deallocate(memory, bytes, number_of(kind)); });
}

DeviceStatus HostBackend::allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                         void** memory) noexcept {
    return state_->call(device, [&] {
        (void)state_->stream_of(stream);
        *memory = state_->memory.allocate(bytes, number_of(StorageKind::private_storage));
    });
}

DeviceStatus HostBackend::deallocate_async(int device, void* memory, std::size_t bytes,
                                           StreamHandle stream) noexcept {
    return state_->call(device, [&] {
        state_->work(stream, [&] {
            state_->memory.deallocate(memory, bytes, number_of(StorageKind::private_storage));
        });
    });
}

DeviceStatus HostBackend::set_release_threshold(int device, std::size_t) noexcept {
    return state_->call(device, [] {});
}

DeviceStatus HostBackend::trim_stream_ordered(int device, std::size_t& given_back) noexcept {
    return state_->call(device, [&] { given_back = 0; });
}

void* HostBackend::host_pointer(int device, void* memory) noexcept {
    return device == 0 ? memory : nullptr;
}

DeviceStatus HostBackend::advise_memory(int device, void* memory, std::size_t bytes, MemoryAdvice,
                                        Processor) noexcept {
    return state_->call(device, [&] { check_advised(memory, bytes); });
}

DeviceStatus HostBackend::prefetch_memory(int device, void* memory, std::size_t bytes, Processor,
                                          StreamHandle stream) noexcept {
    return state_->call(device, [&] {
        (void)state_->stream_of(stream);
        check_advised(memory, bytes);
    });
}

DeviceStatus HostBackend::allocate_pinned(int device, std::size_t bytes, void** memory) noexcept {
    return state_->call(device, [&] { *memory = state_->pinned.allocate(bytes, pinned_kind); });
}

DeviceStatus HostBackend::deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call(device, [&] { state_->pinned.deallocate(memory, bytes, pinned_kind); });
}

DeviceStatus HostBackend::register_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call(device, [&] { state_->pinned.add_foreign(memory, bytes); });
}

DeviceStatus HostBackend::unregister_pinned(int device, void* memory) noexcept {
    return state_->call(device, [&] { state_->pinned.remove_foreign(memory); });
}

// Streams ----------------------------------------------------------------------------------------

DeviceStatus HostBackend::create_stream(int device, StreamHandle* stream, int priority) noexcept {
    return state_->call(device, [&] {
        device::check_priority(priority, {});
        *stream = state_->streams.add(std::make_shared<Stream>());
    });
}

DeviceStatus HostBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return state_->call(device, [&] {
        if (state_->streams.remove(stream)) return;
        refuse("stream " + to_text(stream) + ": expected one that was created and not destroyed");
    });
}

DeviceStatus HostBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return state_->call(device, [&] { state_->work(stream, [] {}); });
}

DeviceStatus HostBackend::query_stream(int device, StreamHandle stream) noexcept {
    return state_->call(device, [&] {
        const std::shared_ptr<Stream> queried = state_->stream_of(stream);
        const std::unique_lock lock(*queried, std::try_to_lock);
        return lock.owns_lock() ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus HostBackend::wait_event(int device, StreamHandle stream, EventHandle event) noexcept {
    return state_->call(device, [&] {
        (void)state_->stream_of(stream);
        (void)state_->event_of(event);
    });
}

DeviceStatus HostBackend::launch_host_function(int device, StreamHandle stream,
                                               void (*function)(void*), void* argument) noexcept {
    return state_->call(device, [&] {
        if (function == nullptr) refuse("the function is nullptr, expected a function");
        state_->work(stream, [&] { function(argument); });
    });
}

// Events -----------------------------------------------------------------------------------------

DeviceStatus HostBackend::create_event(int device, EventFlags flags, EventHandle* event) noexcept {
    return state_->call(device, [&] {
        device::check_flags_of_one_process(flags);
        *event = state_->events.add(std::make_shared<Event>(contains(flags, EventFlags::timing)));
    });
}

DeviceStatus HostBackend::destroy_event(int device, EventHandle event) noexcept {
    return state_->call(device, [&] {
        if (!state_->events.remove(event)) State::refuse_event(event);
    });
}

DeviceStatus HostBackend::record_event(int device, EventHandle event,
                                       StreamHandle stream) noexcept {
    return state_->call(device, [&] {
        const std::shared_ptr<Event> recorded = state_->event_of(event);
        state_->work(stream, [&] {
            recorded->recorded_ns.store(platform::monotonic_clock_ns(), std::memory_order_relaxed);
        });
    });
}

DeviceStatus HostBackend::query_event(int device, EventHandle event) noexcept {
    return state_->call(device, [&] { (void)state_->event_of(event); });
}

DeviceStatus HostBackend::synchronize_event(int device, EventHandle event) noexcept {
    return state_->call(device, [&] { (void)state_->event_of(event); });
}

DeviceStatus HostBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                     float* ms) noexcept {
    return state_->call(device, [&] {
        const std::shared_ptr<Event> begin = state_->event_of(from);
        const std::shared_ptr<Event> end = state_->event_of(to);
        if (!begin->has_timing || !end->has_timing) {
            refuse("an event was created without timing, expected two with timing");
        }
        const std::uint64_t begin_ns = begin->recorded_ns.load(std::memory_order_relaxed);
        const std::uint64_t end_ns = end->recorded_ns.load(std::memory_order_relaxed);
        if (begin_ns == 0 || end_ns == 0) {
            refuse("an event was never recorded, expected two recorded events");
        }
        *ms =
            static_cast<float>((static_cast<double>(end_ns) - static_cast<double>(begin_ns)) / 1e6);
    });
}

// Copies and fills -------------------------------------------------------------------------------

DeviceStatus HostBackend::copy(int device, CopyKind kind, void* to, const void* from,
                               std::size_t bytes) noexcept {
    return state_->call(device, [&] { state_->copy(kind, to, from, bytes, nullptr); });
}

DeviceStatus HostBackend::copy_async(int device, CopyKind kind, void* to, const void* from,
                                     std::size_t bytes, StreamHandle stream) noexcept {
    return state_->call(device, [&] { state_->copy(kind, to, from, bytes, stream); });
}

DeviceStatus HostBackend::fill(int device, void* memory, std::uint8_t byte,
                               std::size_t bytes) noexcept {
    return state_->call(device, [&] { state_->fill(memory, byte, bytes, nullptr); });
}

DeviceStatus HostBackend::fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                     StreamHandle stream) noexcept {
    return state_->call(device, [&] { state_->fill(memory, byte, bytes, stream); });
}

std::string HostBackend::last_error() {
    return state_->errors.last();
}

}  // namespace tensorpool
