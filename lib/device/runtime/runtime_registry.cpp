#include "device/runtime/runtime_registry.hpp"

namespace tensorpool::device {
namespace {

constinit std::atomic<RuntimeRegistry*> the_registry{nullptr};

RuntimeRegistry& make_registry(RuntimeRegistry* before) {
    watch_forks();
    auto made = std::make_unique<RuntimeRegistry>();
    // Release: pairs with the acquire in `runtime_registry`. The registry of the parent process is
    // left untouched.
    if (the_registry.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel)) {
        return *made.release();
    }
    return *before;
}

}  // namespace

RuntimeRegistry& runtime_registry() {
    RuntimeRegistry* const made = the_registry.load(std::memory_order_acquire);
    if (made != nullptr && is_ours(made->forks())) [[likely]]
        return *made;
    return make_registry(made);
}

}  // namespace tensorpool::device

namespace tensorpool {

using device::runtime_registry;

int device_count(DeviceType type) {
    return runtime_registry().device_count(type);
}

Runtime& get_runtime(Device device) {
    return runtime_registry().get(device);
}

Runtime& runtime() {
    return get_runtime(current_device());
}

DeviceType register_device_type(std::string_view name, std::shared_ptr<Backend> backend) {
    if (backend == nullptr) {
        throw std::invalid_argument("tensorpool: register_device_type: found no backend for \"" +
                                    std::string(name) + "\", expected one");
    }
    const DeviceType type = device::device_types().add(name);
    set_backend(type, std::move(backend));
    return type;
}

void set_backend(DeviceType type, std::shared_ptr<Backend> backend) {
    runtime_registry().set_backend(type, std::move(backend));
}

void set_runtime_options(DeviceType type, const RuntimeOptions& options) {
    runtime_registry().set_options(type, options);
}

void set_runtime_options(Device device, const RuntimeOptions& options) {
    runtime_registry().set_options(device, options);
}

RuntimeOptions get_runtime_options(DeviceType type) {
    return runtime_registry().options(type);
}

std::size_t trim_runtimes() noexcept {
    try {
        return runtime_registry().trim();
    } catch (...) {
        return 0;
    }
}

void reset_runtimes() {
    runtime_registry().reset();
}

}  // namespace tensorpool
