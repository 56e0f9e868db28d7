#pragma once

namespace tensorpool::statistics {

/// From now on a fork takes the locks that all pools and arenas share: the snapshot sources', then
/// the commit budget's, the threads' lists of slots, the segment's, of which the child gets one of
/// its own. All are taken inside of other locks. Also done while the library is loaded. Any thread,
/// any number of times, static constructors too. False on failure: then a child of a fork may find
/// a lock taken that nobody gives back; call it again.
[[nodiscard]] bool watch_forks() noexcept;

}  // namespace tensorpool::statistics
