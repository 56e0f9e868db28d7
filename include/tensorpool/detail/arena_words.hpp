#pragma once

/// @file
/// The words that the allocations of an arena or a scratch write. Layer `statistics`.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The position and the counts of one arena or scratch. They lie in its record, where other
/// processes may read them.
struct alignas(64) ArenaWords {
    /// How many threads at a time count their allocations in words of their own.
    static constexpr std::size_t counting_threads = 36;

    /// The bytes in use, in the lower bits; the bits above are internal to the arena.
    Counter used;
    /// Of a scratch: the most bytes in use since it last counted its peak.
    Counter high;
    /// How often memory was released. Written by one thread at a time.
    Counter releases;
    /// Allocations, in the word of the allocating thread's number. The first word belongs to the
    /// owner of an arena or scratch that one thread uses; in a shared arena all threads without a
    /// word of their own add to it with atomic operations. The words of the first threads share
    /// the cache line of `used`, which an allocation has just written.
    Counter allocations[1 + counting_threads];
};
static_assert(sizeof(ArenaWords) == 320);

/// A number that no other living thread of the process has, from 1 on. At most as large as the most
/// threads that had one at a time; all that use a pool, a scope or a shared arena have one. 0
/// before the thread's first use of it, and in its last destructors.
extern TENSORPOOL_API constinit thread_local std::size_t thread_number TENSORPOOL_INITIAL_EXEC;

/// Counts an allocation in a shared arena for a thread without a word of its own, or without a
/// number as yet.
TENSORPOOL_API void count_allocation_slow(ArenaWords& words) noexcept;

/// Counts an allocation of the calling thread in a shared arena. No atomic operation for the first
/// `counting_threads` threads that have a number.
inline void count_allocation(ArenaWords& words) noexcept {
    const std::size_t number = thread_number;
    if (number - 1 < ArenaWords::counting_threads) [[likely]] {
        add(words.allocations[number], 1);
        return;
    }
    count_allocation_slow(words);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
