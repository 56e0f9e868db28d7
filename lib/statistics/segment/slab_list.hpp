#pragma once

#include <new>
#include <utility>

#include "base/lockable.hpp"
#include "platform/platform.hpp"

namespace tensorpool::statistics {

/// A list of free objects of type `T`. Memory comes from the system and never from malloc, which
/// this library may serve. A returned object is given out again as it is, and its memory is never
/// reused for another type. Late accesses to its mutex or owner are therefore harmless. `T` has a
/// member `T* next_free`. Thread-safe.
template <class T>
class SlabList : public base::Lockable {
public:
    constexpr SlabList() noexcept = default;

    /// Returns an object, default-constructed when it is given out for the first time. Returns
    /// nullptr if the system has no memory.
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

private:
    // Memory that is not used yet is not touched.
    static constexpr std::size_t slab_bytes = std::size_t{64} << 10;

    bool add_slab() noexcept {
        static_assert(sizeof(T) <= slab_bytes);
        void* const slab = platform::map(slab_bytes, platform::page_bytes());
        if (slab == nullptr) return false;
        next_ = static_cast<std::byte*>(slab);
        end_ = next_ + slab_bytes;
        return true;
    }

    // Guarded by mutex_:
    T* free_ = nullptr;
    std::byte* next_ = nullptr;
    std::byte* end_ = nullptr;
};

}  // namespace tensorpool::statistics
