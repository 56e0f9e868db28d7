#include "blocks/parked_room.hpp"

#include <algorithm>
#include <utility>

#include "blocks/bucket_set.hpp"
#include "blocks/take_back.hpp"

namespace tensorpool::blocks {
namespace {

constexpr std::size_t max_parked_bytes = std::size_t{4} << 20;

}  // namespace

void ParkedRoom::begin(BucketSet& set) noexcept {
    set_ = &set;
    trips = 0;
    capacity_bytes_ = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        capacity_bytes_ += 2 * set[bucket].traits.layout.first_refill * set.block_bytes(bucket);
    }
    bytes_.store(0, std::memory_order_relaxed);
}

bool ParkedRoom::take(MagazinePair& pair) noexcept {
    if (!set_->shared().parking_limit.take(pair.room_bytes())) return false;
    pair.may_park = true;
    add(pair.room_bytes());
    pair.loaded.set_capacity(pair.capacity);
    return true;
}

void ParkedRoom::give_back(MagazinePair& pair) noexcept {
    if (!std::exchange(pair.may_park, false)) return;
    set_->shared().parking_limit.give_back(pair.room_bytes());
    add(0 - pair.room_bytes());
}

bool ParkedRoom::grow(MagazinePair& pair, pages::Changes& changes) noexcept {
    if (!std::exchange(pair.went_to_depot, true)) return false;
    const unsigned max_capacity = pair.loaded.bucket().traits.layout.max_in_magazine;
    const unsigned capacity = std::min(pair.capacity * 2U, max_capacity);
    const std::size_t more =
        2 * (capacity - pair.capacity) * pair.loaded.bucket().traits.block_bytes;
    if (more == 0 || capacity_bytes_ + more > max_parked_bytes ||
        !enlarge(pair, capacity, std::max<unsigned>(capacity, pair.largest), changes)) {
        return false;
    }
    capacity_bytes_ += more;
    pair.went_to_depot = false;
    pair.loaded.set_capacity(capacity);
    return true;
}

bool ParkedRoom::enlarge(MagazinePair& pair, unsigned capacity, unsigned largest,
                         pages::Changes& changes) noexcept {
    const std::size_t more =
        (capacity + largest) * pair.loaded.bucket().traits.block_bytes - pair.room_bytes();
    // Blocks are taken only from idle threads. A pass over all threads costs as much as several
    // trips, so it is made on every 64th trip only.
    ParkingLimit& limit = set_->shared().parking_limit;
    bool has_room = limit.take(more);
    if (!has_room && trips % 64 == 0) {
        blocks::take_back(*set_, TakeFrom::idle, changes);
        has_room = limit.take(more);
    }
    if (!has_room) return false;
    add(more);
    pair.capacity = static_cast<std::uint16_t>(capacity);
    pair.largest = static_cast<std::uint16_t>(largest);
    return true;
}

Magazine* ParkedRoom::take_full(MagazinePair& pair, pages::Changes& changes) noexcept {
    Magazine* const full = pair.loaded.bucket().depot.take_full();
    if (full == nullptr || full->count <= pair.largest) return full;
    if (!enlarge(pair, pair.capacity, full->count, changes)) {
        const unsigned more = full->count - pair.largest;
        pair.loaded.bucket().spans.bring_home(full->blocks + pair.largest, more, changes);
        full->count = pair.largest;
    }
    return full;
}

void ParkedRoom::forget_growth(MagazinePair& pair) noexcept {
    const unsigned first = pair.loaded.bucket().traits.layout.first_refill;
    capacity_bytes_ -= 2 * (pair.capacity - first) * pair.loaded.bucket().traits.block_bytes;
    pair.capacity = pair.largest = static_cast<std::uint16_t>(first);
    pair.went_to_depot = false;
}

}  // namespace tensorpool::blocks
