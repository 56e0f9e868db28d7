#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

namespace tensorpool::arena {

/// The blocks of one arena that handles own, for arenas with checks. Thread-safe.
class LivingHandles {
public:
    struct Block {
        std::size_t offset;
        std::size_t bytes;
    };

    /// Throws std::bad_alloc.
    void add(Block block) {
        const std::lock_guard guard(mutex_);
        blocks_.insert_or_assign(block.offset, block.bytes);
    }
    void remove(std::size_t offset) noexcept {
        const std::lock_guard guard(mutex_);
        blocks_.erase(offset);
    }
    /// Returns the first block that ends above `offset`.
    std::optional<Block> first_above(std::size_t offset) const noexcept {
        const std::lock_guard guard(mutex_);
        auto at = blocks_.lower_bound(offset);
        if (at != blocks_.begin()) {
            const auto before = std::prev(at);
            if (before->first + before->second > offset) at = before;
        }
        if (at == blocks_.end()) return std::nullopt;
        return Block{at->first, at->second};
    }

    /// Locks and unlocks the register around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    mutable std::mutex mutex_;
    std::map<std::size_t, std::size_t> blocks_;  // bytes by offset
};

}  // namespace tensorpool::arena
