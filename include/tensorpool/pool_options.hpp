#pragma once

/// @file
/// What a pool can be told when it is made. All sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <tensorpool/export.hpp>
#include <tensorpool/growth_policy.hpp>

namespace tensorpool {

/// When the pool asks the system for huge pages (2 MiB on Linux x86-64).
enum class HugePages : std::uint8_t {
    /// Never asks.
    never,
    /// The default. Asks for fresh memory that is about to be touched: 2 MiB at a time, where a
    /// bucket that has shown that it grows begins to use them, or where the pool itself touches a
    /// large block (`allocate_prefaulted`). The pool measures what the first touch costs, by
    /// touching a page as soon as a bucket begins to use it. After a dear huge page it asks for
    /// none in the next 256 MiB, and for longer after each further one. Where the kernel gives
    /// pages of 16 KiB to 1 MiB (Linux 6.8; `tensorpool doctor` prints the setting), it asks for
    /// these first and in such pauses. What the process's `malloc` gets by the interposer is not
    /// touched, so nothing is measured there. See perf/results/fresh.md.
    buckets,
    /// Asks where whole 2 MiB pieces will be touched anyway: growing buckets, and large blocks.
    /// `auto` in the environment. Worth a try where the kernel has huge pages at hand.
    automatic,
    /// Asks for all memory that it commits.
    always,
};

/// How much is checked on each call. A pool with checks serves every call on the slow path, out of
/// the same thread caches: some 8 ns a call. A pool without them pays nothing for their existence.
enum class Checks : std::uint8_t {
    /// Only what an unsized `deallocate` looks up anyway.
    off,
    /// Stops with one line on stderr at: a pointer that the pool never gave, an interior pointer,
    /// another pool's block, a block freed twice, a size of another bucket.
    basic,
    /// `basic`, and the size that was asked for is remembered for each block: a sized free with
    /// less than was asked stops too, and so does a pool that is destroyed with blocks in use.
    full,
};

/// On which memory nodes pages are placed. Without effect where the system has one node.
struct NumaPolicy {
    enum class Placement : std::uint8_t {
        /// As the system would: usually the node of the thread that touches a page first.
        system,
        /// All on `node`; fails over to others when it is full.
        prefer,
        /// Page by page in turn over all nodes.
        interleave,
    };
    Placement placement = Placement::system;
    /// For `prefer`: the node's number, from 0.
    unsigned node = 0;
};

/// Whether a thread gives back what a pool does not need while no call does. There is one such
/// thread in the process for all its pools, on Linux alone: `tensorpool-trim`, at the lowest
/// priority, with all signals blocked. It sleeps while nothing is left to give back, a fork leaves
/// it behind and its child starts another, and `allow_background_trimmer(false)` ends it.
enum class BackgroundTrim : std::uint8_t {
    /// No thread. The default.
    off,
    /// `auto` in the environment, and what `tensorpool run` sets. The first call starts the thread
    /// that finds over 64 MiB free in a process with a second thread of its own. They go when they
    /// have been free for a period.
    automatic,
    /// The first call that takes a slow path starts the thread, such as the pool's first growth.
    on,
};

/// How much free memory a pool keeps committed, and for how long. Without `background` no thread
/// watches the clock: giving back happens on later slow paths of the same pool (a growth, a large
/// block, a bucket's exchange with its spans) or by `trim()`, and a process that does nothing gives
/// nothing back.
struct RetentionPolicy {
    /// At most so many free bytes stay committed, beside the small blocks that threads have parked
    /// (4 MiB each at most).
    std::size_t bytes = SIZE_MAX;
    /// What was not needed for a whole period of so many milliseconds goes back at its end. A tenth
    /// of it while memory is short, by the container's limit or the machine's. 0 gives back at
    /// once.
    std::uint32_t milliseconds = 10'000;
    /// Who gives back in a process that does nothing. After a period without any call on the pool
    /// all that is free goes, but what `reserve` prepared.
    BackgroundTrim background = BackgroundTrim::off;
};

/// Something that a pool tells its owner. The strings live as long as the call.
struct PoolEvent {
    enum class Kind : std::uint8_t {
        /// `bytes` more were committed.
        growth,
        /// `bytes` were given back to the system.
        give_back,
        /// A request of `bytes` was met only after free memory had been gathered from all caches.
        pressure,
        /// A request of `bytes` failed.
        failure,
    };
    Kind kind;
    const char* pool;
    std::size_t bytes;
    std::size_t in_use;
    std::size_t capacity;
    /// For `failure`: the limit that was met, in words, such as `max_capacity`; otherwise "".
    const char* limit;
};

/// The default of `PoolOptions::checks`: `basic` when the library was built for debugging
/// (without NDEBUG), otherwise `off`.
TENSORPOOL_API Checks default_checks() noexcept;

/// The global pool reads the same from the environment: TENSORPOOL_INITIAL_CAPACITY,
/// TENSORPOOL_MAX_CAPACITY, TENSORPOOL_MAX_ALLOCATION, TENSORPOOL_GROWTH_STEP,
/// TENSORPOOL_GROWTH_FACTOR, TENSORPOOL_GROWTH_FRACTION, TENSORPOOL_RETAIN_BYTES,
/// TENSORPOOL_RETAIN_MS, TENSORPOOL_RETAIN_BACKGROUND (off, auto, on), TENSORPOOL_HUGE_PAGES
/// (never, buckets, auto, always), TENSORPOOL_NUMA (system, interleave, or a node's number),
/// TENSORPOOL_CHECKS (off, basic, full). Sizes take the suffixes KiB, MiB, GiB, TiB.
///
/// Where the figures of a process lie is told by the environment alone, for all its pools and
/// arenas: TENSORPOOL_STATISTICS=off keeps them private; TENSORPOOL_STATISTICS_DIR=/a/folder puts
/// them in a file there, named by the number of the process, readable by its user only, 16 MiB of
/// which only what is used takes room, and gone when the process ends by itself: for readers in
/// another container. Who may write such a file may end the process.
struct PoolOptions {
    /// Shown in statistics and messages; at most 47 bytes of it are kept.
    std::string name = "pool";
    /// Committed and touched when the pool is made.
    std::size_t initial_capacity = 0;
    /// Bounds capacity, free memory included and records not; 0 means none.
    std::size_t max_capacity = 0;
    /// A larger request throws at once.
    std::size_t max_allocation = std::size_t{8} << 30;
    GrowthPolicy growth = {};
    RetentionPolicy retain = {};
    HugePages huge_pages = HugePages::buckets;
    NumaPolicy numa = {};
    Checks checks = default_checks();
    /// Called on the thread whose request caused it, or on the background trimmer's, outside all
    /// locks of the pool; it may use the pool once the pool's constructor has returned, but events
    /// of those calls are not told. It must not throw. Nothing is ever printed unasked.
    ///
    /// It is not called for what a request to trim from another process gives back (`tensorpool
    /// trim`, TrimRequest): any call of any pool may answer that. The timeline has the event.
    ///
    /// With `RetentionPolicy::background`, a lock that `on_event` takes must not be held while the
    /// pool is destroyed or `allow_background_trimmer(false)` is called: both wait until the
    /// trimmer's thread has left the callback.
    std::function<void(const PoolEvent&)> on_event = {};
};

}  // namespace tensorpool
