#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensorpool::command::serve {

/// One thread for each connection that may be open at once. All functions may be called from any
/// thread.
class ConnectionThreads {
public:
    explicit ConnectionThreads(std::size_t count);
    /// Finishes the work that was begun, then ends the threads.
    ~ConnectionThreads();
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;

    /// Runs `work` on a free thread. Returns false if all threads are taken for as long as
    /// `patience`: they may serve endless streams, so work is never queued.
    bool begin(std::function<void()> work, std::chrono::milliseconds patience = {});

private:
    bool take(std::function<void()>& work);
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable freed_;
    std::deque<std::function<void()>> begun_;
    std::size_t free_;  ///< threads without assigned work
    bool stopped_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tensorpool::command::serve
