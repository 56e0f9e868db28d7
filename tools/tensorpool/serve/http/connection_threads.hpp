#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensorpool::command::serve {

/// A thread for each connection that may be open at once. Any thread.
class ConnectionThreads {
public:
    explicit ConnectionThreads(std::size_t count);
    /// After what was begun has been done.
    ~ConnectionThreads();
    ConnectionThreads(const ConnectionThreads&) = delete;
    ConnectionThreads& operator=(const ConnectionThreads&) = delete;

    /// False, at once, where all threads are taken: what holds them may be streams without end, so
    /// nothing waits its turn.
    bool begin(std::function<void()> work);

private:
    bool take(std::function<void()>& work);
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> begun_;
    std::size_t free_;  ///< threads without work, begun or done
    bool stopped_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tensorpool::command::serve
