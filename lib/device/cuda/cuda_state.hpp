#pragma once

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device_status.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/call_errors.hpp"
#include "device/cuda/driver_api.hpp"

namespace tensorpool::device::cuda {

/// Returns what a result of the driver means to users of a backend. Results without a meaning of
/// their own are `failed`.
DeviceStatus status_of(Result result) noexcept;

// The backend's handles are the driver's under another name. All else is handed on as it is.
inline Stream to_driver(StreamHandle stream) noexcept {
    return reinterpret_cast<Stream>(stream);
}
inline Event to_driver(EventHandle event) noexcept {
    return reinterpret_cast<Event>(event);
}
inline GraphExec to_driver(GraphHandle graph) noexcept {
    return reinterpret_cast<GraphExec>(graph);
}
inline MemoryNumber to_driver(MemoryHandle memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory);
}
template <class Argument>
Argument to_driver(Argument argument) noexcept {
    return argument;
}
inline DeviceAddress address_of(const void* memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory);
}
inline void* pointer_of(DeviceAddress address) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// What is known of one device. The first part does not change.
struct CudaDevice {
    explicit CudaDevice(int its_index) noexcept : index(its_index) {}

    const int index;
    DeviceNumber number = 0;
    std::string name;
    DeviceAbilities abilities;

    /// Made under the lock, when first needed; released stores pair with acquiring loads.
    std::mutex making;
    std::atomic<Context> context = nullptr;
    std::atomic<Stream> copy_stream = nullptr;  // for copies that are done when the call returns

    std::mutex mapping;  // of the two below
    std::map<DeviceAddress, std::size_t> mappings;
    std::vector<DeviceNumber> readers = {};  // peers that have access to this one's memory
};

/// Which threads capture. In the relaxed mode, which lets other threads go on, the driver refuses
/// little, and what it refuses breaks the capture; so calls are checked here before they reach it.
class Captures {
public:
    /// By the calling thread. Throws std::bad_alloc.
    void begin(Stream stream) {
        const std::lock_guard guard(mutex_);
        under_way_.push_back({stream, std::this_thread::get_id()});
        count_.store(under_way_.size(), std::memory_order_relaxed);
    }
    /// By any thread. Does nothing for a stream that none captures.
    void end(Stream stream) noexcept {
        const std::lock_guard guard(mutex_);
        std::erase_if(under_way_,
                      [stream](const UnderWay& capture) { return capture.stream == stream; });
        count_.store(under_way_.size(), std::memory_order_relaxed);
    }
    bool by_this_thread() const noexcept {
        // Relaxed: a thread sees its own `begin`, and no other's matters.
        if (count_.load(std::memory_order_relaxed) == 0) return false;
        const std::lock_guard guard(mutex_);
        return std::any_of(under_way_.begin(), under_way_.end(), [](const UnderWay& capture) {
            return capture.thread == std::this_thread::get_id();
        });
    }

private:
    struct UnderWay {
        Stream stream;
        std::thread::id thread;
    };

    mutable std::mutex mutex_;
    std::vector<UnderWay> under_way_;
    std::atomic<std::size_t> count_ = 0;
};

/// The driver and its devices, and the way calls take to them: in the device's context, with
/// handles as the driver has them. What fails throws DeviceError, to be caught by `guard`.
class CudaState {
public:
    explicit CudaState(const std::string& library);
    ~CudaState();
    CudaState(const CudaState&) = delete;
    CudaState& operator=(const CudaState&) = delete;

    /// A function of the driver with these arguments, in the device's context.
    template <class... Parameters, class... Arguments>
    DeviceStatus call(int index, const DriverFunction<Result(Parameters...)>& function,
                      Arguments... arguments) noexcept {
        return run(index, [&](CudaDevice&) { return ask(function, arguments...); });
    }
    /// The same, where it waits: not while the calling thread captures.
    template <class... Parameters, class... Arguments>
    DeviceStatus call_waiting(int index, const DriverFunction<Result(Parameters...)>& function,
                              Arguments... arguments) noexcept {
        return run(index, [&](CudaDevice&) {
            refuse_in_capture();
            return ask(function, arguments...);
        });
    }
    /// `body(device)` in the device's context; its status, or that of what it throws.
    template <class Body>
    DeviceStatus run(int index, Body body) noexcept {
        return errors.guard("cuda", [&] {
            CudaDevice& device = device_at(index);
            const ContextScope scope(*this, device);
            return body(device);
        });
    }
    /// The driver's word: ok or not_ready. Throws DeviceError for all else, or where the driver has
    /// no such function. REQUIRES: a context is current where the function wants one.
    template <class... Parameters, class... Arguments>
    DeviceStatus ask(const DriverFunction<Result(Parameters...)>& function,
                     Arguments... arguments) {
        expect(function);
        return check(function.name, function(to_driver(arguments)...));
    }

    /// Throws DeviceError where the driver has no such function.
    void expect(const DriverSymbol& symbol) const {
        if (!symbol) throw_missing(symbol);
    }
    /// Throws DeviceError where there is no such device.
    CudaDevice& device_at(int index);
    /// Its primary context, made if need be.
    Context context_of(CudaDevice& device);
    /// REQUIRES: its context is current.
    Stream copy_stream_of(CudaDevice& device);
    /// What is mapped there is for nobody until its access is set, device by device.
    void give_access(DeviceAddress address, std::size_t bytes, DeviceNumber reader);
    /// Throws DeviceError where the calling thread captures.
    void refuse_in_capture() const;

    DriverApi api;
    CallErrors errors;
    Captures captures;
    std::string problem;  // why there are no devices
    std::deque<CudaDevice> devices;

private:
    /// The device's context is the thread's current one, for as long as this lives.
    class ContextScope {
    public:
        ContextScope(CudaState& state, CudaDevice& device);
        ~ContextScope();
        ContextScope(const ContextScope&) = delete;
        ContextScope& operator=(const ContextScope&) = delete;

    private:
        const DriverApi& api_;
    };

    void find_devices();
    void describe(CudaDevice& device);
    bool has(const CudaDevice& device, DeviceAttribute attribute) const noexcept;
    DeviceStatus check(const char* call, Result result) const;
    std::string text_of(Result result) const;
    [[noreturn]] void throw_missing(const DriverSymbol& symbol) const;

    int version_ = 0;
};

}  // namespace tensorpool::device::cuda
