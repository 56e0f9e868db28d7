#include "device/runtime/runtime_registry.hpp"

#include <algorithm>

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/runtimes.hpp>

#include "device/device_types.hpp"
#include "device/runtime/runtime_core.hpp"

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

std::shared_ptr<Backend> make_backend(DeviceType type) {
    switch (type) {
        case DeviceType::cpu:
            return std::make_shared<HostBackend>();
        case DeviceType::cuda:
            return std::make_shared<CudaBackend>();
        case DeviceType::simulated:
            break;
    }
    return nullptr;
}

[[noreturn]] void refuse_options(Device there) {
    throw std::logic_error("tensorpool: set_runtime_options: a runtime of " + to_string(there) +
                           " exists already; expected the call before its first use, or after "
                           "reset_runtimes");
}

void destroy_last_first(std::vector<std::unique_ptr<Runtime>>& runtimes) {
    while (!runtimes.empty()) runtimes.pop_back();
}

}  // namespace

RuntimeRegistry& runtime_registry() {
    RuntimeRegistry* const made = the_registry.load(std::memory_order_acquire);
    if (made != nullptr && is_ours(made->forks())) [[likely]]
        return *made;
    return make_registry(made);
}

RuntimeRegistry::RuntimeRegistry() : forks_(forks_seen.load(std::memory_order_relaxed)) {}

RuntimeRegistry::Type& RuntimeRegistry::of(DeviceType type) {
    const auto number = static_cast<std::size_t>(type);
    if (number < max_device_types) return types_[number];
    throw std::invalid_argument("tensorpool: there is no device type with number " +
                                std::to_string(number) + ": expected less than " +
                                std::to_string(max_device_types));
}

// Returns nullptr if the type has no backend. REQUIRES: the type's lock.
Backend* RuntimeRegistry::backend_of(DeviceType name, Type& type) {
    if (type.backend == nullptr) type.backend = make_backend(name);
    return type.backend.get();
}

int RuntimeRegistry::device_count(DeviceType name) {
    Type& type = of(name);
    const std::lock_guard guard(type.mutex);
    Backend* const backend = backend_of(name, type);
    return backend != nullptr ? backend->device_count() : 0;
}

void RuntimeRegistry::check_device(Device device) {
    if (get_if_made(device) != nullptr) return;
    const int count = device_count(device.type);
    if (device.index >= 0 && device.index < count) return;
    throw std::invalid_argument("tensorpool: there is no device " + to_string(device) +
                                ": devices of type " + to_string(device.type) + ": " +
                                std::to_string(count) + (count == 0 ? why_none(device.type) : ""));
}

// Returns the backend's reason, such as a missing driver, or "".
std::string RuntimeRegistry::why_none(DeviceType name) {
    Type& type = of(name);
    const std::lock_guard guard(type.mutex);
    Backend* const backend = backend_of(name, type);
    const std::string reason = backend != nullptr ? backend->last_error() : std::string();
    return reason.empty() ? reason : "; " + reason;
}

Runtime* RuntimeRegistry::get_if_made(Device device) const noexcept {
    const auto type = static_cast<std::size_t>(device.type);
    if (type >= max_device_types || device.index < 0 || device.index >= quick_devices) {
        return nullptr;
    }
    return types_[type].quick[device.index].load(std::memory_order_acquire);
}

Runtime& RuntimeRegistry::make(Device device) {
    check_device(device);
    Type& type = of(device.type);
    const std::lock_guard guard(type.mutex);
    backend_of(device.type, type);
    const auto index = static_cast<std::size_t>(device.index);
    if (type.runtimes.size() <= index) type.runtimes.resize(index + 1);
    std::unique_ptr<Runtime>& runtime = type.runtimes[index];
    if (runtime == nullptr) {
        runtime = std::make_unique<Runtime>(type.backend, device, options_for(device, type));
        if (device.index < quick_devices) {
            type.quick[index].store(runtime.get(), std::memory_order_release);
        }
        note_device_change();  // threads may have another current device from now on
    }
    return *runtime;
}

