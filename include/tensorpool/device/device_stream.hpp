#pragma once

/// @file
/// A handle that owns a stream: a queue of work on a device.

#include <tensorpool/device/device_event.hpp>

namespace tensorpool {

/// Owns one stream of a device. Move-only. Any thread may submit work to it. It may outlive its
/// runtime. All functions throw DeviceError if the device fails.
class TENSORPOOL_API DeviceStream {
public:
    /// Makes a stream of the current device.
    DeviceStream();
    /// Makes a stream of the runtime's device. Work of streams with a smaller number may run first.
    /// Throws DeviceError for a priority outside `Runtime::stream_priorities`.
    explicit DeviceStream(Runtime& runtime, int priority = 0);
    /// Waits until the stream's work is done, so that memory allocated for it can serve others.
    /// Blocks still in use then belong to the default stream, and operations of their handles
    /// become its work.
    ~DeviceStream();
    /// Takes the stream of `other`, which then has none.
    DeviceStream(DeviceStream&& other) noexcept;
    /// Ends the present stream and takes the stream of `other`, which then has none.
    DeviceStream& operator=(DeviceStream&& other) noexcept;
    DeviceStream(const DeviceStream&) = delete;
    DeviceStream& operator=(const DeviceStream&) = delete;

    /// Returns the backend's handle; nullptr for a moved-from object, of which no other function
    /// may be called.
    StreamHandle handle() const noexcept { return stream_; }
    /// Returns the backend's handle, so that a stream can be passed where a handle is expected.
    operator StreamHandle() const noexcept { return stream_; }
    /// Returns the stream's device.
    Device device() const noexcept;

    /// Waits until all work submitted to the stream is done.
    void synchronize() const;
    /// Returns whether all work submitted to the stream is done.
    bool query() const;
    /// Makes work submitted to the stream from now on wait for the work that the event stands for
    /// now. Throws DeviceError for an event of another backend's device.
    void wait(const DeviceEvent& event) const;
    /// Submits a call of `function` to the stream. It runs on some thread, in the stream's order,
    /// and is then destroyed there, with what it captured.
    ///
    /// Neither may throw or call a function of a device. The call keeps no stream and no memory
    /// alive. Throws std::bad_alloc, and DeviceError while the stream is captured, because a
    /// function is called once but a graph may be launched often (use Backend::launch_host_function
    /// there).
    void launch(std::function<void()> function) const;

private:
    friend class CurrentStreamScope;

    std::shared_ptr<device::RuntimeCore> core_;
    StreamHandle stream_ = nullptr;
};

}  // namespace tensorpool
