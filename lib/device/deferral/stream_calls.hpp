#pragma once

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// The calls to a backend about streams, by key.
///
/// A stream's key is its handle, except where handles name a stream indirectly
/// (`DeviceAbilities::names_default_streams`): the default stream always has the key nullptr, and
/// the default stream of each thread has a key that no other thread ever has. Source: issues 535
/// and 582 of RMM.
///
/// A stream that the program made itself may be asked for only during a call for it: its owner may
/// have destroyed it since, and the driver may crash then. Source: issue 510 of RMM.
class StreamCalls {
public:
    StreamCalls(Backend& backend, int device) noexcept;

    StreamHandle key_of(StreamHandle handle) const noexcept {
        const auto number = reinterpret_cast<std::uintptr_t>(handle);
        // 0 wraps around, so one comparison finds the handles 1 and 2.
        return number - 1 > 1 || !names_default_streams_ ? handle : key_of_default(number);
    }
    /// Whether the key is that of a thread's default stream, and the thread has ended.
    static bool is_of_ended_thread(StreamHandle key) noexcept;
    /// Whether the key is that of another thread's default stream, which the calling thread cannot
    /// name: a call would mean its own.
    static bool is_of_other_thread(StreamHandle key) noexcept;
    /// Whether the stream may be asked at any time, by the calling thread.
    bool may_ask(StreamHandle key) const noexcept;

    // REQUIRES, for the functions below: the stream may be asked, or the caller names it.

    /// The handle that names the stream on the calling thread.
    static StreamHandle handle_of(StreamHandle key) noexcept;
    /// Returns the number of the capture that the stream is part of, or 0.
    std::uint64_t capture_of(StreamHandle key) const noexcept;
    /// Whether the stream is being captured into a graph. Such a stream may not be queried, and an
    /// event recorded on it would become part of the graph.
    bool is_captured(StreamHandle key) const noexcept;
    /// Returns a number that no other stream ever has, even under the same handle; 0 if unknown.
    std::uint64_t id_of(StreamHandle key) const noexcept;
    DeviceStatus query(StreamHandle key) const noexcept;
    DeviceStatus record(EventHandle event, StreamHandle key) const noexcept;
    DeviceStatus synchronize(StreamHandle key) const noexcept;

private:
    static StreamHandle key_of_default(std::uintptr_t number) noexcept;

    Backend& backend_;
    const int device_;
    const bool names_default_streams_;
    const std::atomic<unsigned>& captures_under_way_;
};

}  // namespace tensorpool::device
