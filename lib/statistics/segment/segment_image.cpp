#include "statistics/segment/segment_image.hpp"

#include <algorithm>

namespace tensorpool::statistics {
namespace {

// Acquire: what a place held when it came into use is seen.
std::size_t used_of(const Region& region, std::size_t places) noexcept {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(region.used.load(std::memory_order_acquire), places));
}

}  // namespace

void SegmentImage::count() noexcept {
    scopes_ = used_of(header().scopes, scope_count);
    pools_ = used_of(header().pools, pool_count);
    arenas_ = used_of(header().arenas, arena_count);
    devices_ = used_of(header().devices, device_count);
    device_streams_ = used_of(header().device_streams, device_stream_count);
    planned_ = used_of(header().planned, planned_count);
    slots_ = used_of(header().slots, slot_count);
}

}  // namespace tensorpool::statistics
