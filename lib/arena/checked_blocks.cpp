#include "arena/checked_blocks.hpp"

#include <new>

#include "events/misuse.hpp"
#include "platform/platform.hpp"

namespace tensorpool::arena {

using events::MisuseKind;

CheckedBlocks::CheckedBlocks(const char* kind, const char* name, Memory memory)
    : kind_(kind),
      name_(name),
      checks_zeros_(memory == Memory::of_system),
      canary_(platform::random_bits()) {}

void CheckedBlocks::begin(std::size_t position, const Block& block) noexcept {
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

void CheckedBlocks::end(std::size_t position) noexcept {
    Blocks::node_type ended;
    const std::lock_guard guard(mutex_);
    ended = blocks_.extract(position);
    if (!ended.empty()) end(ended.mapped());
}

void CheckedBlocks::end_from(std::size_t position) noexcept {
    Blocks ended;
    const std::lock_guard guard(mutex_);
    for (auto at = blocks_.lower_bound(position); at != blocks_.end();) {
        end(at->second);
        ended.insert(ended.end(), blocks_.extract(at++));
    }
}

void CheckedBlocks::end(const Block& block) const noexcept {
    check_canary(block);
    std::memset(block.begin, 0, block.bytes);
}

// The memory is the new block's, so the program may go on.
void CheckedBlocks::check_zero(const Block& block) const noexcept {
    const std::size_t at = base::find_nonzero(block.begin, block.bytes);
    if (at == block.bytes) [[likely]]
        return;
    events::report_misuse({.kind = MisuseKind::write_after_free,
                           .pointer = block.begin,
                           .size = block.bytes,
                           .owner = name_},
                          "%s '%s': allocate: %p, in released memory, was written", kind_, name_,
                          static_cast<const void*>(block.begin + at));
}

// The block is about to end, so the program may go on.
void CheckedBlocks::check_canary(const Block& block) const noexcept {
    const std::size_t at = canary_.find_damage(block.begin, block.requested, block.bytes);
    if (at == block.bytes) [[likely]]
        return;
    events::report_misuse({.kind = MisuseKind::overrun,
                           .pointer = block.begin,
                           .size = block.bytes,
                           .requested = block.requested,
                           .owner = name_},
                          "%s '%s': release: block %p of %zu B was written at offset %zu, "
                          "beyond its end",
                          kind_, name_, static_cast<const void*>(block.begin), block.requested, at);
}

}  // namespace tensorpool::arena
