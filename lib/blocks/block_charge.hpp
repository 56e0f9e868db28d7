#pragma once

#include <atomic>
#include <cstddef>

#include "limits/budget_node.hpp"
#include "pages/heap/heap_shard.hpp"

namespace tensorpool::blocks {

class BucketSet;

/// What scopes of one budget charge in one pool: blocks of a set of buckets that are not home,
/// which are in use or in magazines of threads inside the scopes, and large and sampled blocks.
/// Thread-safe, but the budget changes under the registry's lock.
class BlockCharge {
public:
    explicit BlockCharge(BucketSet& its_set) noexcept : set(its_set) {}
    BlockCharge(const BlockCharge&) = delete;
    BlockCharge& operator=(const BlockCharge&) = delete;

    BucketSet& set;

    /// The budget; nullptr if there is none. Relaxed: its users have a scope or a block.
    detail::BudgetNode* budget() const noexcept { return budget_.load(std::memory_order_relaxed); }
    std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }

    /// Charges up to `count` blocks. Returns how many; 0, with a refusal, if not even one fits.
    unsigned charge(unsigned count, std::size_t block_bytes, pages::SlowPath& path) noexcept {
        const std::size_t bytes =
            budget()->charge(block_bytes, count * block_bytes, block_bytes, path.budget);
        if (bytes == 0) path.refusal = path.budget.refusal();
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
        return static_cast<unsigned>(bytes / block_bytes);
    }
    /// Refunds the budget first: when no byte is left, the budget may be replaced.
    void refund(std::size_t bytes) noexcept {
        if (bytes == 0) return;  // an idle set has no budget
        budget()->refund(bytes);
        bytes_.fetch_sub(bytes, std::memory_order_release);
    }
    /// Undoes a charge that came to nothing; see BudgetNode::cancel.
    void cancel(std::size_t bytes) noexcept {
        if (bytes == 0) return;
        budget()->cancel(bytes);
        bytes_.fetch_sub(bytes, std::memory_order_release);
    }

    // REQUIRES, for all that follow: the registry's lock is held.
    void begin(detail::BudgetNode& budget) noexcept {
        budget.hold();
        budget_.store(&budget, std::memory_order_relaxed);
    }
    /// Whether nothing is charged and no thread inside a scope uses it.
    bool is_unused() const noexcept { return users == 0 && bytes() == 0; }
    void end() noexcept { budget_.exchange(nullptr, std::memory_order_relaxed)->let_go(); }
    /// The threads inside scopes that use it.
    unsigned users = 0;

    /// Refunds everything. For a pool that is destroyed.
    void forget() noexcept {
        refund(bytes());
        end();
    }

private:
    std::atomic<detail::BudgetNode*> budget_ = nullptr;
    std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace tensorpool::blocks
