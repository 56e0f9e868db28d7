#pragma once

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {

/// One small block cut into 64 positions of 8 bytes.
struct ScalarPage {
    static constexpr std::size_t scalar_bytes = 8;
    static constexpr std::size_t scalar_count = 64;
    static_assert(scalar_count * scalar_bytes == small_grain);

    Block* block = nullptr;
    std::uint64_t used = 0;  // one bit for each position
    // Set when another stream uses one of the scalars. No position is reused then, and when the
    // last scalar is freed, the block is deferred like any block that other streams use.
    bool closed = false;
    ScalarPage* next = nullptr;  // in its stream's list of open pages with a free position
    std::uint8_t bytes[scalar_count] = {};

    bool is_full() const noexcept { return ~used == 0; }
    /// REQUIRES: the page is not full.
    std::size_t lowest_free() const noexcept {
        return static_cast<std::size_t>(std::countr_one(used)) % scalar_count;
    }
};

/// Constants of up to 8 bytes, 64 of them in one small block, called a page. A page without scalars
/// in use is freed when the allocator looks for free memory.
class Scalars {
public:
    explicit Scalars(AllocatorState& state) noexcept : state_(state) {}

    /// Takes a record for a page to be opened. Throws std::bad_alloc.
    ScalarPage& take_record() { return records_.take(); }
    void give_record(ScalarPage& page) noexcept { records_.give(page); }
    void open(StreamCache& cache, Block& block, ScalarPage& page) noexcept;
    /// REQUIRES: the stream has a page with a free position.
    void* take(StreamCache& cache, std::size_t bytes) noexcept;
    static bool has(const Block& block, const void* address) noexcept;
    /// REQUIRES: `has(block, address)`.
    void free(Block& block, void* address) noexcept;
    /// Closes a page of which another stream uses a scalar: it is freed as one block.
    void close(Block& block) noexcept;
    /// Ends the stream's pages that have no scalar in use.
    void end_empty(StreamCache& cache) noexcept;

private:
    void end(Block& block) noexcept;

    AllocatorState& state_;
    RecordPool<ScalarPage> records_;
};

/// Finds free blocks in the sets of their streams. Fills the sets with blocks that streams parked
/// and with blocks that waited for other streams.
class FreeBlocks {
public:
    FreeBlocks(AllocatorState& state, Scalars& scalars) noexcept
        : state_(state), scalars_(scalars) {}

    /// Takes a block from the sets of the stream, after moving its parked blocks there. Returns
    /// nullptr if there is none. Throws std::bad_alloc.
    Block* take(StreamCache& cache, const Request& request);
    /// Frees blocks whose other streams have passed.
    void complete() noexcept;
    /// Frees the blocks behind the first `added` uses of this stream, which are known to be done.
    void complete_up_to(StreamCache& stream, std::uint64_t added) noexcept;
    /// Puts a list of parked blocks into the sets and returns their bytes.
    std::size_t put_back(StreamCache& cache, Block* parked) noexcept;
    /// Puts the parked blocks of all streams into the sets and returns their bytes.
    std::size_t flush_all() noexcept;
    /// The bytes in the sets.
    std::size_t bytes() const noexcept;

    /// Puts a block that all streams have passed into the sets.
    void reuse(Block& block) noexcept;

private:
    AllocatorState& state_;
    Scalars& scalars_;
};

}  // namespace tensorpool::device
