#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace tensorpool::test {

/// The bytes that PyTorch's caching allocator for CUDA would hold after the same calls: on one
/// stream, with default settings, and on a device that never runs out. Sizes and splits follow
/// PyTorch's c10/cuda/CUDACachingAllocator; addresses are made up.
class PyTorchRules {
public:
    using Address = std::size_t;

    Address allocate(std::size_t bytes) {
        const std::size_t rounded = std::max(round_up(bytes, grain), grain);
        const bool small = rounded <= small_limit;
        auto& free = free_[small];
        auto found = free.lower_bound({rounded, 0});
        if (found == free.end()) found = free.insert({segment_bytes(rounded), grow(rounded)}).first;
        const auto [size, address] = *found;
        free.erase(found);
        Block& block = blocks_.at(address);
        block.free = false;
        const std::size_t rest = size - rounded;
        if (small ? rest >= grain : rest > small_limit) {
            block.bytes = rounded;
            blocks_[address + rounded] = {rest, block.segment, true, small};
            free.insert({rest, address + rounded});
        }
        return address;
    }

    void deallocate(Address address) {
        auto at = blocks_.find(address);
        at->second.free = true;
        const auto next = std::next(at);
        if (next != blocks_.end() && joins(at->second, next->second)) absorb(at, next);
        if (at != blocks_.begin() && joins(at->second, std::prev(at)->second)) {
            const auto previous = std::prev(at);
            free_[at->second.small].erase({previous->second.bytes, previous->first});
            previous->second.bytes += at->second.bytes;
            blocks_.erase(at);
            at = previous;
        }
        free_[at->second.small].insert({at->second.bytes, at->first});
    }

    /// Bytes of all segments, of which none is ever released.
    std::size_t held() const { return held_; }

private:
    static constexpr std::size_t mib = std::size_t{1} << 20;
    static constexpr std::size_t grain = 512;
    static constexpr std::size_t small_limit = mib;

    struct Block {
        std::size_t bytes;
        std::size_t segment;
        bool free;
        bool small;
    };
    using Blocks = std::map<Address, Block>;

    static std::size_t round_up(std::size_t bytes, std::size_t to) {
        return (bytes + to - 1) / to * to;
    }
    static std::size_t segment_bytes(std::size_t rounded) {
        if (rounded <= small_limit) return 2 * mib;
        return rounded < 10 * mib ? 20 * mib : round_up(rounded, 2 * mib);
    }
    static bool joins(const Block& one, const Block& other) {
        return other.free && one.segment == other.segment;
    }

    Address grow(std::size_t rounded) {
        const std::size_t bytes = segment_bytes(rounded);
        const Address address = end_;
        blocks_[address] = {bytes, ++segments_, true, rounded <= small_limit};
        end_ += bytes;
        held_ += bytes;
        return address;
    }
    void absorb(Blocks::iterator block, Blocks::iterator next) {
        free_[block->second.small].erase({next->second.bytes, next->first});
        block->second.bytes += next->second.bytes;
        blocks_.erase(next);
    }

    Blocks blocks_;
    std::set<std::pair<std::size_t, Address>> free_[2];
    std::size_t held_ = 0;
    std::size_t segments_ = 0;
    Address end_ = 0;
};

}  // namespace tensorpool::test
