#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtime_options.hpp>

namespace tensorpool::device {

/// The backend of each device type, and the runtimes made so far; runtimes.hpp forwards to it. A
/// backend and a runtime are made under the lock of their type, and no other code than the
/// backend's runs there. The CPU's lock may be taken under another's, and no other.
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
    /// Also nullptr for devices beyond `quick_devices`.
    Runtime* get_if_made(Device device) const noexcept;
    /// Throws std::invalid_argument unless it is one of ours.
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
    /// Devices of a type whose runtimes are found without a lock.
    static constexpr int quick_devices = 16;
    using Runtimes = std::vector<std::unique_ptr<Runtime>>;

    struct Type {
        std::mutex mutex;  // of what follows but `quick`
        std::shared_ptr<Backend> backend;
        bool was_set = false;  // by the program
        RuntimeOptions options;
        std::map<int, RuntimeOptions> options_of_one;  // by index; others have `options`
        Runtimes runtimes;                             // by index; nullptr where none was made yet
        // Release: pairs with the acquire of `get_if_made`, so that a runtime is seen whole.
        std::atomic<Runtime*> quick[quick_devices] = {};
    };

    Type& of(DeviceType type);
    Backend* backend_of(DeviceType name, Type& type);
    std::string why_none(DeviceType name);
    Runtime& make(Device device);
    RuntimeOptions options_for(Device device, Type& type);
    static Runtimes take_runtimes(Type& type);

    Type types_[device_type_count];
    const std::uint64_t forks_;
};

/// The one of this process. Made at its first use, and anew in the child of a fork; never
/// destroyed. Throws std::bad_alloc.
RuntimeRegistry& runtime_registry();

}  // namespace tensorpool::device
