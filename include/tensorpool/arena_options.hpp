#pragma once

/// @file
/// The options of an arena. All sizes are bytes.

#include <tensorpool/pool_options.hpp>

namespace tensorpool {

/// Which threads may allocate from an arena.
enum class Sharing : std::uint8_t {
    /// Any number of threads at once. An allocation is one atomic addition.
    any_thread,
    /// Only the thread that allocates first. An allocation needs no atomic operation. With checks,
    /// a call by another thread stops the program with a line on stderr.
    one_thread,
};

/// An event that an arena reports to ArenaOptions::on_event. Its strings are valid during the call.
struct ArenaEvent {
    /// What happened.
    enum class Kind : std::uint8_t {
        /// `bytes` more were committed. The initial capacity is not reported.
        growth,
        /// `bytes` were given back to the system.
        give_back,
        /// A request of `bytes` bytes failed. The arena is unchanged.
        refusal,
    };
    /// What happened.
    Kind kind;
    /// The arena's name.
    const char* arena;
    /// The bytes that the event is about; see Kind.
    std::size_t bytes;
    /// The bytes in use at that time.
    std::size_t used;
    /// The bytes committed at that time.
    std::size_t capacity;
    /// For `refusal`, the limit that was met, such as "max_capacity"; otherwise "".
    const char* limit;
};

namespace detail {
/// The values of the options below that the environment sets; read once.
struct ArenaDefaults {
    std::size_t initial_capacity = std::size_t{8} << 20;
    std::size_t max_capacity = 0;
    std::size_t max_allocation = std::size_t{8} << 30;
    GrowthPolicy growth = GrowthPolicy::conservative();
    std::size_t retain = SIZE_MAX;
};
TENSORPOOL_API const ArenaDefaults& arena_defaults();
}  // namespace detail

/// The options of an arena. Defaults come from the environment where it sets them:
/// TENSORPOOL_ARENA_INITIAL_CAPACITY, TENSORPOOL_ARENA_MAX_CAPACITY,
/// TENSORPOOL_ARENA_MAX_ALLOCATION, TENSORPOOL_ARENA_GROWTH (conservative, doubling, aggressive),
/// TENSORPOOL_ARENA_GROWTH_STEP, TENSORPOOL_ARENA_GROWTH_FACTOR, TENSORPOOL_ARENA_GROWTH_FRACTION,
/// TENSORPOOL_ARENA_RETAIN. Sizes accept the suffixes KiB, MiB, GiB and TiB. An invalid value is
/// reported on stderr, and the default below is used.
struct ArenaOptions {
    /// The name shown in statistics and messages. At most 47 bytes of it are kept.
    std::string name = "arena";
    /// The memory committed when the arena is made. It is not touched, and it counts against what
    /// the process may commit only from the first allocation on. `max_capacity` wins if it is less.
    /// Default: 8 MiB.
    std::size_t initial_capacity = detail::arena_defaults().initial_capacity;
    /// The address space to reserve, which is also the limit of the arena's capacity.
    ///
    /// 0, the default, means twice the total memory. If many such arenas are alive, the n-th of
    /// them gets at most 6 TiB / n, and under RLIMIT_AS at most a quarter of the address space that
    /// is left. `Arena::reserved()` returns the result.
    std::size_t max_capacity = detail::arena_defaults().max_capacity;
    /// The budget to which the arena charges its capacity, the initial one from the first
    /// allocation on; nullptr for none. It may end before the arena.
    Budget* budget = nullptr;
    /// The limit for one request; a larger one throws at once. Default: 8 GiB.
    std::size_t max_allocation = detail::arena_defaults().max_allocation;
    /// The alignment of every block, a power of two. Block sizes are rounded up to a multiple of
    /// it.
    ///
    /// A value below 64 packs small blocks that are requested with a small alignment, such as the
    /// nodes of containers (ArenaResource). Requests with a larger alignment then take the slow
    /// path.
    std::size_t alignment = 64;
    /// How the arena grows. Default: GrowthPolicy::conservative().
    GrowthPolicy growth = detail::arena_defaults().growth;
    /// The capacity that stays committed after a release. Free memory above it is given back to the
    /// system. Default: all of it stays.
    std::size_t retain = detail::arena_defaults().retain;
    /// Which threads may allocate.
    Sharing sharing = Sharing::any_thread;
    /// Whether the arena keeps a register of the objects that `Arena::record` and
    /// `Arena::allocate_object` describe. Without one, these throw std::logic_error.
    bool objects = false;
    /// How much each call is checked; see Sharing::one_thread and Arena::hold. `basic` and `full`
    /// are the same here. With `hardened`, each block has 8 bytes more, which are checked at its
    /// release, and released memory is filled with zeros, which are checked when it is allocated
    /// again.
    Checks checks = default_checks();
    /// A function to call for each event; may be empty. It runs on the thread whose call caused the
    /// event, outside all locks of the arena. It must not throw and must not use the arena. Without
    /// it, nothing is printed.
    std::function<void(const ArenaEvent&)> on_event = {};
};

}  // namespace tensorpool
