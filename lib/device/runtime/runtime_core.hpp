#pragma once

#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/runtimes.hpp>

#include "device/call_errors.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::device {

inline std::shared_ptr<Backend> check_device(std::shared_ptr<Backend> backend, Device device) {
    if (backend == nullptr) {
        throw std::invalid_argument("tensorpool: a runtime of " + to_string(device) +
                                    " has no backend; expected one");
    }
    const int count = backend->device_count();
    if (device.index >= 0 && device.index < count) return backend;
    throw std::invalid_argument("tensorpool: there is no device " + to_string(device) +
                                ": the backend has " + std::to_string(count) + " devices");
}

inline std::shared_ptr<HostMemorySource> source_of(const RuntimeOptions& options) {
    return options.host_source != nullptr ? options.host_source : system_memory_source();
}

/// Incremented whenever devices may have been added or removed, or a runtime was made. A thread's
/// cached current device is valid as long as this is unchanged. Never 0, which means that a thread
/// has cached nothing.
inline constinit std::atomic<std::uint32_t> device_changes{1};

/// Release: pairs with the acquire of threads that read the counter, so that they see the change.
inline void note_device_change() noexcept {
    device_changes.fetch_add(1, std::memory_order_release);
}

/// The number of forks between the first process and this one, as far as they were observed. State
/// made before the last fork belongs to another process: threads that do not exist here may hold
/// its locks, and the driver's state is unusable. Such state is not touched. Relaxed: when the
/// value changes, the child has one thread.
inline constinit std::atomic<std::uint64_t> forks_seen{0};

/// Whether state that was made at this value of `forks_seen` belongs to this process.
inline bool is_ours(std::uint64_t forks) noexcept {
    return forks == forks_seen.load(std::memory_order_relaxed);
}

/// Starts counting forks. Any thread; further calls have no effect.
inline void watch_forks() noexcept {
    // This fails only for lack of memory. A child must then not use devices; nothing else is lost.
    (void)platform::set_fork_handlers(
        platform::ForkStage::devices, [] {}, [] {},
        [] {
            forks_seen.fetch_add(1, std::memory_order_relaxed);
            note_device_change();
        });
}

/// An object made by the first thread that needs it, while others wait. If making it throws, the
/// next call tries again.
template <class T>
class MadeOnce {
public:
    template <class Make>
    T& get(Make make) {
        // Acquire: pairs with the release below, so that the whole object is visible.
        if (T* const made = made_.load(std::memory_order_acquire)) return *made;
        const std::lock_guard guard(mutex_);
        if (owned_ == nullptr) {
            owned_ = make();
            made_.store(owned_.get(), std::memory_order_release);
        }
        return *owned_;
    }
    T* get_if_made() const noexcept { return made_.load(std::memory_order_acquire); }
    /// Releases the object without destroying it.
    void abandon() noexcept { (void)owned_.release(); }

private:
    std::mutex mutex_;
    std::unique_ptr<T> owned_;
    std::atomic<T*> made_{nullptr};
};

/// A backend and the allocators over it: the part of a runtime that its memory, streams and events
/// share and keep alive. Makes their calls to the backend and turns failures into exceptions.
/// Any thread.
class RuntimeCore {
public:
    /// Throws std::invalid_argument for a device that does not exist.
    RuntimeCore(std::shared_ptr<Backend> backend, Device device, const RuntimeOptions& options)
        : backend_(check_device(std::move(backend), device)),
          device_(device),
          options_(options),
          forks_(forks_seen.load(std::memory_order_relaxed)) {
        if (options.staging_bytes == 0) {
            throw std::invalid_argument("tensorpool: staging_bytes is 0, expected 1 or more");
        }
        watch_forks();
        if (device.type == DeviceType::cpu) return;
        if (options.stream_ordered) {
            ordered_ = std::make_unique<StreamOrderedAllocator>(*backend_, device.index,
                                                                *options.stream_ordered);
            return;
        }
        caching_ = std::make_unique<CachingAllocator>(*backend_, device.index, options.caching);
    }
    ~RuntimeCore() {
        if (is_ours()) return;
        (void)caching_.release();
        (void)ordered_.release();
        pinned_.abandon();
        host_.abandon();
        // Leaks a reference to the backend, so that it is never destroyed in this process.
        new (std::nothrow) std::shared_ptr<Backend>(std::move(backend_));
    }

    Device device() const noexcept { return device_; }
    int index() const noexcept { return device_.index; }
    Backend& backend() const noexcept { return *backend_; }
    std::size_t staging_bytes() const noexcept { return options_.staging_bytes; }
    int stream_priority() const noexcept { return options_.stream_priority; }
    /// False in the child of a fork; nothing of this object may be used there.
    bool is_ours() const noexcept { return device::is_ours(forks_); }

