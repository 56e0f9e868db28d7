#pragma once

#include <cstddef>

#include <tensorpool/growth_policy.hpp>

#include "base/refusal.hpp"
#include "statistics/metrics/arena_metrics.hpp"

namespace tensorpool::arena {

using base::Refusal;

/// Growth by what is needed and no more.
inline constexpr GrowthPolicy no_surplus{.step = 0, .factor = 0.0};

/// The range of addresses of one arena: reserved whole, committed from its front. Whoever calls a
/// function that changes it is alone.
class ArenaMemory {
public:
    explicit ArenaMemory(statistics::ArenaTotals& totals) noexcept : totals_(totals) {}
    ~ArenaMemory();
    ArenaMemory(const ArenaMemory&) = delete;
    ArenaMemory& operator=(const ArenaMemory&) = delete;

    /// Reserves `max_capacity`; for 0 twice the total memory, or an arena's share of the addresses
    /// where many are alive; less where the address space is limited. The range begins at a
    /// multiple of `alignment` and of 2 MiB. False when there is none.
    [[nodiscard]] bool reserve(std::size_t max_capacity, std::size_t alignment) noexcept;

    /// Commits until `end` bytes from the base may be used, and a surplus by the policy. Returns
    /// the bytes committed; 0 when it is refused, and then nothing changed.
    std::size_t grow_to(std::size_t end, const GrowthPolicy& growth, Refusal& refusal) noexcept;
    /// What is committed does not count against the budget until `charge`, and cannot be used: an
    /// arena may be made and never used.
    void charge_later() noexcept;
    bool is_charged() const noexcept { return uncharged_ == 0; }
    /// False when it is refused, and then nothing changed.
    bool charge(Refusal& refusal) noexcept;
    /// Gets the pages of the first `bytes` from the system now; they are committed.
    void touch(std::size_t bytes) noexcept;
    /// Gives back whole pages above `offset`. Returns their bytes.
    std::size_t give_back_above(std::size_t offset) noexcept;

    std::byte* base() const noexcept { return base_; }
    /// Bytes from the base that are committed and may be used: at most the limit.
    std::size_t end() const noexcept {
        if (!is_charged()) return 0;
        return committed_ < limit_ ? committed_ : limit_;
    }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t reserved() const noexcept { return reserved_; }

private:
    std::size_t wanted(std::size_t needed, const GrowthPolicy& growth) const noexcept;
    [[nodiscard]] bool reserve_limit(std::size_t alignment) noexcept;
    [[nodiscard]] bool commit(std::size_t bytes) noexcept;
    void record_charge() noexcept;

    statistics::ArenaTotals& totals_;
    std::byte* base_ = nullptr;
    std::size_t reserved_ = 0;
    std::size_t limit_ = 0;
    const char* limit_name_ = "max_capacity";
    std::size_t committed_ = 0;  // whole pages
    std::size_t uncharged_ = 0;  // all that is committed, or nothing
    bool is_one_of_many_ = false;
};

}  // namespace tensorpool::arena
