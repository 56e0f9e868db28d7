#pragma once

#include <mutex>

namespace tensorpool::base {

/// An object with a lock, which its functions take. A fork takes it too, so that the child finds
/// the object consistent.
class Lockable {
public:
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

protected:
    constexpr Lockable() noexcept = default;
    ~Lockable() = default;

    mutable std::mutex mutex_;
};

}  // namespace tensorpool::base
