#pragma once

#include <memory>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include "device/deferral/deferred_frees.hpp"

/// The sizes of blocks and slabs, in bytes.

namespace tensorpool::device {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

/// Granularity of small blocks, which begin and end at multiples of it within their slab.
inline constexpr std::size_t small_grain = 512;
inline constexpr std::size_t small_limit = mib;
/// Larger sizes are rounded up to a 64th of the power of two below them, so by less than a 64th.
inline constexpr unsigned large_steps = 64;
inline constexpr std::size_t large_grain = small_limit / large_steps;

/// Sizes of slabs that are not expandable.
inline constexpr std::size_t small_slab_bytes = 2 * mib;
inline constexpr std::size_t large_slab_bytes = 32 * mib;
/// Sizes of slabs for requests from `xlarge_request_bytes` up to half of the slab, on devices of at
/// least `large_device_bytes`: without and with unified memory. Source: PyTorch's Metal allocator
/// (MPSAllocator.h).
inline constexpr std::size_t xlarge_slab_bytes = 128 * mib;
inline constexpr std::size_t xlarge_unified_slab_bytes = 1024 * mib;
inline constexpr std::size_t xlarge_request_bytes = 10 * mib;
/// Slab sizes are multiples of this. Expandable slabs grow by this, or by the device's granularity
/// if that is larger.
inline constexpr std::size_t slab_step = 2 * mib;
/// Expandable slabs of large blocks grow by this on devices of at least `large_device_bytes`: ten
/// pieces of 2 MiB take ten times as long as one of 20 MiB. Source: PyTorch's pull request 96995. A
/// power of two, as all granularities are.
inline constexpr std::size_t large_granule_bytes = 32 * mib;
inline constexpr std::size_t large_device_bytes = 4096 * mib;

/// The limit of a request. Sums of two such sizes do not overflow.
inline constexpr std::size_t max_bytes = std::size_t{1} << 62;

/// The set that a free block belongs to. Each block of `shareable` is a slab that other processes
/// may have opened, so none is handed out twice.
enum class Pool : std::uint8_t { small, large, oversize, shareable };
inline constexpr std::size_t pool_count = 4;

/// Returns the size of the block for a request; 0 for 0. REQUIRES: `bytes` is at most `max_bytes`.
constexpr std::size_t round_bytes(std::size_t bytes) noexcept {
    const std::size_t grain =
        bytes <= small_limit ? small_grain : std::bit_floor(bytes) / large_steps;
    return base::align_up(bytes, grain);
}

static_assert(round_bytes(0) == 0 && round_bytes(1) == 512 && round_bytes(512) == 512);
static_assert(round_bytes(small_limit) == small_limit);
static_assert(round_bytes(small_limit + 1) == small_limit + large_grain);
static_assert(round_bytes(128 * mib + 1) == 130 * mib && round_bytes(100 * mib) == 100 * mib);

class StreamCache;
struct Slab;
struct ScalarPage;

/// A range of a slab: a block in use, a free block, or a hole. The blocks of a slab are adjacent
/// and cover it. Records are stored outside the slab and are kept until the allocator is destroyed,
/// so reading the record of a block that has just been merged or freed is safe.
struct alignas(64) Block : DeferrableBlock {
    // These share a cache line with the base class: the fields that the fast path reads and writes.
    std::size_t key = 0;        // rounded size of the request: `bytes`, or less if oversize
    std::size_t requested = 0;  // for a block in use
    // Changed under both the stream's and the allocator's lock. A thread that read it to find the
    // stream's lock must read it again under that lock.
    std::atomic<StreamCache*> home = nullptr;
    Block* link = nullptr;  // next block in a bin, or in a list of records

    Slab* slab = nullptr;       // from here on: guarded by the allocator's lock
    Block* previous = nullptr;  // by address
    Block* next = nullptr;
    std::uint64_t stamp = 0;  // work of the stream that may still use it: see StreamMarks
    std::uint64_t born = 0;   // of a free block: searches of its set before it was inserted
    ScalarPage* page = nullptr;
    std::uint64_t number = 0;     // of the block, from when it got its size
    std::uint64_t use_count = 0;  // of its allocations since. Guarded by the stream's lock
    boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> hook;  // in its set
};

/// Whether `block`, which may be null, is one in use that begins at `address`.
inline bool is_in_use(const Block* block, const void* address) noexcept {
    return block != nullptr && block->address == address &&
           (block->is(BlockState::in_use) || block->is(BlockState::shared));
}

struct BySizeThenAddress {
    bool operator()(const Block& one, const Block& other) const noexcept {
        return one.bytes != other.bytes ? one.bytes < other.bytes : one.address < other.address;
    }
};
struct ByAddress {
    bool operator()(const Block& one, const Block& other) const noexcept {
        return one.address < other.address;
    }
};
template <class Order>
using BlockSet =
    boost::intrusive::set<Block,
                          boost::intrusive::member_hook<Block, decltype(Block::hook), &Block::hook>,
                          boost::intrusive::compare<Order>>;
using FreeSet = BlockSet<BySizeThenAddress>;
using HoleSet = BlockSet<ByAddress>;

/// Memory that the backend returned in one piece, or an "expandable" range of addresses into which
/// memory is mapped granule by granule. All its blocks belong to one stream. Guarded by the
/// allocator's lock.
struct Slab : boost::intrusive::list_base_hook<> {
    std::byte* base = nullptr;
    std::size_t bytes = 0;       // size of the address range
    std::size_t held_bytes = 0;  // memory: all of it, or the mapped part
    std::size_t free_bytes = 0;  // the part of `held_bytes` in the sets
    Pool pool = Pool::small;
    StreamCache* home = nullptr;
    Block* first = nullptr;
    // For expandable slabs: the handle of each granule, nullptr if nothing is mapped. Elements
    // under a `taken` block belong to that block's thread, others are guarded by the allocator's
    // lock.
    std::unique_ptr<MemoryHandle[]> granules;
    std::size_t granule = 0;
    HoleSet holes;

    bool is_expandable() const noexcept { return granule != 0; }
    bool is_empty_range() const noexcept {
        return is_expandable() && first->is(BlockState::hole) && first->bytes == bytes;
    }
    bool is_all_free() const noexcept { return free_bytes == held_bytes; }
    /// Free bytes that cannot be released in one piece.
    std::size_t split_bytes() const noexcept { return is_all_free() ? 0 : free_bytes; }
    MemoryHandle& granule_at(const std::byte* address) const noexcept {
        return granules[static_cast<std::size_t>(address - base) / granule];
    }
};

using SlabList = boost::intrusive::list<Slab>;

}  // namespace tensorpool::device
