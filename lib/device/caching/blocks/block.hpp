#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <boost/intrusive/set.hpp>

#include "device/caching/blocks/size_rules.hpp"
#include "device/deferral/deferred_frees.hpp"

namespace tensorpool::device {

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

}  // namespace tensorpool::device
