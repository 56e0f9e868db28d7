#include "device/runtime/runtime_core.hpp"

#include <utility>

#include "device/call_errors.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::device {
namespace {

std::shared_ptr<Backend> check_device(std::shared_ptr<Backend> backend, Device device) {
    if (backend == nullptr) {
        throw std::invalid_argument("tensorpool: a runtime of " + to_string(device) +
                                    " has no backend; expected one");
    }
    const int count = backend->device_count();
    if (device.index >= 0 && device.index < count) return backend;
    throw std::invalid_argument("tensorpool: there is no device " + to_string(device) +
                                ": the backend has " + std::to_string(count) + " devices");
}

std::shared_ptr<HostMemorySource> source_of(const RuntimeOptions& options) {
    return options.host_source != nullptr ? options.host_source : system_memory_source();
}

}  // namespace

RuntimeCore::RuntimeCore(std::shared_ptr<Backend> backend, Device device,
                         const RuntimeOptions& options)
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

RuntimeCore::~RuntimeCore() {
    if (is_ours()) return;
    (void)caching_.release();
    (void)ordered_.release();
    pinned_.abandon();
    host_.abandon();
    // Leaks a reference to the backend, so that it is never destroyed in this process.
    new (std::nothrow) std::shared_ptr<Backend>(std::move(backend_));
}

bool RuntimeCore::is_ours() const noexcept {
    return device::is_ours(forks_);
}

DeviceAllocator& RuntimeCore::allocator(MemoryKind kind) {
    if (kind == MemoryKind::device && caching_ != nullptr) return *caching_;
    if (kind == MemoryKind::device && ordered_ != nullptr) return *ordered_;
    if (kind != MemoryKind::pinned) return host();
    return pinned_.get(
        [&] { return std::make_unique<PinnedAllocator>(*backend_, index(), options_.pinned); });
}

HostAllocator& RuntimeCore::host() {
    return host_.get(
        [&] { return std::make_unique<HostAllocator>(*backend_, device_, source_of(options_)); });
}

std::size_t RuntimeCore::trim() noexcept {
    std::size_t bytes = caching_ != nullptr ? caching_->trim() : 0;
    if (ordered_ != nullptr) bytes += ordered_->trim();
    if (PinnedAllocator* const pinned = pinned_.get_if_made()) bytes += pinned->trim();
    if (HostAllocator* const host = host_.get_if_made()) bytes += host->trim();
    return bytes;
}

StreamHandle RuntimeCore::create_stream(int priority) {
    StreamHandle stream = nullptr;
    check(backend_->create_stream(index(), &stream, priority), "create_stream");
    return stream;
}

void RuntimeCore::destroy_stream(StreamHandle stream) noexcept {
    try {
        if (caching_ != nullptr) caching_->end_stream(stream);
        if (ordered_ != nullptr) ordered_->end_stream(stream);
        if (PinnedAllocator* const pinned = pinned_.get_if_made()) pinned->end_stream(stream);
        if (HostAllocator* const host = host_.get_if_made()) host->end_stream(stream);
    } catch (...) {
        // The device is lost, or a capture was never ended. The handle is leaked, so that no other
        // stream can be mistaken for this one.
        return;
    }
    backend_->synchronize_stream(index(), stream);
    backend_->destroy_stream(index(), stream);
}

void RuntimeCore::copy(CopyKind kind, void* to, const void* from, std::size_t bytes,
                       StreamHandle stream) {
    const DeviceStatus status = backend_->copy_async(index(), kind, to, from, bytes, stream);
    if (status != DeviceStatus::ok) [[unlikely]]
        check(status, (std::string("copy ") + to_string(kind) + " in a stream").c_str(), bytes);
}

void RuntimeCore::wait_and_copy(CopyKind kind, void* to, const void* from, std::size_t bytes,
                                StreamHandle stream) {
    // A copy without a stream waits for the default stream itself.
    DeviceStatus status =
        stream != nullptr ? backend_->synchronize_stream(index(), stream) : DeviceStatus::ok;
    if (status == DeviceStatus::ok) status = backend_->copy(index(), kind, to, from, bytes);
    if (status != DeviceStatus::ok) [[unlikely]]
        check(status, (std::string("copy ") + to_string(kind)).c_str(), bytes);
}

void RuntimeCore::call_once(StreamHandle stream, std::function<void()> function, const char* call) {
    using Function = std::function<void()>;
    auto stored = std::make_unique<Function>(std::move(function));
    if (is_captured(stream, call)) {
        throw DeviceError(DeviceStatus::in_capture,
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

void RuntimeCore::synchronize_stream(StreamHandle stream) {
    check(backend_->synchronize_stream(index(), stream), "synchronize_stream");
}

bool RuntimeCore::is_captured(StreamHandle stream, const char* call) const {
    CaptureState state;
    check(backend_->capture_state(index(), stream, state), call);
    return state.capturing;
}

void RuntimeCore::check(DeviceStatus status, const char* call) const {
    check_status(status, call, device_, *backend_);
}

void RuntimeCore::check(DeviceStatus status, const char* call, std::size_t bytes) const {
    if (status != DeviceStatus::ok) [[unlikely]]
        throw_status(status, std::string(call) + " of " + std::to_string(bytes) + " bytes", device_,
                     *backend_);
}

bool RuntimeCore::is_done(DeviceStatus status, const char* call) const {
    if (status == DeviceStatus::not_ready) return false;
    check(status, call);
    return true;
}

void watch_forks() noexcept {
    // This fails only for lack of memory. A child must then not use devices; nothing else is lost.
    (void)platform::set_fork_handlers(
        platform::ForkStage::devices, [] {}, [] {},
        [] {
            forks_seen.fetch_add(1, std::memory_order_relaxed);
            note_device_change();
        });
}

}  // namespace tensorpool::device
