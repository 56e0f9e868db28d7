#include "arena/checked_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/find_nonzero.hpp"
#include "platform/memory/guard_pages.hpp"
#include "statistics/misuse/misuse.hpp"

namespace tensorpool::arena {

using statistics::MisuseKind;

CheckedBlocks::CheckedBlocks(const char* kind, const char* name, Memory memory)
    : kind_(kind), name_(name), memory_(memory), canary_(platform::random_bits()) {}

void CheckedBlocks::begin(std::size_t position, const Block& block) noexcept {
    const std::lock_guard guard(mutex_);
    if (memory_ == Memory::of_system && position < used_before_) check_zero(block);
    canary_.fill(block.begin, block.requested, block.bytes);
    used_before_ = std::max(used_before_, position + block.bytes);
    try {
        blocks_.insert_or_assign(position, block);
    } catch (const std::bad_alloc&) {
    }
}

void CheckedBlocks::end(std::size_t position) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = blocks_.find(position);
    if (found != blocks_.end()) end_at(found);
}

void CheckedBlocks::end_from(std::size_t position) noexcept {
    const std::lock_guard guard(mutex_);
    for (auto at = blocks_.lower_bound(position); at != blocks_.end();) at = end_at(at);
}

void CheckedBlocks::check() const noexcept {
    const std::lock_guard guard(mutex_);
    for (const auto& [position, block] : blocks_) check_canary(block);
}

CheckedBlocks::Blocks::iterator CheckedBlocks::end_at(Blocks::iterator at) noexcept {
    const Block& block = at->second;
    check_canary(block);
    std::memset(block.begin, 0, block.bytes);
    return blocks_.erase(at);
}

// The memory is the new block's, so the program may go on.
void CheckedBlocks::check_zero(const Block& block) const noexcept {
    const std::size_t at = base::find_nonzero(block.begin, block.bytes);
    if (at == block.bytes) [[likely]]
        return;
    statistics::report_misuse({.kind = MisuseKind::write_after_free,
                               .pointer = block.begin,
                               .size = block.bytes,
                               .owner = name_},
                              "%s '%s': allocate: %p, in released memory, was written", kind_,
                              name_, static_cast<const void*>(block.begin + at));
}

// The block is about to end, so the program may go on.
void CheckedBlocks::check_canary(const Block& block) const noexcept {
    const std::size_t at = canary_.find_damage(block.begin, block.requested, block.bytes);
    if (at == block.bytes) [[likely]]
        return;
    statistics::report_misuse({.kind = MisuseKind::overrun,
                               .pointer = block.begin,
                               .size = block.bytes,
                               .requested = block.requested,
                               .owner = name_},
                              "%s '%s': release: block %p of %zu B was written at offset %zu, "
                              "beyond its end",
                              kind_, name_, static_cast<const void*>(block.begin), block.requested,
                              at);
}

}  // namespace tensorpool::arena
