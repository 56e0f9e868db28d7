#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/runtime_options.hpp>

#include "device/runtime/made_once.hpp"

namespace tensorpool::device {

/// What of a runtime its memory, streams and events need, and keep as long as they live: a backend
/// and allocators over it. Any thread.
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
    /// Calls the function once, in the stream's order, and then owns the argument. Throws
    /// DeviceError where the stream is captured: a graph may be launched often, or never.
    void call_once(StreamHandle stream, void (*function)(void*), void* argument, const char* call);
    void synchronize_stream(StreamHandle stream);

    /// Throws DeviceError unless the call that has just returned this succeeded.
    void check(DeviceStatus status, const char* call) const;
    /// The same, of a call for so many bytes.
    void check(DeviceStatus status, const char* call, std::size_t bytes) const;

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
