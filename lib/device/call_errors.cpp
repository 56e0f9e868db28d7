#include "device/call_errors.hpp"

#include <exception>
#include <new>
#include <unordered_map>

namespace tensorpool::device {
namespace {

/// Error texts by the backend's id. Texts of destroyed backends remain until the thread ends; that
/// is at most one text for each of a program's few backends.
std::unordered_map<std::uint64_t, std::string>& texts_of_thread() {
    thread_local std::unordered_map<std::uint64_t, std::string> texts;
    return texts;
}

std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: only has to be unique
}

}  // namespace

int existing_device(Backend& backend, int device, const std::string& who) {
    const int count = backend.device_count();
    if (device >= 0 && device < count) return device;
    throw std::invalid_argument(who + "device is " + std::to_string(device) + "; there are " +
                                std::to_string(count) + " of type " + to_string(backend.type()));
}

void refuse(const std::string& text) {
    throw DeviceError(DeviceStatus::invalid_argument, text);
}

void check_priority(int priority, const StreamPriorities& range) {
    if (range.highest <= priority && priority <= range.lowest) return;
    refuse("priority " + std::to_string(priority) + ", expected " + std::to_string(range.highest) +
           " (the highest) to " + std::to_string(range.lowest) + " (the lowest)");
}

void check_event_flags(EventFlags flags) {
    if (!contains(flags, EventFlags::interprocess) || !contains(flags, EventFlags::timing)) return;
    refuse("an interprocess event with timing, expected one of both");
}

void check_flags_of_one_process(EventFlags flags) {
    check_event_flags(flags);
    if (!contains(flags, EventFlags::interprocess)) return;
    throw DeviceError(DeviceStatus::not_supported, "no event of this device is interprocess");
}

CallErrors::CallErrors() noexcept : id_(next_id()) {}

DeviceStatus CallErrors::keep_current(const char* call) noexcept {
    DeviceStatus status = DeviceStatus::failed;
    const auto keep = [&](DeviceStatus found, const char* text) noexcept {
        status = found;
        try {
            texts_of_thread()[id_] = std::string(call) + ": " + text;
        } catch (...) {
            // No memory for the text: only the status is reported.
        }
    };
    try {
        throw;
    } catch (const DeviceError& error) {
        keep(error.status(), error.what());
    } catch (const std::bad_alloc&) {
        keep(DeviceStatus::out_of_memory, "the system has no memory for the backend's records");
    } catch (const std::exception& error) {
        keep(DeviceStatus::failed, error.what());
    } catch (...) {
        keep(DeviceStatus::failed, "an exception of unknown type");
    }
    return status;
}

std::string CallErrors::last() const {
    const auto& texts = texts_of_thread();
    const auto found = texts.find(id_);
    return found == texts.end() ? std::string() : found->second;
}

std::string to_text(const void* address) {
    if (address == nullptr) return "nullptr";
    char text[2 + 2 * sizeof address + 1];
    std::snprintf(text, sizeof text, "0x%llx",
                  static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
    return text;
}

void throw_status(DeviceStatus status, const std::string& call, Device device, Backend& backend) {
    std::string text =
        "tensorpool: " + call + " on " + to_string(device) + ": " + to_string(status);
    const std::string reason = backend.last_error();
    if (!reason.empty()) text += ": " + reason;
    throw DeviceError(status, text);
}

void throw_error(DeviceStatus status, const std::string& name, Device device, const char* call,
                 const std::string& what, Backend& backend) {
    throw DeviceError(status, "tensorpool: " + name + " on " + to_string(device) + ": " + call +
                                  ": " + what + ": " + to_string(status) + ": " +
                                  backend.last_error());
}

}  // namespace tensorpool::device

namespace tensorpool {

DeviceError::~DeviceError() = default;

const char* to_string(DeviceStatus status) noexcept {
    return device::text_of({"ok", "not ready", "out of memory", "not supported", "invalid argument",
                            "not allowed during capture", "device lost", "failed"},
                           status);
}

}  // namespace tensorpool
