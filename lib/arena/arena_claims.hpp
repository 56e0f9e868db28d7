#pragma once

#include "arena/arena_state.hpp"

namespace tensorpool::detail {

/// Serves the allocations that the inline path of an arena does not finish: claims that passed the
/// end, and requests that the inline path does not take. Grows the arena for them. ArenaState
/// describes claims.
class ArenaClaims {
public:
    explicit ArenaClaims(Arena& arena) noexcept : arena_(arena), state_(*arena.state_) {}

    /// Allocates `bytes` bytes. Returns nullptr, with the reason in `attempt`, if that fails.
    void* allocate(std::size_t bytes, std::size_t alignment, arena::Attempt& attempt) noexcept;
    /// Settles a `claim` of `bytes` bytes that passed the end: returns its block, or nullptr with
    /// the reason in `attempt`.
    void* settle(std::uint64_t claim, std::size_t bytes, arena::Attempt& attempt) noexcept;
    struct Growth {
        bool is_met = false;
        std::size_t bytes = 0;  // committed for the growth
    };
    /// Grows until `end` bytes may be used. REQUIRES: the caller holds the mutex.
    Growth grow_to(std::size_t end, const GrowthPolicy& growth, arena::Attempt& attempt) noexcept;
    /// Notifies the arena's owner of a growth. REQUIRES: the caller does not hold the mutex.
    void notify(Growth growth) const noexcept {
        if (growth.bytes != 0) state_.notify(ArenaEvent::Kind::growth, growth.bytes);
    }
    /// Replaces the top `seen` by `top`. Returns false, with `seen` updated, if the top was another
    /// value.
    bool replace_top(std::uint64_t& seen, std::uint64_t top) noexcept;

private:
    struct Range {
        std::size_t begin;
        std::size_t end;
    };

    void count() const noexcept;
    void* recorded(void* block, std::size_t bytes, std::size_t alignment) const noexcept;
    void* find_range(std::size_t bytes, std::size_t alignment, arena::Attempt& attempt) noexcept;
    void* granted(std::uint64_t claim, std::size_t bytes, arena::Attempt& attempt) noexcept;
    Range range_at(std::size_t top, std::size_t bytes, std::size_t alignment) const noexcept;
    bool make_room(std::size_t end, std::uint64_t seen, arena::Attempt& attempt) noexcept;

    Arena& arena_;
    ArenaState& state_;
};

}  // namespace tensorpool::detail
