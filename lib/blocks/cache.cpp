#include "blocks/cache.hpp"

#include <algorithm>
#include <utility>

#include "blocks/bucket_set.hpp"

namespace tensorpool::blocks {
namespace {

constexpr std::size_t most_parked_bytes = std::size_t{4} << 20;
// Trips to depots and spans between two looks for idle buckets: often enough that a phase of other
// sizes gives the last one's blocks back, rare enough to cost nothing.
constexpr unsigned trips_per_look = 256;

}  // namespace

void Cache::begin(BucketSet& set, statistics::CounterSlot& slot) noexcept {
    set_ = &set;
    slot_ = &slot;
    counters = slot.counters;
    trips_ = 0;
    may_park_bytes_ = 0;
    credit_bytes_ = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        loaded[bucket] = {};
        sides_[bucket] = {};
        const BucketLayout& layout = set[bucket].layout();
        sides_[bucket].capacity = static_cast<std::uint16_t>(layout.first_refill);
        may_park_bytes_ += 2 * layout.first_refill * set[bucket].block_bytes();
    }
}

void* Cache::pop_slow(unsigned bucket, std::size_t requested_bytes,
                      pages::SlowPath& path) noexcept {
    statistics::look_at_scopes();
    return refill(bucket, path) ? pop(bucket, requested_bytes) : nullptr;
}

void Cache::push_slow(unsigned bucket, void* block, pages::Changes& changes) noexcept {
    statistics::look_at_scopes();
    if (make_room(bucket, changes)) {
        push(bucket, block);
        return;
    }
    // No memory for a magazine: straight home. Freed, then returned, as if it had passed through.
    detail::add_release(counters->buckets[bucket].deallocations, 1);
    count_returned(bucket, 1);
    (*set_)[bucket].bring_home(&block, 1, changes);
}

bool Cache::refill(unsigned bucket, pages::SlowPath& path) noexcept {
    Side& side = sides_[bucket];
    if (side.spare != nullptr && side.spare->count != 0) {
        swap(bucket);
        return true;
    }
    count_trip();
    grow(bucket);
    if (!load_from_depot(bucket) && !load_from_spans(bucket, path)) return false;
    detail::add(counters->buckets[bucket].misses, 1);
    return true;
}

bool Cache::load_from_depot(unsigned bucket) noexcept {
    Magazine* const full = (*set_)[bucket].take_full();
    if (full == nullptr) return false;
    Side& side = sides_[bucket];
    if (side.spare != nullptr) give(bucket, side.spare);
    if (side.loaded != nullptr) unload(bucket);
    const unsigned blocks = full->count;
    load(bucket, *full);
    detail::add(counters->buckets[bucket].depot_hits, 1);
    count_taken(bucket, blocks);
    return true;
}

bool Cache::load_from_spans(unsigned bucket, pages::SlowPath& path) noexcept {
    Side& side = sides_[bucket];
    Bucket& central = (*set_)[bucket];
    if (side.loaded == nullptr) {
        Magazine* const empty = central.take_empty(Bucket::MayMake::always);
        if (empty == nullptr) {
            path.refusal = pages::no_records();
            return false;
        }
        empty->count = 0;
        load(bucket, *empty);
    }
    Magazine& magazine = *side.loaded;
    const std::size_t grown_before = path.grown;
    magazine.count = take_from_spans(bucket, magazine.blocks, path);
    const bool grew = path.grown != grown_before && magazine.count != 0;
    detail::add(counters->buckets[bucket].system_misses, grew ? 1 : 0);
    count_taken(bucket, magazine.count);
    const bool any = magazine.count != 0;
    load(bucket, magazine);
    return any;
}

// Before the pool grows, what this thread has parked of other sizes and what lies in depots comes
// home.
unsigned Cache::take_from_spans(unsigned bucket, void** blocks, pages::SlowPath& path) noexcept {
    Bucket& central = (*set_)[bucket];
    const unsigned most = sides_[bucket].capacity;
    path.may_grow = false;
    unsigned count = central.take(blocks, most, path);
    path.may_grow = true;
    if (count != 0) return count;
    for (unsigned other = 0; other < detail::bucket_count; ++other) {
        if (other != bucket) give_back(other);
    }
    set_->drain(Bucket::Magazines::keep, path);
    return central.take(blocks, most, path);
}

bool Cache::make_room(unsigned bucket, pages::Changes& changes) noexcept {
    Side& side = sides_[bucket];
    if (side.loaded != nullptr && side.spare != nullptr && side.spare->count == 0) {
        swap(bucket);
        return true;
    }
    if (side.loaded != nullptr && grow(bucket) && loaded[bucket].top != loaded[bucket].limit) {
        return true;
    }
    count_trip();
    return load_empty(bucket, changes);
}

// The loaded magazine, if there is one, is full, and so is the spare.
bool Cache::load_empty(unsigned bucket, pages::Changes& changes) noexcept {
    Side& side = sides_[bucket];
    Bucket& central = (*set_)[bucket];
    const auto may_make =
        side.spare == nullptr ? Bucket::MayMake::always : Bucket::MayMake::within_limit;
    Magazine* empty = nullptr;
    if (side.spare == nullptr || central.may_keep(side.spare->count)) {
        empty = central.take_empty(may_make);
        central.drain_after_exchange(changes);
    }
    if (empty == nullptr && side.spare != nullptr) {
        empty = std::exchange(side.spare, nullptr);
        count_returned(bucket, empty->count);
        central.bring_home(empty->blocks, empty->count, changes);
    }
    if (empty == nullptr) return false;
    empty->count = 0;
    if (side.spare != nullptr) give(bucket, side.spare);
    if (side.loaded != nullptr) unload(bucket);
    load(bucket, *empty);
    return true;
}

