#pragma once

/// @file
/// What an arena can be told when it is made. All sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <tensorpool/export.hpp>
#include <tensorpool/growth_policy.hpp>
#include <tensorpool/pool_options.hpp>

namespace tensorpool {

/// Who may allocate from an arena.
enum class Sharing : std::uint8_t {
    /// Any number of threads at once: an allocation is one atomic addition.
    any_thread,
    /// The thread that allocates first, and no other: an allocation has no atomic operation. With
    /// checks, another thread's call stops the program with a line on stderr.
    one_thread,
};

/// Something that an arena tells its owner. The strings live as long as the call.
struct ArenaEvent {
    enum class Kind : std::uint8_t {
        /// `bytes` more were committed; of the initial capacity nothing is told.
        growth,
        /// `bytes` were given back to the system.
        give_back,
        /// A request of `bytes` could not be met; the arena is as it was.
        refusal,
    };
    Kind kind;
    const char* arena;
    std::size_t bytes;
    std::size_t used;
    std::size_t capacity;
    /// For `refusal`: the limit that was met, in words, such as `max_capacity`; otherwise "".
    const char* limit;
};

namespace detail {
/// What the environment says of the options below; read once.
struct ArenaDefaults {
    std::size_t initial_capacity = std::size_t{8} << 20;
    std::size_t max_capacity = 0;
    std::size_t max_allocation = std::size_t{8} << 30;
    GrowthPolicy growth = GrowthPolicy::conservative();
    std::size_t retain = SIZE_MAX;
};
TENSORPOOL_API const ArenaDefaults& arena_defaults();
}  // namespace detail

/// What a program does not set, the environment may: TENSORPOOL_ARENA_INITIAL_CAPACITY,
/// TENSORPOOL_ARENA_MAX_CAPACITY, TENSORPOOL_ARENA_MAX_ALLOCATION, TENSORPOOL_ARENA_GROWTH
/// (conservative, aggressive), TENSORPOOL_ARENA_GROWTH_STEP, TENSORPOOL_ARENA_GROWTH_FACTOR,
/// TENSORPOOL_ARENA_GROWTH_FRACTION, TENSORPOOL_ARENA_RETAIN. Sizes take the suffixes KiB, MiB,
/// GiB, TiB. A value that makes no sense is told on stderr, and the default below is used.
struct ArenaOptions {
    /// Shown in statistics and messages; at most 47 bytes of it are kept.
    std::string name = "arena";
    /// Committed when the arena is made, though not touched, and counted against what the process
    /// may commit from the first allocation on; at most max_capacity, which wins where it is less.
    /// Default: 8 MiB.
    std::size_t initial_capacity = detail::arena_defaults().initial_capacity;
    /// Address space that is reserved, and so the most that it may grow to; 0: twice the total
    /// memory, or less where many such arenas are alive, for the n-th of them at most 6 TiB / n
    /// (`Arena::reserved()` tells). Under RLIMIT_AS at most a quarter of the address space that is
    /// left.
    std::size_t max_capacity = detail::arena_defaults().max_capacity;
    /// A larger request throws at once. Default: 8 GiB.
    std::size_t max_allocation = detail::arena_defaults().max_allocation;
    /// Every block begins at a multiple of it and takes a multiple of it; a power of two. One below
    /// 64 packs small blocks that are asked for with a small alignment, such as the nodes of
    /// containers (ArenaResource); all others then leave the fast path.
    std::size_t alignment = 64;
    /// Default: GrowthPolicy::conservative().
    GrowthPolicy growth = detail::arena_defaults().growth;
    /// Of what a release leaves free, so much capacity in all stays committed; the rest is given
    /// back to the system. Default: everything stays.
    std::size_t retain = detail::arena_defaults().retain;
    Sharing sharing = Sharing::any_thread;
    /// Keeps a register of the objects that `Arena::record` is told of.
    bool objects = false;
    /// `basic` and `full` are the same here; see Sharing::one_thread.
    Checks checks = default_checks();
    /// Called on the thread whose call caused it, outside all locks of the arena. It must not throw
    /// and must not use the arena. Nothing is ever printed unasked.
    std::function<void(const ArenaEvent&)> on_event = {};
};

}  // namespace tensorpool
