#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "statistics/segment/folded_words.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

class CounterSlots;

/// Where one pool's figures lie: in the segment, or where that has no place left in memory of their
/// own, from where they are added up under `other` now and then.
class PoolPlace {
public:
    PoolPlace(std::string_view name, std::uint64_t limit_bytes) noexcept;
    PoolPlace(PoolPlace&& other) noexcept
        : alone_(std::exchange(other.alone_, nullptr)),
          record_(std::exchange(other.record_, nullptr)) {}
    ~PoolPlace();
    PoolPlace(const PoolPlace&) = delete;
    PoolPlace& operator=(const PoolPlace&) = delete;

    /// False when there is no memory for the record: nothing else may then be called.
    explicit operator bool() const noexcept { return record_ != nullptr; }
    PoolRecord& record() const noexcept { return *record_; }
    PoolTotals& totals() const noexcept { return record_->totals; }
    bool is_in_segment() const noexcept { return alone_ == nullptr; }

    /// For a pool without a place: adds its figures up under `other`. Cheap for any other. Under a
    /// lock of its own; any thread.
    void fold(const CounterSlots& slots) noexcept {
        if (alone_ != nullptr) [[unlikely]]
            fold_slow(slots);
    }

    /// Around a fork.
    void lock() noexcept;
    void unlock() noexcept;

private:
    struct Alone;
    void fold_slow(const CounterSlots& slots) noexcept;

    Alone* alone_ = nullptr;
    PoolRecord* record_ = nullptr;
};

}  // namespace tensorpool::statistics
