#include <tensorpool/device/current_device.hpp>

#include <tensorpool/device/current_stream.hpp>

#include "device/runtime/runtime_registry.hpp"

namespace tensorpool {
namespace {

using device::device_changes;

struct Current {
    Device device;
    bool was_set;           // by set_current_device
    std::uint32_t changes;  // value of device_changes when it was last checked; 0: never
};
constinit thread_local Current current = {};

/// Makes no call to CUDA's driver.
Device first_device() {
    if (device::has_runtime(DeviceType::cuda)) return {DeviceType::cuda, 0};
    if (device_count(DeviceType::simulated) > 0) return {DeviceType::simulated, 0};
    return {DeviceType::cpu, 0};
}

Device look_again(std::uint32_t changes) {
    const bool stays = current.was_set && current.device.index < device_count(current.device.type);
    if (!stays) {
        current.device = first_device();
        current.was_set = false;
    }
    current.changes = changes;
    return current.device;
}

}  // namespace

Device current_device() {
    // Acquire: pairs with the release in note_device_change.
    const std::uint32_t changes = device_changes.load(std::memory_order_acquire);
    if (current.changes == changes) [[likely]]
        return current.device;
    return look_again(changes);
}

void set_current_device(Device device) {
    const std::uint32_t changes = device_changes.load(std::memory_order_acquire);
    device::check_device(device);
    current = {device, true, changes};
}

CurrentDeviceScope::CurrentDeviceScope(Device device)
    : before_(current_device()), was_set_(current.was_set) {
    set_current_device(device);
}

CurrentDeviceScope::~CurrentDeviceScope() {
    current.device = before_;
    current.was_set = was_set_;
    // The next call of current_device checks whether this device still exists.
    current.changes = 0;
}

namespace {

constinit thread_local const CurrentStreamScope* innermost = nullptr;

}  // namespace

CurrentStreamScope::CurrentStreamScope(const DeviceStream& stream) noexcept
    : CurrentStreamScope(*stream.core_, stream.handle()) {}

CurrentStreamScope::CurrentStreamScope(const Runtime& runtime, StreamHandle stream) noexcept
    : CurrentStreamScope(*runtime.core_, stream) {}

CurrentStreamScope::CurrentStreamScope(const device::RuntimeCore& core,
                                       StreamHandle stream) noexcept
    : core_(core), stream_(stream), outer_(innermost) {
    innermost = this;
}

CurrentStreamScope::~CurrentStreamScope() {
    innermost = outer_;
}

StreamHandle device::RuntimeCore::current_stream() const noexcept {
    for (const CurrentStreamScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
        if (&scope->core_ == this) return scope->stream_;
    }
    return nullptr;
}

}  // namespace tensorpool
