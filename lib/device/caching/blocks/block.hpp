#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <boost/intrusive/set.hpp>

#include "device/caching/blocks/size_rules.hpp"

namespace tensorpool::device {

class StreamCache;
struct Slab;
struct StreamUse;
struct ScalarPage;

enum class BlockState : std::uint8_t {
    free,      // in a set of its stream. Owner: the allocator's lock
    parked,    // in a bin of its stream. Owner: the stream's lock
    in_use,    // a caller's, and no other stream was told. Changed under the stream's lock
    shared,    // a caller's, and other streams were told
    leaving,   // a caller gave it back, and somebody is being told of it
    deferred,  // free once other streams have passed. Owner: the allocator's lock
    scalars,   // cut into scalars. Owner: the allocator's lock
    taken,     // out of the sets: being handed out, or given back, by one thread
    mapping,   // addresses that one thread is mapping memory at
    kept,      // taken, and the device did not take its memory back
    hole,      // addresses without memory
};

/// A run of a slab: what a caller has, or a free one, or a hole. Blocks of a slab touch each other
/// and cover it. Their records lie in memory of their own and are never given back before the
/// allocator ends, so that a look at one that has just gone harms nobody.
struct alignas(64) Block {
    // In one cache line: what the fast path reads and writes.
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    std::size_t key = 0;        // what the request was rounded to: `bytes`, or less if oversize
    std::size_t requested = 0;  // of a block in use
    // Changes under the stream's lock, and the allocator's: who wants the lock looks again with it.
    std::atomic<StreamCache*> home = nullptr;
    Block* link = nullptr;  // in a bin, or in a list of records

    // Relaxed: neighbours look whether it is free, which only changes under the allocator's lock.
    std::atomic<BlockState> state = BlockState::free;
    Slab* slab = nullptr;       // below: under the allocator's lock
    Block* previous = nullptr;  // by address
    Block* next = nullptr;
    std::uint64_t stamp = 0;    // what of its stream may still use it: see StreamMarks
    std::uint64_t born = 0;     // of a free one: searches of its set before it came there
    StreamUse* uses = nullptr;  // other streams that use it
    std::uint32_t waits = 0;    // of a deferred one: streams that have not passed
    ScalarPage* page = nullptr;
    boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> hook;  // of its set

    bool is(BlockState other) const noexcept {
        return state.load(std::memory_order_relaxed) == other;
    }
    void set(BlockState to) noexcept { state.store(to, std::memory_order_relaxed); }
    std::byte* end() const noexcept { return address + bytes; }
};

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
