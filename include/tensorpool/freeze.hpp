#pragma once

/// @file
/// Blocks of pools that are frozen in place: the address stays valid, the pages go, and come back
/// when they are touched. Sizes are in bytes. Layer `stash`.

#include <tensorpool/data_type.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// How a block is frozen.
struct FreezeOptions {
    /// The name of the tensor in messages.
    std::string name = {};
    /// The element type, which selects how the content is compressed. Any type is correct.
    DataType type = {};
    /// The most memory that pieces take which came back, in bytes, at least 256 KiB. Above it, the
    /// piece that has been back for longest goes again. Threads that use the block at the same time
    /// need a few pieces of 64 KiB each.
    std::size_t window_bytes = std::size_t{4} << 20;
    /// Whether the program accepts that a system call that reads or writes the block fails with
    /// EFAULT. Needed only where the system serves no page faults of system calls.
    bool system_calls_may_fail = false;
};

/// What frozen blocks hold and have done since they were frozen.
struct FreezeStatistics {
    std::size_t blocks = 0;           ///< blocks that are frozen
    std::size_t frozen_bytes = 0;     ///< bytes of their addresses
    std::size_t bytes_at_rest = 0;    ///< memory that the encoded content takes
    std::size_t resident_bytes = 0;   ///< bytes that came back, or are not encoded yet
    std::uint64_t faults = 0;         ///< pieces that came back because they were touched
    std::uint64_t encoded_again = 0;  ///< pieces that had been written when they went again
};

/// The system does not allow a block to be frozen, or a block cannot be thawed. The message names
/// the reason.
class TENSORPOOL_API FreezeError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Freezes the block in use at `block` of `pool`, in place: its content is compressed piece by
/// piece of 64 KiB, and its pages go back to the system. The address stays valid. A thread that
/// touches a piece waits until it is back.
///
/// The block must consist of whole pages of the pool: blocks above 64 KiB do. The last part of a
/// page stays resident. Any thread may read and write the block during and after the call. The
/// first call starts one thread, which serves the page faults of all frozen blocks (userfaultfd(2))
/// and stays until the process ends. It allocates from no pool and touches no memory at rest.
///
/// The pool counts the block as in use and its pages as capacity, as before. The compressed content
/// lies outside of pools; `freeze_statistics` counts it. Freeing the block ends its freezing
/// without decoding it, and so does the end of its pool.
///
/// Until the block is thawed, the program must not drop, unmap or move its pages, and no device and
/// no asynchronous system call may write to it, as these write behind the back of the system's page
/// tables. The child of a fork has the block frozen as well, served by a thread of its own;
/// handlers that were registered by pthread_atfork before this library was loaded must not touch
/// it.
///
/// If a piece cannot come back, because its encoding was overwritten or the system has no memory, a
/// line on stderr names the block and the process ends: no error can be reported to the thread that
/// waits.
///
/// Throws FreezeError if the system does not allow it, and if only faults of instructions are
/// allowed and the options do not accept that. Throws std::invalid_argument for any other pointer
/// and for a window that is too small. The block is then unchanged; but if the system refuses
/// halfway and has no memory for what rests already, it stays frozen, and the message says so.
TENSORPOOL_API void freeze(MemoryPool& pool, void* block, const FreezeOptions& options = {});
/// Freezes the block of a handle, which must be of a pool, as `freeze(pool, p)` describes. The
/// handle stays the owner, and may be moved and ended.
TENSORPOOL_API void freeze(const PooledAllocation& block, const FreezeOptions& options = {});

/// Brings the whole content of a frozen block back and ends its freezing. Other threads may touch
/// the block meanwhile. Returns false if the block is not frozen. Throws FreezeError if a piece
/// cannot come back; the block is then still frozen.
TENSORPOOL_API bool thaw(void* block);
/// Brings the whole content of the block of a handle back and ends its freezing. Other threads may
/// touch the block meanwhile. Returns false if it is not frozen. Throws FreezeError if a piece
/// cannot come back; the block is then still frozen.
inline bool thaw(const PooledAllocation& block) {
    return thaw(block.get());
}

/// Returns whether the block that begins at `block` is frozen.
TENSORPOOL_API bool is_frozen(const void* block) noexcept;
/// Returns the statistics of all blocks that are frozen now.
TENSORPOOL_API FreezeStatistics freeze_statistics() noexcept;
/// Returns the statistics of one block; all 0 if it is not frozen.
TENSORPOOL_API FreezeStatistics freeze_statistics(const void* block) noexcept;

}  // namespace tensorpool
