#pragma once

#include <mutex>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/runtime_options.hpp>

namespace tensorpool::device {

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
void watch_forks() noexcept;

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
    /// Returns nullptr if the object was not made yet.
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
    RuntimeCore(std::shared_ptr<Backend> backend, Device device, const RuntimeOptions& options);
    ~RuntimeCore();
    RuntimeCore(const RuntimeCore&) = delete;
    RuntimeCore& operator=(const RuntimeCore&) = delete;

    Device device() const noexcept { return device_; }
    int index() const noexcept { return device_.index; }
    Backend& backend() const noexcept { return *backend_; }
    std::size_t staging_bytes() const noexcept { return options_.staging_bytes; }
    int stream_priority() const noexcept { return options_.stream_priority; }
    /// False in the child of a fork; nothing of this object may be used there.
    bool is_ours() const noexcept;

    /// Returns the allocator, which the first call for its kind makes. Throws what the allocator's
    /// constructor throws.
    DeviceAllocator& allocator(MemoryKind kind);
    /// Returns nullptr if device memory comes from another allocator.
    CachingAllocator* caching_allocator() const noexcept { return caching_.get(); }
    std::size_t trim() noexcept;
    /// Whether memory of this kind is host memory.
    bool is_host_memory(MemoryKind kind) const noexcept {
        return kind != MemoryKind::device || device_.type == DeviceType::cpu;
    }

    /// Returns the calling thread's current stream; nullptr means the default stream.
    StreamHandle current_stream() const noexcept;
    StreamHandle stream_or_current(std::optional<StreamHandle> stream) const noexcept {
        return stream ? *stream : current_stream();
    }
    StreamHandle create_stream(int priority);
    /// Ends the stream in the allocators, waits for its work, and destroys it.
    void destroy_stream(StreamHandle stream) noexcept;

    void copy(CopyKind kind, void* to, const void* from, std::size_t bytes, StreamHandle stream);
    /// Waits for the stream and the default stream, and then copies synchronously. A failed copy is
    /// not done later either, and no part of it becomes part of a graph.
    void wait_and_copy(CopyKind kind, void* to, const void* from, std::size_t bytes,
                       StreamHandle stream);
    /// Calls the function once, in the stream's order. Throws DeviceError if the stream is being
    /// captured, because a graph may be launched any number of times.
    void call_once(StreamHandle stream, std::function<void()> function, const char* call);
    void synchronize_stream(StreamHandle stream);
    /// Returns whether the stream is being captured. `call` names the call for errors.
    bool is_captured(StreamHandle stream, const char* call) const;

    /// Throws DeviceError unless `status` is ok.
    void check(DeviceStatus status, const char* call) const;
    /// Throws DeviceError, which also names the size, unless `status` is ok.
    void check(DeviceStatus status, const char* call, std::size_t bytes) const;
    /// Returns whether the queried work is done. Throws DeviceError if the query failed.
    bool is_done(DeviceStatus status, const char* call) const;

private:
    HostAllocator& host();

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

}  // namespace tensorpool::device