    /// Returns the allocator, which the first call for its kind makes. Throws what the allocator's
    /// constructor throws.
    DeviceAllocator& allocator(MemoryKind kind) {
        if (kind == MemoryKind::device && caching_ != nullptr) return *caching_;
        if (kind == MemoryKind::device && ordered_ != nullptr) return *ordered_;
        if (kind != MemoryKind::pinned) return host();
        return pinned_.get(
            [&] { return std::make_unique<PinnedAllocator>(*backend_, index(), options_.pinned); });
    }
    /// Returns nullptr if device memory comes from another allocator.
    CachingAllocator* caching_allocator() const noexcept { return caching_.get(); }
    std::size_t trim() noexcept {
        std::size_t bytes = caching_ != nullptr ? caching_->trim() : 0;
        if (ordered_ != nullptr) bytes += ordered_->trim();
        if (PinnedAllocator* const pinned = pinned_.get_if_made()) bytes += pinned->trim();
        if (HostAllocator* const host = host_.get_if_made()) bytes += host->trim();
        return bytes;
    }
    bool is_host_memory(MemoryKind kind) const noexcept {
        return kind != MemoryKind::device || device_.type == DeviceType::cpu;
    }

    /// Returns the calling thread's current stream; nullptr means the default stream.
    StreamHandle current_stream() const noexcept;
    StreamHandle stream_or_current(std::optional<StreamHandle> stream) const noexcept {
        return stream ? *stream : current_stream();
    }
    StreamHandle create_stream(int priority) {
        StreamHandle stream = nullptr;
        check(backend_->create_stream(index(), &stream, priority), "create_stream");
        return stream;
    }
    /// Ends the stream in the allocators, waits for its work, and destroys it.
    void destroy_stream(StreamHandle stream) noexcept {
        try {
            if (caching_ != nullptr) caching_->end_stream(stream);
            if (ordered_ != nullptr) ordered_->end_stream(stream);
            if (PinnedAllocator* const pinned = pinned_.get_if_made()) pinned->end_stream(stream);
            if (HostAllocator* const host = host_.get_if_made()) host->end_stream(stream);
        } catch (...) {
            // The device is lost, or a capture was never ended. The handle is leaked, so that no
            // other stream can be mistaken for this one.
            return;
        }
        backend_->synchronize_stream(index(), stream);
        backend_->destroy_stream(index(), stream);
    }

    void copy(CopyKind kind, void* to, const void* from, std::size_t bytes, StreamHandle stream) {
        const DeviceStatus status = backend_->copy_async(index(), kind, to, from, bytes, stream);
        if (status != DeviceStatus::ok) [[unlikely]]
            check(status, (std::string("copy ") + to_string(kind) + " in a stream").c_str(), bytes);
    }
    /// Waits for the stream and the default stream, and then copies synchronously. A failed copy is
    /// not done later either, and no part of it becomes part of a graph.
    void wait_and_copy(CopyKind kind, void* to, const void* from, std::size_t bytes,
                       StreamHandle stream) {
        // A copy without a stream waits for the default stream itself.
        DeviceStatus status =
            stream != nullptr ? backend_->synchronize_stream(index(), stream) : DeviceStatus::ok;
        if (status == DeviceStatus::ok) status = backend_->copy(index(), kind, to, from, bytes);
        if (status != DeviceStatus::ok) [[unlikely]]
            check(status, (std::string("copy ") + to_string(kind)).c_str(), bytes);
    }
    /// Calls the function once, in the stream's order. Throws DeviceError if the stream is being
    /// captured, because a graph may be launched any number of times.
    void call_once(StreamHandle stream, std::function<void()> function, const char* call) {
        using Function = std::function<void()>;
        auto stored = std::make_unique<Function>(std::move(function));
        if (is_captured(stream, call)) {
            throw DeviceError(
                DeviceStatus::in_capture,
                std::string("tensorpool: ") + call + " on " + to_string(device_) +
                    ": not allowed during capture: its function is called once, and a "
                    "graph may be launched often; expected a stream that is not "
                    "captured, or Backend::launch_host_function");
        }
        const auto run = [](void* argument) {
            const std::unique_ptr<Function> taken(static_cast<Function*>(argument));
            (*taken)();
        };
        check(backend_->launch_host_function(index(), stream, run, stored.get()), call);
        (void)stored.release();
    }
    void synchronize_stream(StreamHandle stream) {
        check(backend_->synchronize_stream(index(), stream), "synchronize_stream");
    }
    /// Returns whether the stream is being captured. `call` names the call for errors.
    bool is_captured(StreamHandle stream, const char* call) const {
        CaptureState state;
        check(backend_->capture_state(index(), stream, state), call);
        return state.capturing;
    }

    /// Throws DeviceError unless `status` is ok.
    void check(DeviceStatus status, const char* call) const {
        check_status(status, call, device_, *backend_);
    }
    /// Throws DeviceError, which also names the size, unless `status` is ok.
    void check(DeviceStatus status, const char* call, std::size_t bytes) const {
        if (status != DeviceStatus::ok) [[unlikely]]
            throw_status(status, std::string(call) + " of " + std::to_string(bytes) + " bytes",
                         device_, *backend_);
    }
    /// Returns whether the queried work is done. Throws DeviceError if the query failed.
    bool is_done(DeviceStatus status, const char* call) const {
        if (status == DeviceStatus::not_ready) return false;
        check(status, call);
        return true;
    }

private:
    HostAllocator& host() {
        return host_.get([&] {
            return std::make_unique<HostAllocator>(*backend_, device_, source_of(options_));
        });
    }

