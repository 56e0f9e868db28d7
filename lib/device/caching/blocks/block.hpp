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

/// A run of a slab: what a caller has, or a free one, or a hole. Blocks of a slab touch each other
/// and cover it. Their records lie in memory of their own and are never given back before the
/// allocator ends, so that a look at one that has just gone harms nobody.
struct alignas(64) Block : DeferrableBlock {
    // In one cache line, with what it is derived from: what the fast path reads and writes.
    std::size_t key = 0;        // what the request was rounded to: `bytes`, or less if oversize
    std::size_t requested = 0;  // of a block in use
    // Changes under the stream's lock, and the allocator's: who wants the lock looks again with it.
    std::atomic<StreamCache*> home = nullptr;
    Block* link = nullptr;  // in a bin, or in a list of records

    Slab* slab = nullptr;       // below: under the allocator's lock
    Block* previous = nullptr;  // by address
    Block* next = nullptr;
    std::uint64_t stamp = 0;  // what of its stream may still use it: see StreamMarks
    std::uint64_t born = 0;   // of a free one: searches of its set before it came there
    ScalarPage* page = nullptr;
    boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> hook;  // of its set
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
