#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "planned/learner.hpp"

namespace tensorpool::planned {

/// The blocks of the pool that callers hold through an arena. Not thread-safe.
class PoolBlocks {
public:
    struct Block {
        std::uint64_t bytes = 0;  ///< usable size of the pool's block
        Learner::Ticket ticket;   ///< the learner's record of the request
        bool is_noted = false;    ///< freed by callers of the pool, which notes the free
    };

    /// Adds a block. If it throws std::bad_alloc, nothing has changed.
    void add(void* p, const Block& block) { blocks_.insert_or_assign(p, block); }
    /// Removes a block and returns it, or returns nullopt if there is no such block.
    std::optional<Block> remove(void* p) noexcept {
        const auto found = blocks_.find(p);
        if (found == blocks_.end()) return std::nullopt;
        const Block block = found->second;
        blocks_.erase(found);
        return block;
    }
    std::size_t size() const noexcept { return blocks_.size(); }
    /// Removes all blocks that callers of the pool free, and calls `function(p, bytes)` for each.
    template <class Function>
    void take_noted(Function function) {
        std::erase_if(blocks_, [&](const auto& entry) {
            if (entry.second.is_noted) function(entry.first, entry.second.bytes);
            return entry.second.is_noted;
        });
    }
    /// Calls `function(p, block)` for each block.
    template <class Function>
    void for_each(Function function) const {
        for (const auto& [p, block] : blocks_) function(p, block);
    }

private:
    std::unordered_map<void*, Block> blocks_;
};

}  // namespace tensorpool::planned
