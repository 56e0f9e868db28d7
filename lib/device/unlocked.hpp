#pragma once

#include <condition_variable>
#include <mutex>

namespace tensorpool::device {

/// Lets go of a mutex that the calling thread holds, until the end of the scope.
class Unlocked {
public:
    explicit Unlocked(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~Unlocked() { mutex_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    std::mutex& mutex_;
};

/// Waits for one notice, without the mutex that the calling thread holds.
inline void wait_unlocked(std::condition_variable& changed, std::mutex& mutex) {
    std::unique_lock lock(mutex, std::adopt_lock);
    changed.wait(lock);
    lock.release();
}

/// Waits until `is_over` holds, without the mutex that the calling thread holds.
template <class Condition>
void wait_unlocked(std::condition_variable& changed, std::mutex& mutex, Condition is_over) {
    std::unique_lock lock(mutex, std::adopt_lock);
    changed.wait(lock, is_over);
    lock.release();
}

}  // namespace tensorpool::device
