#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// A thread that takes one round per period while this object exists.
class Rounds {
public:
    static constexpr std::chrono::milliseconds usual_period{1000};

    explicit Rounds(Watcher& watcher, std::chrono::milliseconds period = usual_period);
    ~Rounds();
    Rounds(const Rounds&) = delete;
    Rounds& operator=(const Rounds&) = delete;

private:
    void run(std::chrono::milliseconds period);

    Watcher& watcher_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopped_ = false;
    std::thread thread_;
};

}  // namespace tensorpool::command::serve
