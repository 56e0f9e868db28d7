#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "platform/platform.hpp"

namespace tensorpool::statistics {

/// Records from the system, never from malloc, which may be served by us. One that came back is
/// handed out again as it is and its memory stays one of this type for ever, so that a late look at
/// its mutex or its owner does no harm. `T` has a `T* next_free`. Thread-safe.
template <class T>
class SlabList {
public:
    constexpr SlabList() noexcept = default;
    SlabList(const SlabList&) = delete;
    SlabList& operator=(const SlabList&) = delete;

    /// nullptr when the system has no memory. Default-made when it is handed out for the first
    /// time.
    T* take() noexcept {
        const std::lock_guard guard(mutex_);
        if (free_ != nullptr) return std::exchange(free_, free_->next_free);
        if (end_ - next_ < static_cast<std::ptrdiff_t>(sizeof(T)) && !add_slab()) return nullptr;
        T* const record = new (next_) T();
        next_ += sizeof(T);
        return record;
    }
    void give_back(T& record) noexcept {
        const std::lock_guard guard(mutex_);
        record.next_free = std::exchange(free_, &record);
    }

    /// Around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    // What is not used yet is not touched either.
    static constexpr std::size_t slab_bytes = std::size_t{64} << 10;

    bool add_slab() noexcept {
        void* const slab = platform::map(slab_bytes, platform::page_bytes());
        if (slab == nullptr) return false;
        next_ = static_cast<std::byte*>(slab);
        end_ = next_ + slab_bytes;
        return true;
    }

    std::mutex mutex_;
    // Below: under mutex_.
    T* free_ = nullptr;
    std::byte* next_ = nullptr;
    std::byte* end_ = nullptr;
};

}  // namespace tensorpool::statistics
