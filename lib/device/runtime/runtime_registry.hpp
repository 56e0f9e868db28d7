#pragma once

#include <map>
#include <mutex>

#include <tensorpool/device/runtime.hpp>

namespace tensorpool::device {

/// The backend of each device type, and the runtimes made so far. The functions of runtimes.hpp
/// forward to it. A backend or runtime is made under the lock of its type; only the backend's code
/// runs under that lock. Order of locks: the lock of another type, then the CPU's.
class RuntimeRegistry {
public:
    RuntimeRegistry();
    RuntimeRegistry(const RuntimeRegistry&) = delete;
    RuntimeRegistry& operator=(const RuntimeRegistry&) = delete;

    int device_count(DeviceType type);
    Runtime& get(Device device) {
        if (Runtime* const made = get_if_made(device)) [[likely]]
            return *made;
        return make(device);
    }
    /// Returns nullptr if the runtime was not made yet, or for devices beyond `quick_devices`.
    Runtime* get_if_made(Device device) const noexcept;
    /// Whether a runtime of this type was made. Makes no call to a backend.
    bool has_runtime(DeviceType type);
    /// Throws std::invalid_argument if the runtime is not in this registry.
    void check_known(const Runtime& runtime);
    void check_device(Device device);

    void set_backend(DeviceType type, std::shared_ptr<Backend> backend);
    void set_options(DeviceType type, const RuntimeOptions& options);
    void set_options(Device device, const RuntimeOptions& options);
    RuntimeOptions options(DeviceType type);
    std::size_t trim() noexcept;
    void reset();

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

    Type& of(DeviceType type);
    Backend* backend_of(DeviceType name, Type& type);
    std::string why_none(DeviceType name);
    Runtime& make(Device device);
    RuntimeOptions options_for(Device device, Type& type);
    static Runtimes take_runtimes(Type& type);

    Type types_[max_device_types];
    const std::uint64_t forks_;
};

/// Returns the registry of this process. It is made at its first use, and again in the child of a
/// fork, and never destroyed. Throws std::bad_alloc.
RuntimeRegistry& runtime_registry();

}  // namespace tensorpool::device
