#include "serve/http/connection_threads.hpp"

#include <utility>

namespace tensorpool::command::serve {

ConnectionThreads::ConnectionThreads(std::size_t count) : free_(count) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
}

ConnectionThreads::~ConnectionThreads() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool ConnectionThreads::begin(std::function<void()> work, std::chrono::milliseconds patience) {
    {
        std::unique_lock lock(mutex_);
        if (!freed_.wait_for(lock, patience, [this] { return free_ != 0; })) return false;
        --free_;
        begun_.push_back(std::move(work));
    }
    changed_.notify_one();
    return true;
}

bool ConnectionThreads::take(std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || !begun_.empty(); });
    if (begun_.empty()) return false;
    work = std::move(begun_.front());
    begun_.pop_front();
    return true;
}

void ConnectionThreads::run() {
    for (std::function<void()> work; take(work);) {
        work();
        {
            const std::lock_guard lock(mutex_);
            ++free_;
        }
        freed_.notify_one();
    }
}

}  // namespace tensorpool::command::serve
