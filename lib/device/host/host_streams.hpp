#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "device/host/handle_table.hpp"
#include "device/host/host_stream.hpp"

namespace tensorpool::device {

/// All streams of a backend: the default stream, those with a handle, and destroyed ones that still
/// have work. Errors are thrown as DeviceError. Any thread.
class HostStreams {
public:
    HostStreams() noexcept = default;
    /// Waits for all work.
    ~HostStreams();
    HostStreams(const HostStreams&) = delete;
    HostStreams& operator=(const HostStreams&) = delete;

    StreamHandle create();
    /// Does not wait for the stream's work.
    void destroy(StreamHandle handle);
    /// Returns the stream; nullptr means the default stream.
    HostStream& find(StreamHandle handle);
    void wait_for_all();

private:
    struct Leaving {
        StreamHandle handle;
        HostStream* stream;
    };

    /// Ends the workers of destroyed streams whose work is done.
    void end_leaving() noexcept;
    std::optional<Leaving> take_idle() noexcept;

    HostStream default_stream_;
    HandleTable<HostStream, StreamHandle> streams_;
    std::mutex mutex_;  // guards `leaving_`
    std::vector<Leaving> leaving_;
};

}  // namespace tensorpool::device
