#include "device/call_errors.hpp"

#include <exception>
#include <unordered_map>

#include <tensorpool/device/device_allocation_error.hpp>

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
namespace {

using base::BytesText;
using Cause = DeviceAllocationFailure::Cause;

struct CauseText {
    const char* name;
    const char* explanation;
    const char* remedy;
};

// In the order of Cause.
constexpr CauseText cause_texts[] = {
    {"request", "the request exceeds the largest size of a block",
     "use smaller blocks; max_allocation and the size of the device limit them"},
    {"limit", "the limit of the allocator", "raise hard_limit, or keep fewer blocks in use"},
    {"budget", "the hard limit of a budget",
     "raise the limit of the budget that refused, or free what is charged to it"},
    {"fragmentation", "fragmentation: enough memory is free, but not in one piece",
     "use expandable slabs, or allocate large blocks before small ones"},
    {"own use", "memory in use by this allocator", "keep fewer blocks in use"},
    {"held back", "freed blocks that wait for other streams", "wait for those streams"},
    {"other processes", "other processes, which use the rest of the device",
     "end other processes on the device"},
    {"capture", "a capture in progress, during which no memory is given back",
     "call reserve_for_capture before the capture begins"},
    {"asleep", "the allocator sleeps", "call wake first"},
    {"device", "the device", "see the status"},
};
static_assert(std::size(cause_texts) == static_cast<std::size_t>(Cause::device) + 1);

const CauseText& text_of(Cause cause) noexcept {
    static constexpr CauseText unknown = {"?", "?", "?"};
    const auto index = static_cast<std::size_t>(cause);
    return index < std::size(cause_texts) ? cause_texts[index] : unknown;
}

}  // namespace

DeviceError::~DeviceError() = default;

const char* to_string(DeviceStatus status) noexcept {
    return device::text_of({"ok", "not ready", "out of memory", "not supported", "invalid argument",
                            "not allowed during capture", "device lost", "failed"},
                           status);
}

const char* to_string(Cause cause) noexcept {
    return text_of(cause).name;
}

DeviceAllocationError::DeviceAllocationError(const DeviceAllocationFailure& failure) noexcept
    : failure_(failure) {
    base::FixedText text(text_, sizeof text_);
    text.add("tensorpool: %.47s on %s:%d: allocate: %zu B (%s) requested: %s\n", failure.allocator,
             to_string(failure.device.type), failure.device.index, failure.asked,
             BytesText(failure.asked).c_str(), to_string(failure.status));
    text.add("  in use %s, held in slabs %s", BytesText(failure.in_use).c_str(),
             BytesText(failure.capacity).c_str());
    if (failure.captured != 0) {
        text.add(", %s of it by graphs", BytesText(failure.captured).c_str());
    }
    text.add("\n  free in slabs %s in %zu blocks, the largest %s\n",
             BytesText(failure.free).c_str(), failure.free_blocks,
             BytesText(failure.largest_free).c_str());
    if (failure.held_back != 0) {
        text.add("  freed but held back %s", BytesText(failure.held_back).c_str());
        for (std::size_t i = 0; i < failure.holder_count; ++i) {
            text.add("%s stream %p (%s)", i == 0 ? " by" : ",",
                     static_cast<const void*>(failure.holders[i].stream),
                     BytesText(failure.holders[i].bytes).c_str());
        }
        text.add("\n");
    }
    if (failure.waited_ns != 0) {
        text.add("  waited %.3f ms for copies that hold freed blocks back\n",
                 static_cast<double>(failure.waited_ns) / 1e6);
    }
    if (failure.device_total != 0) {
        text.add("  the device has %s, free %s, used by other processes %s\n",
                 BytesText(failure.device_total).c_str(), BytesText(failure.device_free).c_str(),
                 BytesText(failure.other_processes).c_str());
    }
    if (failure.limit != 0) text.add("  hard limit %s\n", BytesText(failure.limit).c_str());
    if (failure.callbacks[0] != '\0') text.add("  callbacks: %s\n", failure.callbacks);
    text.add("  cause: %s\n", text_of(failure.cause).explanation);
    text.add("  missing %s in one piece; remedy: %s", BytesText(failure.missing).c_str(),
             text_of(failure.cause).remedy);
    text.add("%s", failure.budgets);
}

DeviceAllocationError::~DeviceAllocationError() = default;

}  // namespace tensorpool
