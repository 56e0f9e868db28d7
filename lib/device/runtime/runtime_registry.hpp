#pragma once

#include <algorithm>
#include <map>

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/runtimes.hpp>

#include "device/device_types.hpp"
#include "device/runtime/runtime_core.hpp"

namespace tensorpool::device {

inline std::shared_ptr<Backend> make_backend(DeviceType type) {
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

[[noreturn]] inline void refuse_options(Device there) {
    throw std::logic_error("tensorpool: set_runtime_options: a runtime of " + to_string(there) +
                           " exists already; expected the call before its first use, or after "
                           "reset_runtimes");
}

inline void destroy_last_first(std::vector<std::unique_ptr<Runtime>>& runtimes) {
    while (!runtimes.empty()) runtimes.pop_back();
}

/// The backend of each device type, and the runtimes made so far. The functions of runtimes.hpp
/// forward to it. A backend or runtime is made under the lock of its type; only the backend's code
/// runs under that lock. Order of locks: the lock of another type, then the CPU's.
class RuntimeRegistry {
public:
    RuntimeRegistry() : forks_(forks_seen.load(std::memory_order_relaxed)) {}
    RuntimeRegistry(const RuntimeRegistry&) = delete;
    RuntimeRegistry& operator=(const RuntimeRegistry&) = delete;

    int device_count(DeviceType name) {
        Type& type = of(name);
        const std::lock_guard guard(type.mutex);
        Backend* const backend = backend_of(name, type);
        return backend != nullptr ? backend->device_count() : 0;
    }
    Runtime& get(Device device) {
        if (Runtime* const made = get_if_made(device)) [[likely]]
            return *made;
        return make(device);
    }
    /// Returns nullptr if the runtime was not made yet, or for devices beyond `quick_devices`.
    Runtime* get_if_made(Device device) const noexcept {
        const auto type = static_cast<std::size_t>(device.type);
        if (type >= max_device_types || device.index < 0 || device.index >= quick_devices) {
            return nullptr;
        }
        return types_[type].quick[device.index].load(std::memory_order_acquire);
    }
    /// Whether a runtime of this type was made. Makes no call to a backend.
    bool has_runtime(DeviceType name) {
        Type& type = of(name);
        const std::lock_guard guard(type.mutex);
        return std::any_of(type.runtimes.begin(), type.runtimes.end(),
                           [](const auto& runtime) { return runtime != nullptr; });
    }
    /// Throws std::invalid_argument if the runtime is not in this registry.
    void check_known(const Runtime& runtime) {
        const Device device = runtime.device();
        if (get_if_made(device) == &runtime) return;
        Type& type = of(device.type);
        const std::lock_guard guard(type.mutex);
        const auto index = static_cast<std::size_t>(device.index);
        if (index < type.runtimes.size() && type.runtimes[index].get() == &runtime) return;
        throw std::invalid_argument(
            "tensorpool: this runtime of " + to_string(device) +
            " is not the one that get_runtime returns; expected that one to "
            "make its device current");
    }
    void check_device(Device device) {
        if (get_if_made(device) != nullptr) return;
        const int count = device_count(device.type);
        if (device.index >= 0 && device.index < count) return;
        throw std::invalid_argument("tensorpool: there is no device " + to_string(device) +
                                    ": devices of type " + to_string(device.type) + ": " +
                                    std::to_string(count) +
                                    (count == 0 ? why_none(device.type) : ""));
    }

    void set_backend(DeviceType name, std::shared_ptr<Backend> backend) {
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
    void set_options(DeviceType name, const RuntimeOptions& options) {
        Type& type = of(name);
        const std::lock_guard guard(type.mutex);
        for (const std::unique_ptr<Runtime>& runtime : type.runtimes) {
            if (runtime != nullptr) refuse_options(runtime->device());
        }
        type.options = options;
    }
    void set_options(Device device, const RuntimeOptions& options) {
        check_device(device);
        Type& type = of(device.type);
        const std::lock_guard guard(type.mutex);
        const auto index = static_cast<std::size_t>(device.index);
        if (index < type.runtimes.size() && type.runtimes[index] != nullptr) refuse_options(device);
        type.options_of_one[device.index] = options;
    }
    RuntimeOptions options(DeviceType name) {
        Type& type = of(name);
        const std::lock_guard guard(type.mutex);
        return type.options;
    }
    std::size_t trim() noexcept {
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
    void reset() {
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

    std::uint64_t forks() const noexcept { return forks_; }

private:
    /// The number of devices of a type whose runtimes are found without a lock.
    static constexpr int quick_devices = 16;
    using Runtimes = std::vector<std::unique_ptr<Runtime>>;

    struct Type {
        std::mutex mutex;  // guards what follows, except `quick`
        std::shared_ptr<Backend> backend;
        bool was_set = false;  // by set_backend
        RuntimeOptions options;
        std::map<int, RuntimeOptions> options_of_one;  // by index; other devices use `options`
        Runtimes runtimes;                             // by index; nullptr if not made yet
        // Release: pairs with the acquire in `get_if_made`, so that the whole runtime is visible.
        std::atomic<Runtime*> quick[quick_devices] = {};
    };

    Type& of(DeviceType type) {
        const auto number = static_cast<std::size_t>(type);
        if (number < max_device_types) return types_[number];
        throw std::invalid_argument("tensorpool: there is no device type with number " +
                                    std::to_string(number) + ": expected less than " +
                                    std::to_string(max_device_types));
    }
    // Returns nullptr if the type has no backend. REQUIRES: the type's lock.
    Backend* backend_of(DeviceType name, Type& type) {
        if (type.backend == nullptr) type.backend = make_backend(name);
        return type.backend.get();
    }
    // Returns the backend's reason, such as a missing driver, or "".
    std::string why_none(DeviceType name) {
        Type& type = of(name);
        const std::lock_guard guard(type.mutex);
        Backend* const backend = backend_of(name, type);
        const std::string reason = backend != nullptr ? backend->last_error() : std::string();
        return reason.empty() ? reason : "; " + reason;
    }
    Runtime& make(Device device) {
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
    // REQUIRES: the type's lock.
    RuntimeOptions options_for(Device device, Type& type) {
        const auto own = type.options_of_one.find(device.index);
        RuntimeOptions options = own != type.options_of_one.end() ? own->second : type.options;
        if (options.host_source == nullptr && device.type != DeviceType::cpu) {
            options.host_source = this->options(DeviceType::cpu).host_source;
        }
        return options;
    }
    static Runtimes take_runtimes(Type& type) {
        for (std::atomic<Runtime*>& quick : type.quick)
            quick.store(nullptr, std::memory_order_release);
        return std::exchange(type.runtimes, {});
    }

    Type types_[max_device_types];
    const std::uint64_t forks_;
};

/// Returns the registry of this process. It is made at its first use, and again in the child of a
/// fork, and never destroyed. Throws std::bad_alloc.
RuntimeRegistry& runtime_registry();

}  // namespace tensorpool::device
