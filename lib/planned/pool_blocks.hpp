#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "planned/learner.hpp"

namespace tensorpool::planned {

/// The blocks of the pool that callers hold through an arena. One call at a time.
class PoolBlocks {
public:
    struct Block {
        std::uint64_t bytes = 0;  ///< of the pool's block
        Learner::Ticket ticket;   ///< where the learner noted it
    };

    /// Throws std::bad_alloc, changing nothing.
    void add(void* p, const Block& block) { blocks_.insert_or_assign(p, block); }
    /// Nothing where there is no such block.
    std::optional<Block> remove(void* p) noexcept {
        const auto found = blocks_.find(p);
        if (found == blocks_.end()) return std::nullopt;
        const Block block = found->second;
        blocks_.erase(found);
        return block;
    }
    std::size_t size() const noexcept { return blocks_.size(); }
    /// Calls `function` with each.
    template <class Function>
    void for_each(Function function) const {
        for (const auto& [p, block] : blocks_) function(p, block);
    }

private:
    std::unordered_map<void*, Block> blocks_;
};

}  // namespace tensorpool::planned
