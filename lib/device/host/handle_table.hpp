#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace tensorpool::device {

/// A table of objects that callers refer to by handle. A handle consists of a slot's number and the
/// count of the slot's uses, so any invalid value that a caller passes is recognized. Objects are
/// made once, never move, and live as long as the table. A thread that still uses an object whose
/// handle ended therefore accesses a valid object, which may have another handle by then.
template <class T, class Handle>
class HandleTable {
public:
    HandleTable() noexcept = default;
    ~HandleTable() {
        for (const std::atomic<Slot*>& chunk : chunks_) {
            delete[] chunk.load(std::memory_order_relaxed);  // no other thread uses the table now
        }
    }
    HandleTable(const HandleTable&) = delete;
    HandleTable& operator=(const HandleTable&) = delete;

    /// Returns the object, or nullptr if the value is not a valid handle. Takes no lock.
    T* find(Handle handle) const noexcept {
        const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
        const std::uintptr_t number = (value & number_mask) - 1;
        // Acquire: pairs with the release in `take_slot`, so that the slot's chunk is visible.
        if (number >= count_.load(std::memory_order_acquire)) return nullptr;
        Slot& slot = slot_at(number);
        const std::uintptr_t uses = value >> number_bits;
        // Acquire: pairs with the release in `add`, so that the prepared object is visible.
        const bool lives = slot.uses.load(std::memory_order_acquire) == uses && uses % 2 != 0;
        return lives ? &slot.object : nullptr;
    }

    /// Returns a new handle for an unused object, after calling `prepare` with the object. Throws
    /// std::bad_alloc or what `prepare` throws, and then changes nothing.
    template <class Prepare>
    Handle add(Prepare prepare) {
        const std::uintptr_t number = take_slot();
        Slot& slot = slot_at(number);
        try {
            prepare(slot.object);
        } catch (...) {
            give_slot_back(number);
            throw;
        }
        // Relaxed: no other thread changes it while the slot has no handle.
        const std::uintptr_t uses = next(slot.uses.load(std::memory_order_relaxed));
        slot.uses.store(uses, std::memory_order_release);
        return handle_of(number, uses);
    }

    /// Ends the handle. Returns false if it is invalid; of several threads that try, one succeeds.
    /// The object is not used again until `recycle`.
    bool end(Handle handle) noexcept {
        if (find(handle) == nullptr) return false;
        const std::uintptr_t value = reinterpret_cast<std::uintptr_t>(handle);
        std::uintptr_t uses = value >> number_bits;
        return slot_at((value & number_mask) - 1)
            .uses.compare_exchange_strong(uses, next(uses), std::memory_order_acq_rel);
    }
    /// Allows the object to get a new handle. REQUIRES: `end` of this handle succeeded.
    void recycle(Handle ended) noexcept {
        give_slot_back((reinterpret_cast<std::uintptr_t>(ended) & number_mask) - 1);
    }

    /// Calls `visit` for each object ever made, with a handle or without.
    template <class Visit>
    void for_each(Visit visit) {
        const std::uintptr_t count = count_.load(std::memory_order_acquire);
        for (std::uintptr_t number = 0; number < count; ++number) visit(slot_at(number).object);
    }

private:
    struct Slot {
        T object;
        std::atomic<std::uintptr_t> uses{0};  // odd: the slot has a handle
    };
    static constexpr unsigned number_bits = sizeof(std::uintptr_t) * CHAR_BIT / 2;
    static constexpr std::uintptr_t number_mask = (std::uintptr_t{1} << number_bits) - 1;
    // Chunk k holds first << k slots, so that few chunks suffice for many slots.
    static constexpr std::uintptr_t first = 16;

    static unsigned chunk_of(std::uintptr_t number) noexcept {
        return static_cast<unsigned>(std::bit_width(number / first + 1)) - 1;
    }
    static std::uintptr_t begin_of(unsigned chunk) noexcept {
        return first * ((std::uintptr_t{1} << chunk) - 1);
    }
    Slot& slot_at(std::uintptr_t number) const noexcept {
        const unsigned chunk = chunk_of(number);
        // Relaxed: the caller read `count_` with acquire, or got the number from such a thread.
        return chunks_[chunk].load(std::memory_order_relaxed)[number - begin_of(chunk)];
    }
    /// The next count of uses, within the bits of a handle. After the last comes 0, also even.
    static std::uintptr_t next(std::uintptr_t uses) noexcept { return (uses + 1) & number_mask; }
    static Handle handle_of(std::uintptr_t number, std::uintptr_t uses) noexcept {
        return reinterpret_cast<Handle>((uses << number_bits) | (number + 1));
    }

    std::uintptr_t take_slot() {
        const std::lock_guard guard(mutex_);
        if (!free_.empty()) {
            const std::uintptr_t number = free_.back();
            free_.pop_back();
            return number;
        }
        const std::uintptr_t number = count_.load(std::memory_order_relaxed);
        const unsigned chunk = chunk_of(number);
        if (chunk >= chunks_.size()) throw std::bad_alloc();
        free_.reserve(number + 1);  // so that give_slot_back never allocates
        if (number == begin_of(chunk)) {
            chunks_[chunk].store(new Slot[first << chunk], std::memory_order_relaxed);
        }
        count_.store(number + 1, std::memory_order_release);
        return number;
    }
    void give_slot_back(std::uintptr_t number) noexcept {
        const std::lock_guard guard(mutex_);
        free_.push_back(number);
    }

    std::array<std::atomic<Slot*>, number_bits - 5> chunks_{};
    std::atomic<std::uintptr_t> count_{0};
    std::mutex mutex_;  // guards `free_`, and the addition of chunks
    std::vector<std::uintptr_t> free_;
};

}  // namespace tensorpool::device
