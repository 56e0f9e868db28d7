#pragma once

#include <atomic>
#include <memory>
#include <mutex>

namespace tensorpool::device {

/// An object that the first who asks for it makes, while others wait. Where making it throws, the
/// next one tries again.
template <class T>
class MadeOnce {
public:
    template <class Make>
    T& get(Make make) {
        // Acquire: pairs with the release below, so that what was made is seen whole.
        if (T* const made = made_.load(std::memory_order_acquire)) return *made;
        const std::lock_guard guard(mutex_);
        if (owned_ == nullptr) {
            owned_ = make();
            made_.store(owned_.get(), std::memory_order_release);
        }
        return *owned_;
    }
    /// nullptr where nobody has asked yet.
    T* get_if_made() const noexcept { return made_.load(std::memory_order_acquire); }
    /// It is never destroyed.
    void abandon() noexcept { (void)owned_.release(); }

private:
    std::mutex mutex_;
    std::unique_ptr<T> owned_;
    std::atomic<T*> made_{nullptr};
};

}  // namespace tensorpool::device