    std::shared_ptr<Backend> backend_;
    const Device device_;
    const RuntimeOptions options_;
    const std::uint64_t forks_;
    // Of these two, the CPU has none, and other devices one.
    std::unique_ptr<CachingAllocator> caching_;
    std::unique_ptr<StreamOrderedAllocator> ordered_;
    MadeOnce<PinnedAllocator> pinned_;
    MadeOnce<HostAllocator> host_;
};

struct CopyEnd {
    RuntimeCore& core;
    void* memory;
    MemoryKind kind;
    StreamHandle stream;

    bool on_host() const noexcept { return core.is_host_memory(kind); }
    CopyEnd at(std::size_t offset) const noexcept {
        return {core, static_cast<std::byte*>(memory) + offset, kind, stream};
    }
};

/// Copies `bytes` in the order of both streams, as DeviceAllocation::copy_from documents. Throws
/// DeviceError.
void copy_between(const CopyEnd& to, const CopyEnd& from, std::size_t bytes);
/// Sets each byte to `byte`, in the order of the stream. Throws DeviceError.
void fill(const CopyEnd& end, std::uint8_t byte, std::size_t bytes);

/// Throws std::invalid_argument if `bytes` bytes of memory are too few for a tensor of this shape,
/// or if the shape is invalid. An empty shape is always accepted.
void check_shape(const MemoryShape& shape, std::size_t bytes);

// The runtimes made so far: what sources need besides the functions of runtimes.hpp. All throw
// std::bad_alloc if there is no memory for the registry.

/// Returns nullptr if the runtime was not made yet, or for devices beyond the first 16 of a type.
Runtime* runtime_if_made(Device device);
/// Whether a runtime of this type was made. Makes no call to a backend.
bool has_runtime(DeviceType type);
/// Throws std::invalid_argument if `get_runtime` does not return this runtime.
void check_known(const Runtime& runtime);
/// Throws std::invalid_argument if there is no such device.
void check_device(Device device);

/// A program's objects for one device, one of each type. Lookups take no lock. Objects are made one
/// at a time, so that two threads whose objects request each other's types cannot deadlock.
class ObjectTable {
public:
    ~ObjectTable() { end(); }

    /// Returns the object of this type, or nullptr if none was made yet.
    void* find(const std::type_info& type) const noexcept {
        // Acquire: pairs with the release in `make`, so that the entry and its object are visible.
        for (const Entry* entry = last_.load(std::memory_order_acquire); entry != nullptr;
             entry = entry->next) {
            if (*entry->type == type) return entry->object;
        }
        return nullptr;
    }
    /// Returns the object of this type and makes it if needed. Throws what the factory throws,
    /// std::logic_error if the calling thread is already making this type, and std::bad_alloc.
    void* make(Runtime& runtime, const Runtime::ObjectRecipe& recipe) {
        const std::lock_guard guard(making_);
        if (void* const made = find(*recipe.type)) return made;
        check_not_under_way(*recipe.type);
        auto entry = std::make_unique<Entry>(Entry{recipe.type, nullptr, recipe.destroy, nullptr});
        const UnderWay here = {recipe.type, under_way_};
        struct Restore {
            const UnderWay*& current;
            const UnderWay* before;
            ~Restore() { current = before; }
        } const restore = {under_way_, std::exchange(under_way_, &here)};
        entry->object = recipe.make(runtime, recipe.factory);
        if (entry->object == nullptr) {
            throw std::logic_error(
                std::string("tensorpool: Runtime::object: the factory returned nullptr for type ") +
                recipe.type->name() + ", expected an object");
        }
        // Objects that the factory requested are already in the list, so they are destroyed later.
        entry->next = last_.load(std::memory_order_relaxed);
        last_.store(entry.get(), std::memory_order_release);
        return entry.release()->object;
    }
    /// Destroys all objects, the last one made first. An object that requests another during its
    /// destruction gets it; it is made again if needed, because the table still exists.
    void end() noexcept {
        while (Entry* const entry = last_.load(std::memory_order_relaxed)) {
            last_.store(entry->next, std::memory_order_relaxed);
            entry->destroy(entry->object);
            delete entry;
        }
    }

private:
    struct Entry {
        const std::type_info* type;
        void* object;
        void (*destroy)(void* object) noexcept;
        Entry* next;  // the entry made before this one
    };
    struct UnderWay {
        const std::type_info* type;
        const UnderWay* outer;
    };

    void check_not_under_way(const std::type_info& type) const {
        for (const UnderWay* now = under_way_; now != nullptr; now = now->outer) {
            if (*now->type != type) continue;
            throw std::logic_error(
                std::string("tensorpool: Runtime::object: an object of type ") + type.name() +
                " requests itself during its construction; expected requests for other types only");
        }
    }

    std::atomic<Entry*> last_{nullptr};
    // Held while an object is made; recursively if the factory requests other objects.
    std::recursive_mutex making_;
    const UnderWay* under_way_ = nullptr;  // guarded by making_
};

}  // namespace tensorpool::device
