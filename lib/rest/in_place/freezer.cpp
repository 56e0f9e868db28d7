#include "rest/in_place/freezer.hpp"

#include <mutex>
#include <string>
#include <thread>

#include "base/never_destroyed.hpp"
#include "kinds/served_kind.hpp"
#include "platform/platform.hpp"
#include "rest/in_place/messages.hpp"

namespace tensorpool::stashing {
namespace {

// So that all of them are present: one that was never touched maps the system's page of zeros.
// Other threads may write to them.
[[gnu::no_sanitize("thread")]] void read_each_page(const FrozenRange& range) noexcept {
    const std::size_t page = platform::page_bytes();
    for (std::size_t at = 0; at < range.bytes; at += page) {
        (void)*static_cast<volatile std::byte*>(range.begin + at);
    }
}

void add(FreezeStatistics& sum, const FrozenBlock& block) noexcept {
    ++sum.blocks;
    sum.frozen_bytes += block.range().bytes;
    sum.bytes_at_rest += block.bytes_at_rest();
    sum.resident_bytes += block.resident_bytes();
    sum.faults += block.faults();
    sum.encoded_again += block.encoded_again();
}

}  // namespace

// The range begins in the block's first page.
FrozenBlock* FrozenBlocks::find_block(const void* p) noexcept {
    const auto found = lower_bound(static_cast<const std::byte*>(p));
    return found != end() && found->block() == p ? &*found : nullptr;
}

FrozenBlock* FrozenBlocks::find_range(const void* address) noexcept {
    const auto* const at = static_cast<const std::byte*>(address);
    auto behind = upper_bound(at);
    if (behind == begin()) return nullptr;
    FrozenBlock& block = *--behind;
    const auto offset = static_cast<std::size_t>(at - block.range().begin);
    return offset < block.range().bytes ? &block : nullptr;
}

Freezer& freezer() noexcept {
    static base::NeverDestroyed<Freezer> the_freezer;
    return the_freezer.get();
}

void Freezer::freeze(const FrozenBlock::Settings& settings, bool system_calls_may_fail) {
    set_up(system_calls_may_fail);
    FrozenBlock* const block = FrozenBlock::make(settings);
    if (block == nullptr) {
        throw FreezeError(block_message("freeze", settings.name, settings.block) +
                          "the system has no address space for the encoded content");
    }
    read_each_page(settings.range);
    block->set_in_use(true);
    if (!insert(*block)) {
        FrozenBlock::destroy(*block);
        throw std::invalid_argument(block_message("freeze", settings.name, settings.block) +
                                    "it is frozen already");
    }
    if (platform::watch_faults(source_, settings.range.begin, settings.range.bytes) &&
        encode_all(*block)) {
        ++block->totals().stashes;
        return end_use(*block);
    }
    ++block->totals().failures;
    std::uint32_t piece = 0;
    const bool is_whole = bring_all_back(*block, piece) == Done::yes;
    is_whole ? end(*block) : end_use(*block);
    throw FreezeError(refused_message(settings, is_whole));
}

// Two threads may have begun to freeze the same block.
bool Freezer::insert(FrozenBlock& block) noexcept {
    const std::lock_guard guard(lock_);
    if (!blocks_.insert(block).second) return false;
    (void)kinds::note_free_of(*block.pool(), const_cast<void*>(block.block()));
    return true;
}

// One piece at a time, so that faults are served meanwhile.
bool Freezer::encode_all(FrozenBlock& block) noexcept {
    for (std::uint32_t piece = 0; piece != block.piece_count(); ++piece) {
        const std::lock_guard guard(lock_);
        if (block.put_to_rest(piece, source_, tools_) != Done::yes) return false;
    }
    return true;
}

bool Freezer::thaw(const void* p) {
    FrozenBlock* const block = begin_use(p);
    if (block == nullptr) return false;
    std::uint32_t piece = 0;
    const Done done = bring_all_back(*block, piece);
    ++(done == Done::yes ? block->totals().restores : block->totals().failures);
    if (done == Done::yes) {
        end(*block);
        return true;
    }
    const EndOfUse end_of_use(*this, *block);  // also if there is no memory for the message
    throw FreezeError(thaw_message(*block, piece, done));
}

Done Freezer::bring_all_back(FrozenBlock& block, std::uint32_t& piece) noexcept {
    for (piece = 0; piece != block.piece_count(); ++piece) {
        const std::lock_guard guard(lock_);
        block.begin_thaw();
        const Done done = block.bring_back(piece, source_, tools_);
        if (done != Done::yes) return done;
    }
    return Done::yes;
}

// Waits while another thread freezes or thaws the block.
FrozenBlock* Freezer::begin_use(const void* p) noexcept {
    for (;;) {
        {
            const std::lock_guard guard(lock_);
            FrozenBlock* const block = blocks_.find_block(p);
            if (block == nullptr) return nullptr;
            if (!block->is_in_use()) {
                block->set_in_use(true);
                return block;
            }
        }
        std::this_thread::yield();
    }
}

void Freezer::end_use(FrozenBlock& block) noexcept {
    const std::lock_guard guard(lock_);
    block.end_use();
}

void Freezer::end(FrozenBlock& block) noexcept {
    {
        const std::lock_guard servers(kinds::block_servers());
        const std::lock_guard guard(lock_);
        take_out(block);
        kinds::forget_free_of(*block.pool(), const_cast<void*>(block.block()));
    }
    FrozenBlock::destroy(block);
}

// A fault of it that was not served yet finds no block.
void Freezer::take_out(FrozenBlock& block) noexcept {
    platform::unwatch_faults(source_, block.range().begin, block.range().bytes);
    blocks_.erase(blocks_.iterator_to(block));
}

bool Freezer::note_free(void* p) noexcept {
    FrozenBlock* block = nullptr;
    {
        const std::lock_guard guard(lock_);
        block = blocks_.find_block(p);
        if (block == nullptr) return false;
        take_out(*block);
    }
    FrozenBlock::destroy(*block);
    return true;
}

void Freezer::note_end_of(unsigned pool_number) noexcept {
    const std::lock_guard guard(lock_);
    for (auto next = blocks_.begin(); next != blocks_.end();) {
        FrozenBlock& block = *next++;
        if (block.pool()->number() != pool_number) continue;
        take_out(block);
        FrozenBlock::destroy(block);
    }
}

bool Freezer::is_frozen(const void* p) noexcept {
    const std::lock_guard guard(lock_);
    return blocks_.find_block(p) != nullptr;
}

FreezeStatistics Freezer::statistics() noexcept {
    FreezeStatistics sum;
    const std::lock_guard guard(lock_);
    for (const FrozenBlock& block : blocks_) add(sum, block);
    return sum;
}

FreezeStatistics Freezer::statistics(const void* p) noexcept {
    FreezeStatistics one;
    const std::lock_guard guard(lock_);
    if (const FrozenBlock* const block = blocks_.find_block(p)) add(one, *block);
    return one;
}

void Freezer::damage(const void* p, std::uint32_t piece) noexcept {
    const std::lock_guard guard(lock_);
    blocks_.find_block(p)->encoding(piece).back() ^= std::byte{1};
}

}  // namespace tensorpool::stashing
