#pragma once

namespace tensorpool::statistics {

/// Registers fork handlers that take the locks shared by all pools and arenas: those of this layer
/// and of the layers up to `limits`, which implements it. They are acquired after all other locks.
/// The child gets a segment of its own. Also called while the library is loaded. May be called on
/// any thread any number of times, including from static constructors. Returns false on failure:
/// the child of a fork may then find a lock taken that is never released, and the caller should
/// call again later.
[[nodiscard]] bool watch_forks() noexcept;

}  // namespace tensorpool::statistics
