#pragma once

/// @file
/// The options of a pool. All sizes are bytes.

#include <cstdint>
#include <functional>
#include <string>

#include <tensorpool/export.hpp>
#include <tensorpool/growth_policy.hpp>

namespace tensorpool {

class Budget;

/// When the pool requests huge pages from the system (2 MiB on Linux x86-64).
enum class HugePages : std::uint8_t {
    /// The pool never requests huge pages.
    never,
    /// The default: requests huge pages for fresh memory that is about to be touched.
    ///
    /// A request covers 2 MiB. It is made when a bucket that has shown that it grows begins to use
    /// them, or when the pool itself touches a large block (`allocate_prefaulted`). The pool
    /// measures the cost of the first touch by touching a page as soon as a bucket begins to use
    /// it. After an expensive huge page it requests none for the next 256 MiB, and for longer after
    /// each further one. If the kernel provides pages of 16 KiB to 1 MiB (Linux 6.8; `tensorpool
    /// doctor` prints the setting), the pool requests these first, and during such pauses. Memory
    /// that the interposer serves as the process's `malloc` is not touched, so nothing is measured
    /// there. See perf/results/fresh.md.
    buckets,
    /// Requests huge pages where whole 2 MiB pieces will be touched anyway: for growing buckets and
    /// large blocks. Its name in the environment is `auto`. Worth a try if the kernel has free huge
    /// pages.
    automatic,
    /// Requests huge pages for all memory that the pool commits.
    always,
};

/// How much misuse is stopped. `basic`, `full` and `hardened` check every call: the pool then
/// serves all calls on the slow path, which costs some 8 ns a call for the first two. `sampled`
/// checks some blocks completely and is meant for production.
enum class Checks : std::uint8_t {
    /// Only what a `deallocate` without size looks up anyway.
    off,
    /// Stops the program with one line on stderr for a pointer that the pool never returned, a
    /// pointer into a block, another pool's block, a block freed twice, and a size of another
    /// bucket.
    basic,
    /// Like `basic`, and the pool also remembers the requested size of each block. A sized free
    /// with a smaller size stops the program, and so does destroying a pool with blocks in use.
    full,
    /// Like `off`, but some blocks are guarded.
    ///
    /// A guarded block ends at a page that may not be accessed, becomes inaccessible when it is
    /// freed, and is not reused soon. An access beyond it or after its free stops the program with
    /// a
    /// report that has the stacks of its allocation and its free. Guards take at most
    /// `PoolOptions::guard_share` of each thread's time, and at most 1,024 blocks are guarded at
    /// once. It installs handlers for SIGSEGV and SIGBUS, which pass on what is not the pool's.
    sampled,
    /// Like `full`, and every block is protected.
    ///
    /// Writes behind the requested bytes and into free blocks are found at the latest when the
    /// block
    /// is freed or reused. Freed blocks wait in a quarantine, small blocks are handed out in random
    /// order, and spans and large blocks lie between pages that may not be accessed. A sized free
    /// must state exactly the requested bytes, which `usable_size` returns too. It installs
    /// handlers
    /// for SIGSEGV and SIGBUS, which pass on what is not the pool's.
    hardened,
};

/// On which memory nodes pages are placed. It has no effect if the system has one node.
struct NumaPolicy {
    /// The rule of placement.
    enum class Placement : std::uint8_t {
        /// As the system decides: usually on the node of the thread that touches a page first.
        system,
        /// All on `node`, and on others if that is full.
        prefer,
        /// Page by page in turn over all nodes.
        interleave,
    };
    /// The rule of placement.
    Placement placement = Placement::system;
    /// For `prefer`, the number of the node, counted from 0.
    unsigned node = 0;
};

/// Whether a background thread gives back a pool's unneeded memory while no call does.
///
/// The process has one such thread for all its pools, on Linux only: `tensorpool-trim`, at the
/// lowest priority and with all signals blocked. It sleeps while nothing is left to give back. No
/// allocation and no free starts it: the C library may make them while it holds locks that the
/// start of a thread needs. `allow_background_trimmer(false)` ends it.
enum class BackgroundTrim : std::uint8_t {
    /// No thread; the default.
    off,
    /// Under `tensorpool run`, the thread starts when the program creates its first thread.
    /// Elsewhere it starts when a pool with this option is made in a process that has created a
    /// thread, and in `allow_background_trimmer(true)`. The child of a fork starts it likewise.
    ///
    /// The thread gives memory back while over 64 MiB are free.
    ///
    /// Its name in the environment is `auto`, and `tensorpool run` sets it.
    automatic,
    /// The thread starts when the pool is made, and in the child of a fork. If the environment says
    /// `on` for the global pool, it starts when the library is loaded.
    on,
};

/// How much free memory a pool keeps committed, and for how long.
///
/// Without `background` no thread watches the clock. Memory is then given back by `trim()` and on
/// later slow paths of the same pool: a growth, a large block, a bucket's exchange with its spans.
/// A process that makes no call gives nothing back.
struct RetentionPolicy {
    /// The free bytes that may stay committed, besides the small blocks that threads have parked
    /// (at most 4 MiB for each processor and 64 KiB for each thread).
    std::size_t bytes = SIZE_MAX;
    /// The length of a period. Memory that was not needed for a whole period is given back at its
    /// end. The period is a tenth as long while memory is short, by the container's limit or the
    /// machine's. 0 gives memory back at once.
    std::uint32_t milliseconds = 10'000;
    /// Whether a background thread gives memory back while no call does. After a period without any
    /// call on the pool it gives back all free memory, except what `reserve` prepared.
    BackgroundTrim background = BackgroundTrim::off;
};

/// An event that a pool reports to PoolOptions::on_event. Its strings are valid during the call.
struct PoolEvent {
    /// What happened.
    enum class Kind : std::uint8_t {
        /// `bytes` more were committed.
        growth,
        /// `bytes` were given back to the system.
        give_back,
        /// A request of `bytes` bytes was met only after free memory had been gathered from all
        /// caches.
        pressure,
        /// A request of `bytes` bytes failed.
        failure,
    };
    /// What happened.
    Kind kind;
    /// The pool's name.
    const char* pool;
    /// The bytes that the event is about; see Kind.
    std::size_t bytes;
    /// The bytes in use at that time.
    std::size_t in_use;
    /// The bytes committed at that time.
    std::size_t capacity;
    /// For `failure`, the limit that was met, such as "max_capacity"; otherwise "".
    const char* limit;
};

/// Returns the default of PoolOptions::checks: `basic` if the library was built for debugging
/// (without NDEBUG), otherwise `off`.
TENSORPOOL_API Checks default_checks() noexcept;

/// The options of a pool.
///
/// The global pool reads them from the environment: TENSORPOOL_INITIAL_CAPACITY,
/// TENSORPOOL_MAX_CAPACITY, TENSORPOOL_MAX_ALLOCATION, TENSORPOOL_GROWTH_STEP,
/// TENSORPOOL_GROWTH_FACTOR, TENSORPOOL_GROWTH_FRACTION, TENSORPOOL_RETAIN_BYTES,
/// TENSORPOOL_RETAIN_MS, TENSORPOOL_RETAIN_BACKGROUND (off, auto, on), TENSORPOOL_HUGE_PAGES
/// (never, buckets, auto, always), TENSORPOOL_NUMA (system, interleave, or a node's number),
/// TENSORPOOL_CHECKS (off, basic, full, sampled, hardened), TENSORPOOL_GUARD_SHARE,
/// TENSORPOOL_QUARANTINE_BYTES. Sizes accept the suffixes KiB, MiB, GiB and TiB. With
/// TENSORPOOL_ON_MISUSE=report, all pools and arenas report misuse on stderr and go on where that
/// is safe, instead of stopping the program.
///
/// TENSORPOOL_BUDGETS=FILE sets budgets (budget.hpp) for a program that makes none. Each line of
/// the file names what it limits, such as `pool cache hard=2GiB soft=1GiB`, `scope loader
/// hard=512MiB` or `process hard=4GiB`; a # begins a comment. All pools of that name without a
/// budget of their own charge their capacity to it. A StatisticsScope of that name charges what its
/// thread allocates from pools without a budget, like a BudgetScope, if it ends on its own thread.
/// The budget of the process limits the sum of the others in the file. The file is read when the
/// first pool is set up or the first scope begins; bad lines are reported on stderr and ignored
/// (check_budget_file).
///
/// Only the environment decides where the statistics of a process lie, for all its pools and
/// arenas. TENSORPOOL_STATISTICS=off keeps them private. TENSORPOOL_STATISTICS_DIR=/a/folder puts
/// them into a file in that folder, for readers in another container. The file is named by the
/// process's number and readable by its user only. It is 16 MiB long, of which only the used part
/// takes space, and it is removed when the process ends normally. A process that may write such a
/// file can crash its owner.
struct PoolOptions {
    /// The name shown in statistics and messages. At most 47 bytes of it are kept.
    std::string name = "pool";
    /// The memory committed and touched when the pool is made.
    std::size_t initial_capacity = 0;
    /// The limit of the capacity, which includes free memory but not the pool's records. 0 means no
    /// limit.
    std::size_t max_capacity = 0;
    /// The budget to which the pool charges its capacity; nullptr for none. It may end before the
    /// pool.
    Budget* budget = nullptr;
    /// The limit for one request; a larger one throws at once. Default: 8 GiB.
    std::size_t max_allocation = std::size_t{8} << 30;
    /// How the pool grows.
    GrowthPolicy growth = {};
    /// How much free memory the pool keeps, and for how long.
    RetentionPolicy retain = {};
    /// When the pool requests huge pages.
    HugePages huge_pages = HugePages::buckets;
    /// On which memory nodes the pool's pages are placed.
    NumaPolicy numa = {};
    /// How much misuse is stopped.
    Checks checks = default_checks();
    /// With `Checks::sampled`: the part of each thread's time that guards may take, from 0 to 1.
    double guard_share = 0.01;
    /// With `Checks::hardened`: the bytes of freed blocks that wait before they are reused.
    std::size_t quarantine_bytes = std::size_t{8} << 20;
    /// A function to call for each event; may be empty. Without it, nothing is printed.
    ///
    /// It runs outside all locks of the pool, on the thread whose request caused the event or on
    /// the background trimmer's thread. It must not throw. It may use the pool once the pool's
    /// constructor has returned, but events of those calls are not reported.
    ///
    /// It is not called for memory given back at the request of another process (`tensorpool trim`,
    /// TrimRequest), because any call of any pool may answer that request. The timeline has that
    /// event.
    ///
    /// With RetentionPolicy::background, a lock that the function takes must not be held while the
    /// pool is destroyed or `allow_background_trimmer(false)` is called. Both wait until the
    /// trimmer's thread has left the function.
    std::function<void(const PoolEvent&)> on_event = {};
};

}  // namespace tensorpool
