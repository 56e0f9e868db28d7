#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tensorpool::testing {

/// A thread that runs the tasks it is given, one after another, until this object is destroyed.
class Worker {
public:
    Worker() : thread_([this] { run(); }) {}
    ~Worker() {
        do_task(nullptr);
        thread_.join();
    }
    template <class Function>
    void does(Function function) {
        const std::function<void()> task = function;
        do_task(&task);
    }

private:
    void do_task(const std::function<void()>* task) {
        std::unique_lock lock(mutex_);
        task_ = task;
        waiting_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !waiting_; });
    }
    void run() {
        std::unique_lock lock(mutex_);
        for (bool more = true; more;) {
            changed_.wait(lock, [this] { return waiting_; });
            more = task_ != nullptr;
            if (more) (*task_)();
            waiting_ = false;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* task_ = nullptr;
    bool waiting_ = false;
    std::thread thread_;
};

}  // namespace tensorpool::testing