bool RuntimeRegistry::has_runtime(DeviceType name) {
    Type& type = of(name);
    const std::lock_guard guard(type.mutex);
    return std::any_of(type.runtimes.begin(), type.runtimes.end(),
                       [](const auto& runtime) { return runtime != nullptr; });
}

// REQUIRES: the type's lock.
RuntimeOptions RuntimeRegistry::options_for(Device device, Type& type) {
    const auto own = type.options_of_one.find(device.index);
    RuntimeOptions options = own != type.options_of_one.end() ? own->second : type.options;
    if (options.host_source == nullptr && device.type != DeviceType::cpu) {
        options.host_source = this->options(DeviceType::cpu).host_source;
    }
    return options;
}

void RuntimeRegistry::check_known(const Runtime& runtime) {
    const Device device = runtime.device();
    if (get_if_made(device) == &runtime) return;
    Type& type = of(device.type);
    const std::lock_guard guard(type.mutex);
    const auto index = static_cast<std::size_t>(device.index);
    if (index < type.runtimes.size() && type.runtimes[index].get() == &runtime) return;
    throw std::invalid_argument("tensorpool: this runtime of " + to_string(device) +
                                " is not the one that get_runtime returns; expected that one to "
                                "make its device current");
}

RuntimeRegistry::Runtimes RuntimeRegistry::take_runtimes(Type& type) {
    for (std::atomic<Runtime*>& quick : type.quick) quick.store(nullptr, std::memory_order_release);
    return std::exchange(type.runtimes, {});
}

void RuntimeRegistry::set_backend(DeviceType name, std::shared_ptr<Backend> backend) {
    Type& type = of(name);
    Runtimes old;
    {
        const std::lock_guard guard(type.mutex);
        old = take_runtimes(type);
        type.was_set = backend != nullptr;
        type.options_of_one.clear();  // they were for devices of the former backend
        type.backend.swap(backend);
    }
    note_device_change();
    destroy_last_first(old);
}

void RuntimeRegistry::set_options(DeviceType name, const RuntimeOptions& options) {
    Type& type = of(name);
    const std::lock_guard guard(type.mutex);
    for (const std::unique_ptr<Runtime>& runtime : type.runtimes) {
        if (runtime != nullptr) refuse_options(runtime->device());
    }
    type.options = options;
}

void RuntimeRegistry::set_options(Device device, const RuntimeOptions& options) {
    check_device(device);
    Type& type = of(device.type);
    const std::lock_guard guard(type.mutex);
    const auto index = static_cast<std::size_t>(device.index);
    if (index < type.runtimes.size() && type.runtimes[index] != nullptr) refuse_options(device);
    type.options_of_one[device.index] = options;
}

RuntimeOptions RuntimeRegistry::options(DeviceType name) {
    Type& type = of(name);
    const std::lock_guard guard(type.mutex);
    return type.options;
}

std::size_t RuntimeRegistry::trim() noexcept {
    std::size_t bytes = 0;
    for (Type& type : types_) {
        for (std::size_t index = 0;; ++index) {
            Runtime* runtime = nullptr;
            {
                const std::lock_guard guard(type.mutex);
                if (index >= type.runtimes.size()) break;
                runtime = type.runtimes[index].get();
            }
            if (runtime != nullptr) bytes += runtime->trim();
        }
    }
    return bytes;
}

void RuntimeRegistry::reset() {
    // Accelerators first: objects of their runtimes may have memory of the CPU's runtime.
    static_assert(DeviceType::cpu == DeviceType{});
    for (std::size_t number = max_device_types; number-- > 0;) {
        Type& type = types_[number];
        Runtimes old;
        std::shared_ptr<Backend> backend;
        {
            const std::lock_guard guard(type.mutex);
            old = take_runtimes(type);
            if (!type.was_set) backend.swap(type.backend);
        }
        destroy_last_first(old);
    }
    note_device_change();
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
