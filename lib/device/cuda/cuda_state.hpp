#pragma once

#include <tensorpool/device/device_status.hpp>

#include <deque>
#include <string>

#include "device/call_errors.hpp"
#include "device/cuda/captures.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/driver_api.hpp"

namespace tensorpool::device::cuda {

/// The driver and its devices, and how they are called. What fails throws DeviceError, to be caught
/// by `guard`.
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
        return check(function.name, function(arguments...));
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
