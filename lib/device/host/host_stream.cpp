#include "device/host/host_stream.hpp"

#include <utility>

namespace tensorpool::device {

std::uint64_t HostStream::give(Work work) {
    std::unique_lock lock(mutex_);
    queue_.push_back(std::move(work));
    if (!worker_.joinable()) {
        try {
            worker_ = std::thread([this] { run(); });
        } catch (...) {
            queue_.pop_back();
            throw;
        }
    }
    const std::uint64_t number = given_.load(std::memory_order_relaxed) + 1;
    given_.store(number, std::memory_order_release);
    lock.unlock();
    something_given_.notify_one();
    return number;
}

std::uint64_t HostStream::give_or_do(Work work) {
    const std::uint64_t before = given();
    if (!reached(before)) return give(std::move(work));
    work();
    return before;
}

void HostStream::wait_until(std::uint64_t number) noexcept {
    if (reached(number)) return;
    std::unique_lock lock(mutex_);
    something_done_.wait(lock, [&] { return reached(number); });
}

void HostStream::end_lifetime() noexcept {
    std::unique_lock lock(mutex_);
    if (!worker_.joinable()) return;
    ending_ = true;
    lock.unlock();
    something_given_.notify_one();
    worker_.join();
    // No other thread submits or waits now. The lock is for threads that still poll a number.
    lock.lock();
    worker_ = {};
    ending_ = false;
}

void HostStream::run() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
        something_given_.wait(lock, [&] { return ending_ || !queue_.empty(); });
        if (queue_.empty()) return;
        Work work = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        work();
        work = nullptr;  // destroyed outside the lock, and before the work counts as done
        lock.lock();
        done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        something_done_.notify_all();
    }
}

}  // namespace tensorpool::device
