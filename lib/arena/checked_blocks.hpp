#pragma once

#include <atomic>
#include <map>

#include "base/canary.hpp"
#include "base/lockable.hpp"

namespace tensorpool::arena {

/// The blocks of an arena or a scratch with Checks::hardened: each has a canary behind what was
/// requested, which is checked when the block ends. Ended blocks are filled with zeros, which are
/// checked when their memory is allocated again. Thread-safe.
class CheckedBlocks : public base::Lockable {
public:
    /// What is added to each request.
    static constexpr std::size_t padding = base::Canary::min_bytes;

    struct Block {
        char* begin = nullptr;
        std::size_t requested = 0;
        std::size_t bytes = 0;  // at least `requested + padding`
    };
    enum class Memory : bool { of_caller, of_system };

    /// `kind` and `name`, which must outlive the object, appear in reports. Memory of the system is
    /// zero at first, that of the caller is not.
    CheckedBlocks(const char* kind, const char* name, Memory memory);

    /// Begins a block. Blocks in use have increasing positions. Without memory for its record, the
    /// block is not checked, and from then on neither is released memory.
    void begin(std::size_t position, const Block& block) noexcept;
    /// Ends the block at a position.
    void end(std::size_t position) noexcept;
    /// Ends all blocks from a position on.
    void end_from(std::size_t position) noexcept;
    /// Checks all blocks, without ending them.
    void check() const noexcept {
        const std::lock_guard guard(mutex_);
        for (const auto& [position, block] : blocks_) check_canary(block);
    }

private:
    using Blocks = std::map<std::size_t, Block>;

    void check_zero(const Block& block) const noexcept;
    void check_canary(const Block& block) const noexcept;
    void end(const Block& block) const noexcept;

    const char* const kind_;
    const char* const name_;
    std::atomic<bool> checks_zeros_;
    const base::Canary canary_;
    // By position. Records are made and destroyed without the lock: their malloc may be the pool.
    Blocks blocks_;
    std::size_t used_before_ = 0;  // memory from this position on was never used
};

}  // namespace tensorpool::arena
