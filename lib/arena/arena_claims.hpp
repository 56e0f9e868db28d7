#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/arena.hpp>

#include "arena/arena_state.hpp"

namespace tensorpool::detail {

/// The allocations of an arena that its inline path does not finish: claims that passed the end,
/// and requests that it leaves alone. Grows the arena for them. ArenaState describes claims.
class ArenaClaims {
public:
    explicit ArenaClaims(Arena& arena) noexcept : arena_(arena), state_(*arena.state_) {}

    /// Returns a block, or nullptr with the reason in `refusal`.
    void* allocate(std::size_t bytes, std::size_t alignment, base::Refusal& refusal) noexcept;
    /// Does the same for a request whose claim passed the end.
    void* settle(std::uint64_t claim, std::size_t bytes, base::Refusal& refusal) noexcept;
    struct Growth {
        bool is_met = false;
        std::size_t bytes = 0;  // committed for it
    };
    /// Grows until `end` bytes may be used. Under the mutex.
    Growth grow_to(std::size_t end, const GrowthPolicy& growth, base::Refusal& refusal) noexcept;
    /// Outside of it: tells the arena's owner.
    void tell(Growth growth) const noexcept;
    /// Moves the top from `seen`. False, with `seen` brought up to date, if it was another.
    bool replace_top(std::uint64_t& seen, std::uint64_t top) noexcept;

private:
    struct Range {
        std::size_t begin;
        std::size_t end;
    };

    void* recorded(void* block, std::size_t bytes, std::size_t alignment) const noexcept;
    void* find_range(std::size_t bytes, std::size_t alignment, base::Refusal& refusal) noexcept;
    void* granted(std::uint64_t claim, std::size_t bytes, base::Refusal& refusal) noexcept;
    Range range_at(std::size_t top, std::size_t bytes, std::size_t alignment) const noexcept;
    bool make_room(std::size_t end, std::uint64_t seen, base::Refusal& refusal) noexcept;

    Arena& arena_;
    ArenaState& state_;
};

}  // namespace tensorpool::detail