bool Cache::parks(unsigned bucket, const void* block) const noexcept {
    const detail::LoadedMagazine& magazine = loaded[bucket];
    if (std::find(magazine.bottom, magazine.top, block) != magazine.top) return true;
    const Magazine* const spare = sides_[bucket].spare;
    return spare != nullptr && std::find(spare->blocks, spare->blocks + spare->count, block) !=
                                   spare->blocks + spare->count;
}

void Cache::give_back_all() noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) give_back(bucket);
    set_->totals().let_go(std::exchange(credit_bytes_, 0));
}

void Cache::give_back(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    if (side.spare != nullptr) give(bucket, side.spare);
    if (side.loaded == nullptr) return;
    unload(bucket);
    give(bucket, side.spare);
}

void Cache::abandon() noexcept {
    std::size_t lost = 0;
    const auto read = [](const detail::Counter& counter) {
        return static_cast<std::int64_t>(counter.load(std::memory_order_relaxed));
    };
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const detail::BucketCounters& counted = counters->buckets[bucket];
        // The thread may have stood between two of its counts.
        const std::int64_t parked = read(counted.taken) - read(counted.returned) -
                                    read(counted.allocations) + read(counted.deallocations);
        if (parked <= 0) continue;
        const auto blocks = static_cast<std::uint64_t>(parked);
        detail::add(counters->buckets[bucket].returned, blocks);
        lost += blocks * detail::bucket_bytes(bucket);
    }
    set_->totals().lost_bytes.fetch_add(lost, std::memory_order_relaxed);
    // Nor had it to have counted as held all that it had counted as taken.
    const std::uint64_t held = set_->totals().held_bytes.load(std::memory_order_relaxed);
    set_->totals().let_go(std::min(held, lost + std::exchange(credit_bytes_, 0)));
}

void Cache::load(unsigned bucket, Magazine& magazine) noexcept {
    Side& side = sides_[bucket];
    side.loaded = &magazine;
    void** const bottom = magazine.blocks;
    void** const top = bottom + magazine.count;
    // Another thread's magazine may hold more than this one's capacity.
    loaded[bucket] = {.top = top, .bottom = bottom, .limit = std::max(top, bottom + side.capacity)};
}

// The loaded magazine becomes the spare, of which there is none.
void Cache::unload(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    side.loaded->count = static_cast<unsigned>(loaded[bucket].top - loaded[bucket].bottom);
    side.spare = std::exchange(side.loaded, nullptr);
    loaded[bucket] = {};
}

void Cache::swap(unsigned bucket) noexcept {
    Magazine* const spare = std::exchange(sides_[bucket].spare, nullptr);
    unload(bucket);
    load(bucket, *spare);
}

void Cache::give(unsigned bucket, Magazine*& magazine) noexcept {
    count_returned(bucket, magazine->count);
    (*set_)[bucket].give(*std::exchange(magazine, nullptr));
}

// True when the capacity grew: the second trip to the depot since the last change says that the
// bucket is busy.
bool Cache::grow(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    if (!std::exchange(side.went_to_depot, true)) return false;
    const BucketLayout& layout = (*set_)[bucket].layout();
    const unsigned capacity = std::min<unsigned>(side.capacity * 2U, layout.most_in_magazine);
    const std::size_t more = 2 * (capacity - side.capacity) * (*set_)[bucket].block_bytes();
    if (more == 0 || may_park_bytes_ + more > most_parked_bytes) return false;
    may_park_bytes_ += more;
    side.capacity = static_cast<std::uint16_t>(capacity);
    side.went_to_depot = false;
    if (side.loaded != nullptr) {
        loaded[bucket].limit = std::max(loaded[bucket].limit, loaded[bucket].bottom + capacity);
    }
    return true;
}

void Cache::count_trip() noexcept {
    set_->slots().fold(*slot_);
    if (++trips_ % trips_per_look == 0) give_back_idle();
}

void Cache::give_back_idle() noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        Side& side = sides_[bucket];
        const detail::BucketCounters& counted = counters->buckets[bucket];
        const std::uint64_t operations = counted.allocations.load(std::memory_order_relaxed) +
                                         counted.deallocations.load(std::memory_order_relaxed);
        if (std::exchange(side.seen, operations) != operations) continue;
        give_back(bucket);
        const unsigned first = (*set_)[bucket].layout().first_refill;
        may_park_bytes_ -= 2 * (side.capacity - first) * (*set_)[bucket].block_bytes();
        side.capacity = static_cast<std::uint16_t>(first);
        side.went_to_depot = false;
    }
}

void Cache::charge(std::size_t bytes) noexcept {
    if (credit_bytes_ < bytes) {
        const std::uint64_t held = set_->totals().held_bytes.load(std::memory_order_relaxed);
        const std::size_t ahead = std::min<std::uint64_t>(most_credit_bytes, held / 32);
        const std::size_t more = bytes - credit_bytes_ + ahead;
        set_->totals().hold(more);
        credit_bytes_ += more;
    }
    credit_bytes_ -= bytes;
}

void Cache::refund(std::size_t bytes) noexcept {
    credit_bytes_ += bytes;
    if (credit_bytes_ <= 2 * most_credit_bytes) return;
    set_->totals().let_go(credit_bytes_ - most_credit_bytes);
    credit_bytes_ = most_credit_bytes;
}

void Cache::count_taken(unsigned bucket, std::size_t blocks) noexcept {
    charge(blocks * detail::bucket_bytes(bucket));
    detail::add(counters->buckets[bucket].taken, blocks);
}

void Cache::count_returned(unsigned bucket, std::size_t blocks) noexcept {
    detail::add_release(counters->buckets[bucket].returned, blocks);
    refund(blocks * detail::bucket_bytes(bucket));
}

}  // namespace tensorpool::blocks
