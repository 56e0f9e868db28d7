#pragma once

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "device/call_errors.hpp"
#include "device/cuda/driver_api.hpp"

namespace tensorpool::device::cuda {

/// Converts a result of the driver to a status of the backend. Results without an equivalent become
/// `failed`.
DeviceStatus status_of(Result result) noexcept;

// The backend's handles are the driver's handles as other types. Other arguments are passed as is.
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

/// A stream for synchronous copies, and an event by which it waits for the default stream.
struct CopyLane {
    Stream stream = nullptr;
    Event event = nullptr;
};

/// One device. The first members do not change after construction.
struct CudaDevice {
    explicit CudaDevice(int its_index) noexcept : index(its_index) {}

    const int index;
    DeviceNumber number = 0;
    std::string name;
    DeviceAbilities abilities;
    bool has_rdma = false;  // for exportable memory

    /// Held to make the context when first needed. The release store pairs with acquire loads.
    std::mutex making;
    std::atomic<Context> context = nullptr;

    std::mutex copying;                   // guards:
    std::list<CopyLane> idle_lanes = {};  // those that no synchronous copy uses now

    std::mutex mapping;               // guards the two below
    std::vector<DeviceNumber> peers;  // that can access this device's memory
    std::map<DeviceAddress, std::size_t> mappings;
};

/// The captures that were begun through the backend, and their threads. The backend calls the
/// driver in the relaxed mode, in which the driver rejects only calls that conflict with a capture,
/// and a rejected call breaks the capture. So waits are checked here before they reach the driver.
class Captures {
public:
    /// Records a capture by the calling thread. Throws std::bad_alloc.
    void begin(Stream stream) {
        const std::lock_guard guard(mutex_);
        under_way_.push_back({stream, std::this_thread::get_id()});
        count_.store(static_cast<unsigned>(under_way_.size()), std::memory_order_relaxed);
    }
    /// Ends a capture, on any thread. Does nothing for a stream that is not being captured.
    void end(Stream stream) noexcept {
        const std::lock_guard guard(mutex_);
        std::erase_if(under_way_,
                      [stream](const UnderWay& capture) { return capture.stream == stream; });
        count_.store(static_cast<unsigned>(under_way_.size()), std::memory_order_relaxed);
    }
    /// The number of captures under way.
    const std::atomic<unsigned>& count() const noexcept { return count_; }
    bool by_this_thread() const noexcept {
        // Relaxed: a thread sees its own `begin`, and other threads' captures do not matter.
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
    std::atomic<unsigned> count_ = 0;
};

/// The streams that were created through the backend and are not destroyed. Others belong to the
/// program, which may destroy them at any time.
class OwnStreams {
public:
    /// Throws std::bad_alloc.
    void add(Stream stream) {
        const std::lock_guard guard(mutex_);
        streams_.insert(stream);
    }
    /// Returns whether it was one of them.
    bool remove(Stream stream) noexcept {
        const std::lock_guard guard(mutex_);
        return streams_.erase(stream) != 0;
    }
    bool contains(Stream stream) const noexcept {
        const std::lock_guard guard(mutex_);
        return streams_.count(stream) != 0;
    }

private:
    mutable std::mutex mutex_;
    std::unordered_set<Stream> streams_;
};

/// The driver and its devices. Calls are made in the device's context, with the driver's handles.
/// Failures throw DeviceError, which `guard` catches.
class CudaState {
public:
    explicit CudaState(const std::string& library);
    ~CudaState();
    CudaState(const CudaState&) = delete;
    CudaState& operator=(const CudaState&) = delete;

    /// Calls a function of the driver with these arguments, in the device's context.
    template <class... Parameters, class... Arguments>
    DeviceStatus call(int index, const DriverFunction<Result(Parameters...)>& function,
                      Arguments... arguments) noexcept {
        return run(index, [&](CudaDevice&) { return invoke(function, arguments...); });
    }
    /// Like `call`, for functions that wait: rejected while the calling thread captures.
    template <class... Parameters, class... Arguments>
    DeviceStatus call_waiting(int index, const DriverFunction<Result(Parameters...)>& function,
                              Arguments... arguments) noexcept {
        return run(index, [&](CudaDevice&) {
            refuse_in_capture();
            return invoke(function, arguments...);
        });
    }
    /// Calls `body(device)` in the device's context. Returns its status, or that of its exception.
    template <class Body>
    DeviceStatus run(int index, Body body) noexcept {
        return errors.guard("cuda", [&] {
            CudaDevice& device = device_at(index);
            const CallScope scope(*this, device);
            return body(device);
        });
    }
    /// Calls a function of the driver and returns ok or not_ready. Throws DeviceError for any other
    /// result, or if the driver lacks the function. REQUIRES: a context is current if needed.
    template <class... Parameters, class... Arguments>
    DeviceStatus invoke(const DriverFunction<Result(Parameters...)>& function,
                        Arguments... arguments) {
        expect(function);
        return check(function.name, function(to_driver(arguments)...));
    }

    /// Throws DeviceError if the driver lacks the function.
    void expect(const DriverSymbol& symbol) const {
        if (!symbol) throw_missing(symbol);
    }
    /// Throws DeviceError if the device does not exist.
    CudaDevice& device_at(int index);
    /// Returns the device's primary context, and creates it if needed.
    Context context_of(CudaDevice& device);
    /// Gives the device, and its peers if possible, access to a run of mappings. Without this, no
    /// device has access to it. REQUIRES: the device's mapping lock.
    void give_access(CudaDevice& device, DeviceAddress address, std::size_t bytes);
    /// Throws DeviceError if the calling thread is capturing.
    void refuse_in_capture() const;

    DriverApi api;
    CallErrors errors;
    Captures captures;
    OwnStreams own_streams;
    std::string problem;  // why there are no devices
    std::deque<CudaDevice> devices;

private:
    /// Makes the device's context current on the thread until the object is destroyed, and lets the
    /// thread's calls break no capture of any thread. Source: "CUDA Driver API",
    /// cuThreadExchangeStreamCaptureMode; PyTorch's issue 146924.
    class CallScope {
    public:
        CallScope(CudaState& state, CudaDevice& device);
        ~CallScope();
        CallScope(const CallScope&) = delete;
        CallScope& operator=(const CallScope&) = delete;

    private:
        void exchange_mode() noexcept;

        const DriverApi& api_;
        CaptureMode mode_ = CaptureMode::relaxed;
    };

    void find_devices();
    void describe(CudaDevice& device);
    void find_peers(CudaDevice& device);
    bool has(const CudaDevice& device, DeviceAttribute attribute) const noexcept;
    DeviceStatus check(const char* call, Result result) const;
    std::string text_of(Result result) const;
    [[noreturn]] void throw_missing(const DriverSymbol& symbol) const;

    int version_ = 0;
};

}  // namespace tensorpool::device::cuda
