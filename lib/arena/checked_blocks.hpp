#pragma once

#include <map>
#include <new>

#include "base/canary.hpp"
#include "base/lockable.hpp"
#include "events/misuse.hpp"
#include "platform/platform.hpp"

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
    CheckedBlocks(const char* kind, const char* name, Memory memory)
        : kind_(kind),
          name_(name),
          checks_zeros_(memory == Memory::of_system),
          canary_(platform::random_bits()) {}

    /// Begins a block. Blocks in use have increasing positions. Without memory for its record, the
    /// block is not checked, and from then on neither is released memory.
    void begin(std::size_t position, const Block& block) noexcept {
        Blocks made;
        try {
            made.emplace(position, block);
        } catch (const std::bad_alloc&) {
            checks_zeros_.store(false, std::memory_order_relaxed);
            return;
        }
        const std::lock_guard guard(mutex_);
        if (position < used_before_ && checks_zeros_.load(std::memory_order_relaxed)) {
            check_zero(block);
        }
        canary_.fill(block.begin, block.requested, block.bytes);
        used_before_ = std::max(used_before_, position + block.bytes);
        blocks_.merge(made);
    }
    /// Ends the block at a position.
    void end(std::size_t position) noexcept {
        Blocks::node_type ended;
        const std::lock_guard guard(mutex_);
        ended = blocks_.extract(position);
        if (!ended.empty()) end(ended.mapped());
    }
    /// Ends all blocks from a position on.
    void end_from(std::size_t position) noexcept {
        Blocks ended;
        const std::lock_guard guard(mutex_);
        for (auto at = blocks_.lower_bound(position); at != blocks_.end();) {
            end(at->second);
            ended.insert(ended.end(), blocks_.extract(at++));
        }
    }
    /// Checks all blocks, without ending them.
    void check() const noexcept {
        const std::lock_guard guard(mutex_);
        for (const auto& [position, block] : blocks_) check_canary(block);
    }

private:
    using Blocks = std::map<std::size_t, Block>;

    // The memory is the new block's, so the program may go on.
    void check_zero(const Block& block) const noexcept {
        const std::size_t at = base::find_nonzero(block.begin, block.bytes);
        if (at == block.bytes) [[likely]]
            return;
        events::report_misuse({.kind = events::MisuseKind::write_after_free,
                               .pointer = block.begin,
                               .size = block.bytes,
                               .owner = name_},
                              "%s '%s': allocate: %p, in released memory, was written", kind_,
                              name_, static_cast<const void*>(block.begin + at));
    }
    // The block is about to end, so the program may go on.
    void check_canary(const Block& block) const noexcept {
        const std::size_t at = canary_.find_damage(block.begin, block.requested, block.bytes);
        if (at == block.bytes) [[likely]]
            return;
        events::report_misuse({.kind = events::MisuseKind::overrun,
                               .pointer = block.begin,
                               .size = block.bytes,
                               .requested = block.requested,
                               .owner = name_},
                              "%s '%s': release: block %p of %zu B was written at offset %zu, "
                              "beyond its end",
                              kind_, name_, static_cast<const void*>(block.begin), block.requested,
                              at);
    }
    void end(const Block& block) const noexcept {
        check_canary(block);
        std::memset(block.begin, 0, block.bytes);
    }

    const char* const kind_;
    const char* const name_;
    std::atomic<bool> checks_zeros_;
    const base::Canary canary_;
    // By position. Records are made and destroyed without the lock: their malloc may be the pool.
    Blocks blocks_;
    std::size_t used_before_ = 0;  // memory from this position on was never used
};

}  // namespace tensorpool::arena
