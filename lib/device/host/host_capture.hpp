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

/// Captured work in the order of submission. Each piece comes after all pieces that it waits for,
/// so running them in this order is correct.
using HostGraph = std::vector<HostStream::Work>;

/// One capture: the work submitted to its streams, and which piece waits for which.
class HostCapture {
public:
    /// Numbers of pieces that must be done before the next one; the first piece has number 1.
    using Points = std::vector<std::size_t>;

    HostCapture(HostStream& origin, std::uint64_t id) : origin_(&origin), id_(id) {}

    std::uint64_t id() const noexcept { return id_; }
    const HostStream& origin() const noexcept { return *origin_; }
    bool is_by_this_thread() const noexcept { return thread_ == std::this_thread::get_id(); }
    bool is_under_way() const noexcept { return is_under_way_; }
    void end() noexcept { is_under_way_ = false; }

    /// Adds a piece and returns its number.
    std::size_t add(HostStream::Work work, Points after);
    /// Whether all captured pieces come before these or are among them.
    bool is_all_before(const Points& points) const;
    HostGraph take_work() { return std::move(work_); }

private:
    HostStream* origin_;
    std::uint64_t id_;
    std::thread::id thread_ = std::this_thread::get_id();
    bool is_under_way_ = true;
    HostGraph work_;
    std::vector<Points> after_;  // for each piece: the pieces it waits for, with lower numbers
};

/// What an event stands for if it was recorded in a captured stream.
struct HostCapturePoint {
    std::shared_ptr<HostCapture> capture;
    HostCapture::Points points;
};

/// The captures of a backend, and the position of each captured stream in its capture. While no
/// capture is in progress, each call costs one load. Errors are thrown as DeviceError. Any thread.
class HostCaptures {
public:
    HostCaptures() noexcept = default;
    HostCaptures(const HostCaptures&) = delete;
    HostCaptures& operator=(const HostCaptures&) = delete;

    /// The number of captures under way.
    const std::atomic<unsigned>& count() const noexcept { return under_way_; }
    void begin(HostStream& stream);
    /// Ends the capture. If some streams were not joined, throws, and the capture ends as well.
    HostGraph end(HostStream& stream);
    /// Removes a destroyed stream, and the capture that began in it.
    void forget(HostStream& stream) noexcept;
    CaptureState state(const HostStream& stream);

    /// Adds the work to the stream's capture. Returns whether it did; `work` is moved from then.
    bool keep(HostStream& stream, HostStream::Work& work) {
        return any() && keep_slow(stream, work);
    }
    /// Returns the stream's position in its capture, or nullptr if it is not being captured.
    std::shared_ptr<const HostCapturePoint> point_of(const HostStream& stream) {
        return any() ? point_of_slow(stream) : nullptr;
    }
    /// Orders the stream after the point; the stream joins the capture.
    void join(HostStream& stream, const HostCapturePoint& point);
    /// Throws if the calling thread began a capture, for calls that wait.
    void check_thread() {
        if (any()) check_thread_slow();
    }
    /// Throws if the stream is being captured, for calls that are not allowed then.
    void check_stream(const HostStream& stream);

private:
    // Relaxed: a thread sees captures that it began itself. A capture begun by another thread
    // affects it only after some synchronization between the two.
    bool any() const noexcept { return under_way_.load(std::memory_order_relaxed) != 0; }
    bool keep_slow(HostStream& stream, HostStream::Work& work);
    std::shared_ptr<const HostCapturePoint> point_of_slow(const HostStream& stream);
    void check_thread_slow();
    void end_members(const HostCapture& capture) noexcept;

    std::mutex mutex_;                                       // guards all captures, and:
    std::map<const HostStream*, HostCapturePoint> streams_;  // captured streams, their positions
    std::atomic<unsigned> under_way_{0};  // captures in progress; written under the lock
    // Ids are unique among all captures of the process.
    static std::atomic<std::uint64_t> last_id_;
};

}  // namespace tensorpool::device
