#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tensorpool::device {

/// Work in the order in which it was given, done by a worker thread of the stream's own, which
/// starts with the first of it. Each piece has a number, 1 more than the one before; "reached" is a
/// number when that piece and all before it are done. Numbers go on when another life begins, so
/// one that somebody still holds stays right. Any thread.
class HostStream {
public:
    using Work = std::function<void()>;

    HostStream() noexcept = default;
    /// REQUIRES: `end_life` was called, or nothing was ever given.
    ~HostStream() = default;
    HostStream(const HostStream&) = delete;
    HostStream& operator=(const HostStream&) = delete;

    /// The number of the work. Throws std::bad_alloc, or std::system_error where no thread can be
    /// had; then nothing was given.
    std::uint64_t give(Work work);
    /// Does it at once where all that was given is done; otherwise gives it. So a stream without
    /// work needs no thread for what takes no time. Its number.
    std::uint64_t give_or_do(Work work);

    /// The number of what was given last. Acquire: with the release in `give`.
    std::uint64_t given() const noexcept { return given_.load(std::memory_order_acquire); }
    /// Acquire: with the release in `run`, what the work did is seen.
    bool reached(std::uint64_t number) const noexcept {
        return done_.load(std::memory_order_acquire) >= number;
    }
    bool is_idle() const noexcept { return reached(given()); }
    /// REQUIRES: not on this stream's worker.
    void wait_until(std::uint64_t number) noexcept;
    void wait() noexcept { wait_until(given()); }

    /// Waits until all is done and the worker has ended. Then another life may begin, by `give`.
    void end_life() noexcept;

private:
    void run() noexcept;

    std::mutex mutex_;  // of all that follows; held while no work is done
    std::condition_variable something_given_;
    std::condition_variable something_done_;
    std::deque<Work> queue_;
    std::thread worker_;
    bool ending_ = false;
    std::atomic<std::uint64_t> given_{0};  // written under the lock
    std::atomic<std::uint64_t> done_{0};   // the same
};

}  // namespace tensorpool::device
