#pragma once

#include <cstdint>

namespace tensorpool::pages {
struct Changes;
}  // namespace tensorpool::pages

namespace tensorpool::blocks {

class BucketSet;
class Cache;

/// The threads from which `take_back` takes free blocks.
enum class TakeFrom : std::uint8_t { idle, enough, everyone };

/// Returns parked blocks of the set's pool to their spans, from magazines of other threads: of
/// threads that made no call since the last such check (`idle`); of any threads, until half of the
/// limit is free (`enough`); or of all (`everyone`). A thread that is inside a slow path keeps its
/// blocks; then the function returns false. On systems without fences of all threads nothing is
/// taken. The caller holds no lock.
bool take_back(BucketSet& set, TakeFrom from, pages::Changes& changes) noexcept;

/// Gives the calling thread's parked blocks, of all series of the pool, to the depots and to the
/// page heap.
void give_back_own(BucketSet& set, pages::Changes& changes) noexcept;

/// Returns whether `take_back` works on this system. If it does not, blocks that one thread keeps
/// are unusable for others.
bool can_take_back() noexcept;

/// Waits until no `take_back` is in progress.
void wait_for_take_back() noexcept;

/// Returns whether the cache's thread made no call since the previous query. If it keeps large
/// blocks, only calls for large blocks count. REQUIRES: the registry's lock is held.
bool was_idle(Cache& cache) noexcept;

}  // namespace tensorpool::blocks
