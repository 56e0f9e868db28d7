#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/runtime_options.hpp>

namespace tensorpool::device {

/// An object that the first thread that needs it makes, while others wait. If making it throws, the
/// next call tries again.
template <class T>
class MadeOnce {
public:
    template <class Make>
    T& get(Make make) {
        // Acquire: pairs with the release below, so that what was made is seen whole.
        if (T* const made = made_.load(std::memory_order_acquire)) return *made;
        const std::lock_guard guard(mutex_);
        if (owned_ == nullptr) {
            owned_ = make();
            made_.store(owned_.get(), std::memory_order_release);
        }
        return *owned_;
    }
    /// nullptr before it is made.
    T* get_if_made() const noexcept { return made_.load(std::memory_order_acquire); }
    /// It is never destroyed.
    void abandon() noexcept { (void)owned_.release(); }

private:
    std::mutex mutex_;
    std::unique_ptr<T> owned_;
    std::atomic<T*> made_{nullptr};
};

/// A backend and the allocators over it: the part of a runtime that its memory, streams and events
/// share and keep alive. It makes their calls to the backend and turns failures into exceptions.
/// Any thread.
class RuntimeCore {
public:
    /// Throws std::invalid_argument for a device that is not there.
    RuntimeCore(std::shared_ptr<Backend> backend, Device device, const RuntimeOptions& options);
    ~RuntimeCore();
    RuntimeCore(const RuntimeCore&) = delete;
    RuntimeCore& operator=(const RuntimeCore&) = delete;

    Device device() const noexcept { return device_; }
    int index() const noexcept { return device_.index; }
    Backend& backend() const noexcept { return *backend_; }
    std::size_t staging_bytes() const noexcept { return options_.staging_bytes; }
    /// False in the child of a fork: then nothing of it may be touched.
    bool is_ours() const noexcept;

    /// Made at the first call for its kind. Throws as the allocators' constructors.
    DeviceAllocator& allocator(MemoryKind kind);
    /// nullptr of the CPU.
    CachingAllocator* caching_allocator() const noexcept { return caching_.get(); }
    std::size_t trim() noexcept;
    /// Whether the host finds memory of this kind at its address.
    bool is_host_memory(MemoryKind kind) const noexcept {
        return kind != MemoryKind::device || device_.type == DeviceType::cpu;
    }

    StreamHandle create_stream();
    /// Waits for its work, and tells the allocators first.
    void destroy_stream(StreamHandle stream) noexcept;

    void copy(CopyKind kind, void* to, const void* from, std::size_t bytes);
    void copy(CopyKind kind, void* to, const void* from, std::size_t bytes, StreamHandle stream);
    /// After all that the stream was given so far; done when it returns. Nothing of it is left in
    /// a graph, or for later, where it throws.
    void wait_and_copy(CopyKind kind, void* to, const void* from, std::size_t bytes,
                       StreamHandle stream);
    /// Calls the function once, in the stream's order. Throws DeviceError if the stream is
    /// captured: a graph may be launched often, or never.
    void call_once(StreamHandle stream, std::function<void()> function, const char* call);
    void synchronize_stream(StreamHandle stream);

    /// Throws DeviceError unless the call that has just returned this succeeded.
    void check(DeviceStatus status, const char* call) const;
    /// Throws DeviceError unless the call for so many bytes that has just returned this succeeded.
    void check(DeviceStatus status, const char* call, std::size_t bytes) const;
    /// Whether the work that was queried is done. Throws DeviceError if the query failed.
    bool is_done(DeviceStatus status, const char* call) const;

private:
    HostAllocator& host();

    std::shared_ptr<Backend> backend_;
    const Device device_;
    const RuntimeOptions options_;
    const std::uint64_t forks_;
    std::unique_ptr<CachingAllocator> caching_;
    MadeOnce<PinnedAllocator> pinned_;
    MadeOnce<HostAllocator> host_;
};

}  // namespace tensorpool::device
