#include <tensorpool/freeze.hpp>

#include "pool/pool.hpp"
#include "rest/in_place/freezer.hpp"

namespace tensorpool {
namespace {

using pages::PageEntry;
using pages::PageKind;
using stashing::freezer;
using stashing::FrozenRange;

// So that an instruction that touches several pieces finds them all.
constexpr std::size_t min_window_bytes = 4 * stashing::PieceTools::piece_bytes;

[[noreturn]] void refuse(const FreezeOptions& options, const void* block, const std::string& why) {
    throw std::invalid_argument(stashing::block_message("freeze", options.name.c_str(), block) +
                                why);
}

// What a block is that cannot be frozen.
std::string kind_of(const PageEntry& entry, const void* block) {
    if (entry.is_bucket() || entry.is_marked()) {
        const unsigned bucket = entry.is_bucket() ? entry.bucket() : entry.span()->marked_bucket();
        return "it shares pages with others: it has " +
               std::to_string(detail::bucket_bytes(bucket)) +
               " B; expected a block of whole pages, of more than 65536 B";
    }
    switch (entry.kind()) {
        case PageKind::large_noted:
            return freezer().is_frozen(block) ? "it is frozen already"
                                              : "it belongs to an iteration of a planned arena";
        case PageKind::guarded:
            return "it is guarded: it ends at a page that may not be accessed";
        case PageKind::served:
            return "its memory is lent to a plan";
        default:
            return "it is an address inside a block; expected its beginning";
    }
}

bool begins_at(const PageEntry& entry, const void* block) noexcept {
    return pages::address_space().map().address_of(entry.span()->first_page) == block;
}

FrozenRange whole_pages_of(void* block, std::size_t bytes) noexcept {
    const std::size_t page = platform::page_bytes();
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t first = base::align_up(begin, page);
    const std::uintptr_t end = base::align_down(begin + bytes, page);
    return {reinterpret_cast<std::byte*>(first), end > first ? end - first : 0};
}

}  // namespace

void freeze(MemoryPool& memory_pool, void* block, const FreezeOptions& options) {
    if (options.window_bytes < min_window_bytes) {
        refuse(options, block,
               std::string("window_bytes is ") + base::BytesText(options.window_bytes).c_str() +
                   "; expected at least " + base::BytesText(min_window_bytes).c_str());
    }
    kinds::PoolParts& pool = detail::PoolAccess::of(memory_pool).parts();
    if (block == nullptr || !memory_pool.owns(block)) {
        refuse(options, block,
               "expected the address of a block in use of pool '" + pool.options.name + "'");
    }
    const PageEntry entry = pages::address_space().map().at(block);
    if (entry.kind() != PageKind::large_in_use || !begins_at(entry, block)) {
        refuse(options, block, kind_of(entry, block));
    }
    const std::size_t requested = entry.span()->requested_bytes.load(std::memory_order_relaxed);
    const FrozenRange range =
        whole_pages_of(block, std::min<std::size_t>(requested, entry.span()->bytes()));
    if (range.bytes == 0) {
        refuse(options, block, "it has " + std::to_string(requested) + " B; expected a whole page");
    }
    freezer().freeze({.pool = &pool,
                      .block = block,
                      .range = range,
                      .type = options.type,
                      .window_bytes = options.window_bytes,
                      .budget = kinds::charged_budget(pool),
                      .name = options.name.c_str()},
                     options.system_calls_may_fail);
}

void freeze(const PooledAllocation& block, const FreezeOptions& options) {
    const HeldBlock& held = block.held();
    if (held.address == nullptr) {
        throw std::invalid_argument(
            "tensorpool: freeze: the handle owns nothing; expected a block of a pool");
    }
    if (!held.owner.is_pool()) {
        refuse(options, held.address,
               std::string("it belongs to a source of kind '") + held.owner.functions().name +
                   "'; expected a block of a pool");
    }
    freeze(*static_cast<MemoryPool*>(held.owner.pool()), held.address, options);
}

bool thaw(void* block) {
    return block != nullptr && freezer().thaw(block);
}

bool is_frozen(const void* block) noexcept {
    return block != nullptr && freezer().is_frozen(block);
}

FreezeStatistics freeze_statistics() noexcept {
    return freezer().statistics();
}

FreezeStatistics freeze_statistics(const void* block) noexcept {
    return freezer().statistics(block);
}

}  // namespace tensorpool
