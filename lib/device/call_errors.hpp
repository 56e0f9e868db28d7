#pragma once

#include <type_traits>

#include <tensorpool/device/backend.hpp>

#include "base/text.hpp"

namespace tensorpool::device {

/// Throws DeviceError with the call, the device, the status, and the backend's text, such as
/// "tensorpool: fill of 64 bytes on cuda:1: device lost: ...".
[[noreturn]] void throw_status(DeviceStatus status, const std::string& call, Device device,
                               Backend& backend);

/// Throws DeviceError unless `status` is ok.
inline void check_status(DeviceStatus status, const char* call, Device device, Backend& backend) {
    if (status != DeviceStatus::ok) [[unlikely]]
        throw_status(status, call, device, backend);
}

/// Throws DeviceError with "tensorpool: NAME on DEVICE: CALL: WHAT: STATUS: the backend's text".
[[noreturn]] void throw_error(DeviceStatus status, const std::string& name, Device device,
                              const char* call, const std::string& what, Backend& backend);

using base::text_of;

/// Returns what `body` returns, or ok if it returns nothing.
template <class Body>
DeviceStatus status_after(Body&& body) {
    if constexpr (std::is_void_v<decltype(body())>) {
        body();
        return DeviceStatus::ok;
    } else {
        return body();
    }
}

/// Returns the index of a device that exists. Throws std::invalid_argument for any other; `who`
/// names the caller.
int existing_device(Backend& backend, int device, const std::string& who);

/// Throws DeviceError with invalid_argument.
[[noreturn]] void refuse(const std::string& text);
/// Throws DeviceError with invalid_argument for a priority outside the range.
void check_priority(int priority, const StreamPriorities& range);
/// Throws DeviceError with invalid_argument for flags that exclude each other.
void check_event_flags(EventFlags flags);
/// Throws DeviceError like `check_event_flags`, and with not_supported for an interprocess event.
void check_flags_of_one_process(EventFlags flags);

/// Stores the text of each thread's last failed call to one backend. Any thread.
class CallErrors {
public:
    CallErrors() noexcept;
    CallErrors(const CallErrors&) = delete;
    CallErrors& operator=(const CallErrors&) = delete;

    /// Returns what `body` returns, or ok if it returns nothing. If it throws, returns the status
    /// of the exception: that of a DeviceError, out_of_memory for std::bad_alloc, otherwise failed.
    /// The text of the exception becomes the thread's last error.
    template <class Body>
    DeviceStatus guard(const char* call, Body body) noexcept {
        try {
            return status_after(body);
        } catch (...) {
            return keep_current(call);
        }
    }

    /// Returns "" if no call of this thread failed.
    std::string last() const;

private:
    DeviceStatus keep_current(const char* call) noexcept;

    std::uint64_t id_;  // unique, because a thread may outlive the backend
};

/// Formats an address as "0x7f…", or "nullptr".
std::string to_text(const void* address);

}  // namespace tensorpool::device
