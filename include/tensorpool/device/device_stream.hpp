#pragma once

/// @file
/// A queue of work on a device.

#include <functional>
#include <memory>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_event.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// Owns one stream of a device. Move-only; any thread may give it work. May outlive its runtime.
/// All throw DeviceError where the device fails.
class TENSORPOOL_API DeviceStream {
public:
    /// A new one, of the current device.
    DeviceStream();
    explicit DeviceStream(Runtime& runtime);
    /// Waits until its work is done, so that memory that was made for it may go to others: blocks
    /// still in use then are the default stream's, and what their handles do is its work.
    ~DeviceStream();
    DeviceStream(DeviceStream&& other) noexcept;
    DeviceStream& operator=(DeviceStream&& other) noexcept;
    DeviceStream(const DeviceStream&) = delete;
    DeviceStream& operator=(const DeviceStream&) = delete;

    /// nullptr after it was moved from: then nothing else may be called.
    StreamHandle handle() const noexcept { return stream_; }
    /// So that it may stand wherever a handle is asked for.
    operator StreamHandle() const noexcept { return stream_; }
    Device device() const noexcept;

    /// Waits until all that was given to it is done.
    void synchronize() const;
    /// Whether it is.
    bool query() const;
    /// Work given to it from now on waits for what the event stands for now. Throws DeviceError for
    /// an event of a device of another backend.
    void wait(const DeviceEvent& event) const;
    /// Calls the function on some thread, in the stream's order, and then destroys it there, with
    /// what it captured. Neither may throw, nor call anything of a device: it keeps no stream and
    /// no memory alive. Throws std::bad_alloc, and DeviceError while the stream is captured: it is
    /// called once, and a graph may be launched often (Backend::launch_host_function is for that).
    void launch(std::function<void()> function) const;

private:
    std::shared_ptr<device::RuntimeCore> core_;
    StreamHandle stream_ = nullptr;
};

}  // namespace tensorpool
