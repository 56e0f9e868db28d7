#pragma once

#include <cstddef>
#include <memory>

#include <tensorpool/device/runtimes.hpp>
#include <tensorpool/device/simulated_backend.hpp>

namespace tensorpool {

/// Sets simulated devices as the backend of a type during its lifetime. The destructor restores the
/// default and resets the runtimes.
class PutInBackend {
public:
    explicit PutInBackend(const SimulationOptions& options = {},
                          DeviceType type = DeviceType::simulated)
        : type_(type), backend_(std::make_shared<SimulatedBackend>(options)) {
        set_backend(type, backend_);
    }
    ~PutInBackend() {
        set_backend(type_, nullptr);
        reset_runtimes();
    }
    PutInBackend(const PutInBackend&) = delete;
    PutInBackend& operator=(const PutInBackend&) = delete;

    SimulatedBackend* operator->() const noexcept { return backend_.get(); }
    const std::shared_ptr<SimulatedBackend>& get() const noexcept { return backend_; }

private:
    DeviceType type_;
    std::shared_ptr<SimulatedBackend> backend_;
};

/// Memory of each device of a test. Kept small, because even untouched bytes have a cost.
inline constexpr std::size_t device_bytes = std::size_t{1} << 30;

/// Options for `devices` devices whose work runs only when a caller waits.
inline SimulationOptions lazy_devices(int devices = 1) {
    SimulationOptions options;
    options.memory_bytes = device_bytes;
    options.devices = devices;
    options.schedule = Schedule::lazy;
    return options;
}

/// Returns one device whose captures a test breaks on purpose.
inline std::shared_ptr<SimulatedBackend> device_to_capture() {
    SimulationOptions options;
    options.memory_bytes = device_bytes;
    options.finds_hazards = false;
    return std::make_shared<SimulatedBackend>(options);
}

inline SimulationOptions eager_devices(int devices) {
    SimulationOptions options;
    options.memory_bytes = device_bytes;
    options.devices = devices;
    return options;
}

}  // namespace tensorpool
