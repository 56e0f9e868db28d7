#include "pages/address_space.hpp"

#include "pages/look_ups.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

constinit AddressRange pool_addresses;
static_assert(AddressRange::bytes_per_word == pages::page_bytes);

// The caller holds the block. Entries of a span in use do not change, so they may be read.
std::size_t bytes_of_block_in_use(const void* p) noexcept {
    const pages::PageEntry entry = pages::address_space().map().at(p);
    if (entry.pool_number() == pages::exact_pool.load(std::memory_order_relaxed)) [[unlikely]] {
        // Acquire pairs with the release in `set_exact_size`.
        if (const auto exact = pages::exact_size.load(std::memory_order_acquire)) return exact(p);
    }
    return bytes_of_block(p);
}

bool lies_in_a_pool(const void* p) noexcept {
    return pages::address_space().is_lent(p);
}

std::size_t bytes_of_block(const void* p) noexcept {
    const pages::PageEntry entry = pages::address_space().map().at(p);
    if (entry.is_bucket()) return base::block_bytes(entry.series(), entry.bucket());
    if (entry.is_marked()) return base::block_bytes(0, entry.span()->marked_bucket());
    if (entry.kind() == pages::PageKind::served) return entry.served()->block_bytes(p);
    if (const pages::PlacedBlock* const block = entry.placed()) return block->requested;
    return entry.is_large_in_use() ? entry.span()->bytes() : 0;
}

bool lies_in_page_map(const void* p) noexcept {
    const pages::PageMap& map = pages::address_space().map();
    const auto offset =
        reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(map.entries());
    return offset < map.page_count() * sizeof(pages::PageMap::Word);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
