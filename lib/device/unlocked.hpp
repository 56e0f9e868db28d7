#pragma once

#include <condition_variable>
#include <mutex>

namespace tensorpool::device {

/// Releases a mutex that the calling thread holds, until the end of the scope.
class Unlocked {
public:
    explicit Unlocked(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~Unlocked() { mutex_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    std::mutex& mutex_;
};

/// Waits for one notification; releases the mutex, which the calling thread holds, for the wait.
inline void wait_unlocked(std::condition_variable& changed, std::mutex& mutex) {
    std::unique_lock lock(mutex, std::adopt_lock);
    changed.wait(lock);
    lock.release();
}

/// Waits until `is_over` returns true; releases the mutex, which the calling thread holds, for the
/// wait.
template <class Condition>
void wait_unlocked(std::condition_variable& changed, std::mutex& mutex, Condition is_over) {
    std::unique_lock lock(mutex, std::adopt_lock);
    changed.wait(lock, is_over);
    lock.release();
}

}  // namespace tensorpool::device
