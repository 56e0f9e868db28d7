#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tensorpool::device {

/// Work in the order of submission, done by the stream's own worker thread, which starts with the
/// first work. Pieces of work are numbered; a number is "reached" when that piece and all before it
/// are done. Numbering continues when the stream is reused under a new handle, so numbers from an
/// earlier use stay valid. Any thread.
class HostStream {
public:
    using Work = std::function<void()>;

    HostStream() noexcept = default;
    /// REQUIRES: `end_lifetime` was called, or no work was ever submitted.
    ~HostStream() = default;
    HostStream(const HostStream&) = delete;
    HostStream& operator=(const HostStream&) = delete;

    /// Submits work and returns its number. Throws std::bad_alloc, or std::system_error if no
    /// thread can be started, and then submits nothing.
    std::uint64_t give(Work work);
    /// Does the work at once if the stream is idle, or else submits it. An idle stream so needs no
    /// thread for short work. Returns a number that is reached when the work is done.
    std::uint64_t give_or_do(Work work);

    /// Returns the number of the last work submitted. Acquire: pairs with the release in `give`.
    std::uint64_t given() const noexcept { return given_.load(std::memory_order_acquire); }
    /// Acquire: pairs with the release in `run`, so that what the work wrote is visible.
    bool reached(std::uint64_t number) const noexcept {
        return done_.load(std::memory_order_acquire) >= number;
    }
    bool is_idle() const noexcept { return reached(given()); }
    /// REQUIRES: the caller is not this stream's worker.
    void wait_until(std::uint64_t number) noexcept;
    void wait() noexcept { wait_until(given()); }

    /// Waits until all work is done and the worker has ended. `give` may start a new worker later.
    void end_lifetime() noexcept;

private:
    void run() noexcept;

    std::mutex mutex_;  // guards all that follows; not held while work runs
    std::condition_variable something_given_;
    std::condition_variable something_done_;
    std::deque<Work> queue_;
    std::thread worker_;
    bool ending_ = false;
    std::atomic<std::uint64_t> given_{0};  // written under the lock
    std::atomic<std::uint64_t> done_{0};   // written under the lock
};

}  // namespace tensorpool::device
