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

inline std::string version_text(int version) {
    return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

inline const char* text_without_driver(Result result) noexcept {
    if (result != Result::stub_library) return "an error without a text";
    return "it is the toolkit's stub for linking; expected the driver's own library";
}

/// Converts a result of the driver to a status of the backend. Results without an equivalent become
/// `failed`.
inline DeviceStatus status_of(Result result) noexcept {
    // All results between these two are about captures.
    if (result >= Result::stream_capture_unsupported &&
        result <= Result::stream_capture_wrong_thread) {
        return DeviceStatus::in_capture;
    }
    switch (result) {
        case Result::success:
        case Result::peer_access_already_enabled:  // not an error by the rules of Backend
            return DeviceStatus::ok;
        case Result::not_ready:
            return DeviceStatus::not_ready;
        case Result::out_of_memory:
            return DeviceStatus::out_of_memory;
        case Result::not_supported:
        case Result::peer_access_unsupported:
        case Result::too_many_peers:
            return DeviceStatus::not_supported;
        case Result::invalid_value:
        case Result::invalid_device:
        case Result::invalid_context:
        case Result::invalid_handle:
        case Result::illegal_state:
        case Result::host_memory_already_registered:
        case Result::host_memory_not_registered:
            return DeviceStatus::invalid_argument;
        // The reference documents for each of these that the process must end, or that all later
        // calls fail too.
        case Result::deinitialized:
        case Result::ecc_uncorrectable:
        case Result::nvlink_uncorrectable:
        case Result::contained:
        case Result::illegal_address:
        case Result::launch_timeout:
        case Result::context_is_destroyed:
        case Result::assert:
        case Result::hardware_stack_error:
        case Result::illegal_instruction:
        case Result::misaligned_address:
        case Result::invalid_address_space:
        case Result::invalid_pc:
        case Result::launch_failed:
        case Result::tensor_memory_leak:
        case Result::mps_client_terminated:
        case Result::external_device:
            return DeviceStatus::device_lost;
        default:
            return DeviceStatus::failed;
    }
}

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
        std::erase_if(under_way_, [&](const UnderWay& one) { return one.stream == stream; });
        count_.store(static_cast<unsigned>(under_way_.size()), std::memory_order_relaxed);
    }
    const std::atomic<unsigned>& count() const noexcept { return count_; }
    bool by_this_thread() const noexcept {
        // Relaxed: a thread sees its own `begin`, and other threads' captures do not matter.
        if (count_.load(std::memory_order_relaxed) == 0) return false;
        const std::lock_guard guard(mutex_);
        const auto own = std::this_thread::get_id();
        return std::ranges::find(under_way_, own, &UnderWay::thread) != under_way_.end();
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
    explicit CudaState(const std::string& library) {
        if (!api.load(library)) {
            problem = api.problem;
            return;
        }
        try {
            find_devices();
        } catch (const DeviceError& error) {
            problem = library + " was loaded but has no usable device: " + error.what();
            devices.clear();
        }
    }
    // At the end of a process the driver may be unloaded first. Each call fails then and has no
    // effect.
    ~CudaState() {
        for (CudaDevice& device : devices) {
            const Context context = device.context.load(std::memory_order_acquire);
            if (context == nullptr) continue;
            if (api.context_push(context) == Result::success) {
                for (const auto& [stream, event] : device.idle_lanes) {
                    api.stream_destroy(stream);
                    api.event_destroy(event);
                }
                Context popped = nullptr;
                api.context_pop(&popped);
            }
            api.context_release(device.number);
        }
    }

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
    CudaDevice& device_at(int index) {
        if (index >= 0 && static_cast<std::size_t>(index) < devices.size()) {
            return devices[static_cast<std::size_t>(index)];
        }
        throw DeviceError(DeviceStatus::invalid_argument,
                          "no device cuda:" + std::to_string(index) + "; there are " +
                              std::to_string(devices.size()) +
                              (problem.empty() ? std::string() : ": " + problem));
    }
    /// Returns the device's primary context, and creates it if needed.
    Context context_of(CudaDevice& device) {
        if (const Context context = device.context.load(std::memory_order_acquire)) return context;
        const std::lock_guard guard(device.making);
        Context context =
            device.context.load(std::memory_order_relaxed);  // relaxed: under the lock
        if (context != nullptr) return context;
        invoke(api.context_retain, &context, device.number);
        device.context.store(context, std::memory_order_release);
        return context;
    }
    /// Gives the device, and its peers if possible, access to a run of mappings. Without this, no
    /// device has access to it. REQUIRES: the device's mapping lock.
    void give_access(CudaDevice& device, DeviceAddress address, std::size_t bytes) {
        std::vector<AccessDescription> access(1 + device.peers.size());
        access[0].location.id = device.number;
        for (std::size_t i = 0; i < device.peers.size(); ++i) {
            access[1 + i].location.id = device.peers[i];
        }
        const Result result = api.memory_set_access(address, bytes, access.data(), access.size());
        if (result == Result::success || result == Result::out_of_memory || device.peers.empty()) {
            (void)check(api.memory_set_access.name, result);
            return;
        }
        // Access of peers is not necessary: copies are staged without it.
        invoke(api.memory_set_access, address, bytes, access.data(), std::size_t{1});
        device.peers.clear();
    }
    void refuse_in_capture() const {
        if (!captures.by_this_thread()) return;
        throw DeviceError(DeviceStatus::in_capture,
                          "not allowed while this thread is capturing a stream");
    }

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
        CallScope(CudaState& state, CudaDevice& device) : api_(state.api) {
            state.invoke(state.api.context_push, state.context_of(device));
            exchange_mode();
        }
        ~CallScope() {
            exchange_mode();
            Context popped = nullptr;
            api_.context_pop(&popped);
        }
        CallScope(const CallScope&) = delete;
        CallScope& operator=(const CallScope&) = delete;

    private:
        void exchange_mode() noexcept {
            if (api_.exchange_capture_mode) api_.exchange_capture_mode(&mode_);
        }

        const DriverApi& api_;
        CaptureMode mode_ = CaptureMode::relaxed;
    };

    void find_devices() {
        invoke(api.init, 0U);
        invoke(api.driver_version, &version_);
        int count = 0;
        invoke(api.device_count, &count);
        if (count == 0) problem = "the CUDA driver found no device";
        for (int index = 0; index < count; ++index) describe(devices.emplace_back(index));
        for (CudaDevice& device : devices) find_peers(device);
    }
    void describe(CudaDevice& device) {
        char name[256] = {};
        invoke(api.device_get, &device.number, device.index);
        invoke(api.device_name, name, static_cast<int>(sizeof name - 1), device.number);
        device.name = name;
        DeviceAbilities& abilities = device.abilities;
        abilities.shared_storage = has(device, DeviceAttribute::can_map_host_memory) &&
                                   has(device, DeviceAttribute::unified_addressing);
        abilities.managed_storage =
            api.memory_allocate_managed && has(device, DeviceAttribute::managed_memory);
        abilities.managed_advice = abilities.managed_storage && api.memory_advise &&
                                   api.memory_prefetch &&
                                   has(device, DeviceAttribute::concurrent_managed_access);
        abilities.stream_ordered_allocation = api.memory_allocate_async && api.memory_free_async &&
                                              api.default_pool && api.pool_set && api.pool_get &&
                                              api.pool_trim &&
                                              has(device, DeviceAttribute::memory_pools);
        abilities.names_default_streams = true;
        abilities.graph_capture = api.begin_capture && api.end_capture && api.capture_info &&
                                  api.graph_instantiate && api.graph_launch && api.graph_destroy &&
                                  api.graph_exec_destroy;
        const bool has_functions = api.granularity && api.address_reserve && api.address_free &&
                                   api.memory_create && api.memory_release && api.memory_map &&
                                   api.memory_unmap && api.memory_set_access;
        if (!has_functions || !has(device, DeviceAttribute::virtual_memory_management)) return;
        AllocationProperties properties;
        properties.location.id = device.number;
        invoke(api.granularity, &abilities.granularity, &properties, Granularity::minimum);
        abilities.virtual_memory = true;
        abilities.exportable_memory = api.memory_export && api.memory_import &&
                                      has(device, DeviceAttribute::file_descriptor_handles);
        device.has_rdma = has(device, DeviceAttribute::rdma_with_virtual_memory);
    }
    void find_peers(CudaDevice& device) {
        if (!api.can_access_peer) return;
        for (const CudaDevice& other : devices) {
            int can = 0;
            if (&other != &device &&
                api.can_access_peer(&can, other.number, device.number) == Result::success &&
                can != 0) {
                device.peers.push_back(other.number);
            }
        }
    }
    bool has(const CudaDevice& device, DeviceAttribute attribute) const noexcept {
        int value = 0;
        // A driver does not know attributes newer than itself.
        return api.device_attribute(&value, attribute, device.number) == Result::success &&
               value != 0;
    }
    DeviceStatus check(const char* call, Result result) const {
        const DeviceStatus status = status_of(result);
        if (status == DeviceStatus::ok || status == DeviceStatus::not_ready) return status;
        throw DeviceError(status, std::string(call) + ": " + text_of(result));
    }
    std::string text_of(Result result) const {
        const char* text = nullptr;
        if (!api.error_string || api.error_string(result, &text) != Result::success ||
            text == nullptr)
            text = text_without_driver(result);
        return std::string(text) + " (CUresult " + std::to_string(static_cast<unsigned>(result)) +
               ')';
    }
    [[noreturn]] void throw_missing(const DriverSymbol& symbol) const {
        throw DeviceError(DeviceStatus::not_supported,
                          "the driver, of CUDA " + version_text(version_) + ", has no " +
                              symbol.exported + "; it came with CUDA " +
                              version_text(symbol.version));
    }

    int version_ = 0;
};

}  // namespace tensorpool::device::cuda
