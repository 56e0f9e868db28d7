#include "statistics/segment/address_ranges.hpp"

#include "statistics/segment/segment.hpp"

namespace tensorpool::statistics {
namespace {

void store(MemoryRange& to, AddressRange range) noexcept {
    to.begin.store(range.begin, std::memory_order_relaxed);
    to.bytes.store(range.bytes, std::memory_order_relaxed);
}

}  // namespace

void show_address_ranges(AddressRange pools, AddressRange page_map) noexcept {
    SegmentHeader* const header = segment().header();
    if (header == nullptr) return;
    store(header->pool_addresses, pools);
    store(header->page_map, page_map);
}

}  // namespace tensorpool::statistics
