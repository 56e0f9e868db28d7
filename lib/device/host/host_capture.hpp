#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "device/host/host_stream.hpp"

namespace tensorpool::device {

/// Work that was kept, in the order in which it was given: each piece comes after all that it waits
/// for, so one after another they are in a right order.
using HostGraph = std::vector<HostStream::Work>;

/// One capture: the work that was given to its streams, and which piece waits for which.
class HostCapture {
public:
    /// Pieces of work after which the next may run; the first has number 1.
    using Points = std::vector<std::size_t>;

    HostCapture(HostStream& origin, std::uint64_t id) : origin_(&origin), id_(id) {}

    std::uint64_t id() const noexcept { return id_; }
    const HostStream& origin() const noexcept { return *origin_; }
    bool is_by_this_thread() const noexcept { return thread_ == std::this_thread::get_id(); }
    bool is_under_way() const noexcept { return is_under_way_; }
    void end() noexcept { is_under_way_ = false; }

    /// The piece's point.
    std::size_t add(HostStream::Work work, Points after);
    /// Whether all that was kept comes before these.
    bool is_all_before(const Points& points) const;
    HostGraph take_work() { return std::move(work_); }

private:
    HostStream* origin_;
    std::uint64_t id_;
    std::thread::id thread_ = std::this_thread::get_id();
    bool is_under_way_ = true;
    HostGraph work_;
    std::vector<Points> after_;  // of each piece: all of them lower than its own
};

/// What an event stands for that was recorded in a stream that is captured.
struct HostCapturePoint {
    std::shared_ptr<HostCapture> capture;
    HostCapture::Points points;
};

/// The captures of a backend, and how far each captured stream has got in its capture. While no
/// capture is under way, each call here loads one number. Errors are thrown as DeviceError. Any
/// thread.
class HostCaptures {
public:
    HostCaptures() noexcept = default;
    HostCaptures(const HostCaptures&) = delete;
    HostCaptures& operator=(const HostCaptures&) = delete;

    void begin(HostStream& stream);
    /// The capture is over even where it is refused since not all streams came back.
    HostGraph end(HostStream& stream);
    /// The stream goes, and with it a capture that began in it.
    void forget(HostStream& stream) noexcept;
    CaptureState state(const HostStream& stream);

    /// Whether the work was kept; then it was moved from.
    bool keep(HostStream& stream, HostStream::Work& work) {
        return any() && keep_slow(stream, work);
    }
    /// Where the stream is in its capture; nullptr: it is in none.
    std::shared_ptr<const HostCapturePoint> point_of(const HostStream& stream) {
        return any() ? point_of_slow(stream) : nullptr;
    }
    /// The stream comes after the point, and is captured from now on.
    void join(HostStream& stream, const HostCapturePoint& point);
    /// Refuses what waits on the thread that captures.
    void check_thread() {
        if (any()) check_thread_slow();
    }
    /// Refuses what may not be asked of a stream that is captured.
    void check_stream(const HostStream& stream);

private:
    // Relaxed: a thread sees what it began itself, and has nothing to say of others' captures that
    // it was not told of.
    bool any() const noexcept { return under_way_.load(std::memory_order_relaxed) != 0; }
    bool keep_slow(HostStream& stream, HostStream::Work& work);
    std::shared_ptr<const HostCapturePoint> point_of_slow(const HostStream& stream);
    void check_thread_slow();
    void end_members(const HostCapture& capture) noexcept;

    std::mutex mutex_;                                       // of what follows, and of all captures
    std::map<const HostStream*, HostCapturePoint> streams_;  // that are captured, and how far
    std::atomic<std::size_t> under_way_{0};                  // captures; written under the lock
    // Unlike that of any other capture of the process.
    static std::atomic<std::uint64_t> last_id_;
};

}  // namespace tensorpool::device
