#pragma once

#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace tensorpool::testing {

/// Threads that have made `call` and wait until this object ends.
class LivingThreads {
public:
    LivingThreads(std::size_t count, const std::function<void()>& call)
        : begun_(static_cast<std::ptrdiff_t>(count)) {
        for (std::size_t i = 0; i != count; ++i) {
            threads_.emplace_back([this, call] {
                call();
                begun_.count_down();
                over_.wait();
            });
        }
        begun_.wait();
    }
    ~LivingThreads() {
        over_.count_down();
        for (std::thread& thread : threads_) thread.join();
    }
    LivingThreads(const LivingThreads&) = delete;
    LivingThreads& operator=(const LivingThreads&) = delete;

private:
    std::latch begun_;
    std::latch over_{1};
    std::vector<std::thread> threads_;
};

}  // namespace tensorpool::testing
