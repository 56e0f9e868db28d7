#include "blocks/cache.hpp"

#include <algorithm>
#include <utility>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {
namespace {

constexpr std::size_t max_parked_bytes = std::size_t{4} << 20;
// The number of trips to depots and spans between two checks for idle buckets. It is small enough
// that a phase with other sizes returns the blocks of the previous phase, and large enough for the
// cost to be negligible.
constexpr unsigned trips_per_look = 256;

void show(detail::LoadedMagazine& magazine, void** bottom, void** top, void** limit) noexcept {
    std::atomic_ref(magazine.top).store(top, std::memory_order_relaxed);
    magazine.bottom.store(bottom, std::memory_order_relaxed);
    magazine.limit.store(limit, std::memory_order_relaxed);
}

}  // namespace

void Cache::begin(BucketSet& set, statistics::OwnedCounters& owned) noexcept {
    set_ = &set;
    owned_counters_ = &owned;
    counters = owned.counters;
    bytes_to_sample = set.samples_requests() ? 0 : never_sampled;
    set_first_unguarded();
    marked = nullptr;
    is_listed = false;
    exposed_to_.store(nullptr, std::memory_order_relaxed);
    countdown = {};
    trips_ = 0;
    capacity_bytes_ = 0;
    lock_.unlock();  // a thread that does not exist in the child of a fork may have held it
    was_closed_ = false;
    may_park_bytes_.store(0, std::memory_order_relaxed);
    may_park_large_bytes_.store(0, std::memory_order_relaxed);
    large_.forget();
    seen_operations_ = 0;
    seen_large_operations_ = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        show(loaded[bucket], nullptr, nullptr, nullptr);
        sides_[bucket] = {};
        const unsigned first = set[bucket].layout().first_refill;
        sides_[bucket].capacity = static_cast<std::uint16_t>(first);
        sides_[bucket].largest = sides_[bucket].capacity;
        capacity_bytes_ += room(bucket);
    }
}

void Cache::enter_slow_call() noexcept {
    lock_.lock([] { thread_registry().wait_for_take_back(); });
    if (!std::exchange(was_closed_, false)) [[likely]]
        return;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) open_again(bucket);
}

// Another thread may have taken blocks from the bottom of the magazine. Moves the rest down.
void Cache::open_again(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    if (side.loaded == nullptr) {
        show(loaded[bucket], nullptr, nullptr, nullptr);
        return;
    }
    const std::ptrdiff_t concealed = side.exposed - side.bottom;
    void** const end = std::move(side.bottom, loaded[bucket].top, side.loaded->blocks);
    side.loaded->count = static_cast<unsigned>(end - side.loaded->blocks);
    load(bucket, *side.loaded);
    loaded[bucket].bottom.store(side.loaded->blocks + concealed, std::memory_order_relaxed);
}

void* Cache::pop_slow(unsigned bucket, std::size_t requested_bytes,
                      pages::SlowPath& path) noexcept {
    statistics::look_at_scopes();
    const SlowCall call(*this);
    // Whether the request is sampled has been decided.
    const std::int64_t left = std::exchange(bytes_to_sample, never_sampled);
    // A block may be left if another thread has taken back only some.
    void* block = pop(bucket, requested_bytes);
    if (block == nullptr && (set_->is_marked() ? expose(bucket, path) : refill(bucket, path)))
        block = pop(bucket, requested_bytes);
    bytes_to_sample = block == nullptr ? left : left - static_cast<std::int64_t>(requested_bytes);
    return block;
}

void Cache::push_slow(unsigned bucket, void* block, pages::Changes& changes) noexcept {
    statistics::look_at_scopes();
    const SlowCall call(*this);
    if (make_room(bucket, changes)) {
        set_->is_marked() ? push_marked(bucket, block) : void(push(bucket, block));
        return;
    }
    // There is no magazine, so the block goes home directly. It is counted as freed and then as
    // returned, as if it had passed through a magazine.
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
    const bool parks_some = may_park(bucket, path);
    if (parks_some) grow(bucket, path);
    const bool served = parks_some && load_from_depot(bucket, path);
    if (!served && !load_from_spans(bucket, path)) return false;
    detail::add(counters->buckets[bucket].misses, 1);
    return true;
}

bool Cache::load_from_depot(unsigned bucket, pages::Changes& changes) noexcept {
    Magazine* const full = (*set_)[bucket].take_full();
    if (full == nullptr) return false;
    Side& side = sides_[bucket];
    if (full->count > side.largest && !make_larger(bucket, side.capacity, full->count, changes)) {
        const unsigned more = full->count - side.largest;
        (*set_)[bucket].bring_home(full->blocks + side.largest, more, changes);
        full->count = side.largest;
    }
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

// Before the pool grows, this thread's parked blocks of other sizes and all blocks in depots return
// to their spans.
unsigned Cache::take_from_spans(unsigned bucket, void** blocks, pages::SlowPath& path) noexcept {
    Bucket& central = (*set_)[bucket];
    const unsigned max_count = sides_[bucket].may_park ? sides_[bucket].capacity : 1;
    path.may_grow = false;
    unsigned count = central.take(blocks, max_count, path);
    path.may_grow = true;
    if (count != 0) return count;
    for (unsigned other = 0; other < detail::bucket_count; ++other) {
        if (other != bucket) give_back(other);
    }
    set_->for_each_series([this](const BucketSet& series) {
        Cache* const cache = own_cache(series);
        if (cache != nullptr && cache != this) cache->give_back_blocks();
    });
    set_->drain(Bucket::Magazines::keep, path);
    return central.take(blocks, max_count, path);
}

bool Cache::make_room(unsigned bucket, pages::Changes& changes) noexcept {
    Side& side = sides_[bucket];
    const auto has_room = [&] { return loaded[bucket].top < room_end(bucket); };
    if (!may_park(bucket, changes)) return false;
    if (has_room()) return true;  // another thread has taken blocks back
    if (side.loaded != nullptr && side.spare != nullptr && side.spare->count == 0) {
        swap(bucket);
        return true;
    }
    if (side.loaded != nullptr && grow(bucket, changes) && has_room()) return true;
    count_trip();
    return may_park(bucket, changes) && load_empty(bucket, changes);
}

// REQUIRES: the loaded magazine, if there is one, is full, and so is the spare.
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

bool Cache::parks(unsigned bucket, const void* block) noexcept {
    const SlowCall call(*this);
    const detail::LoadedMagazine& magazine = loaded[bucket];
    void* const* const bottom = set_->is_marked() && sides_[bucket].loaded != nullptr
                                    ? sides_[bucket].loaded->blocks
                                    : magazine.bottom.load();
    if (std::find(bottom, const_cast<void* const*>(magazine.top), block) != magazine.top)
        return true;
    const Magazine* const spare = sides_[bucket].spare;
    return spare != nullptr && std::find(spare->blocks, spare->blocks + spare->count, block) !=
                                   spare->blocks + spare->count;
}

void Cache::give_back_blocks() noexcept {
    const SlowCall call(*this);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) give_back(bucket);
}

void Cache::give_back_all(pages::Changes& changes) noexcept {
    give_back_blocks();
    const SlowCall call(*this);
    empty_large(changes);
}

void Cache::give_back(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    if (side.spare != nullptr) give(bucket, side.spare);
    if (side.loaded != nullptr) {
        unload(bucket);
        give(bucket, side.spare);
    }
    park_no_more(bucket);
}

void Cache::abandon() noexcept {
    std::size_t lost = 0;
    const auto read = [](const detail::Counter& counter) {
        return static_cast<std::int64_t>(counter.load(std::memory_order_relaxed));
    };
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const detail::BucketCounters& counted = counters->buckets[bucket];
        // The fork may have come while the thread was between two updates of its counters.
        const std::int64_t parked = read(counted.taken) - read(counted.returned) -
                                    read(counted.allocations) + read(counted.deallocations);
        if (parked <= 0) continue;
        const auto blocks = static_cast<std::uint64_t>(parked);
        detail::add(counters->buckets[bucket].returned, blocks);
        lost += blocks * set_->block_bytes(bucket);
    }
    const std::uint64_t large = counters->large.parked_bytes.exchange(0, std::memory_order_relaxed);
    set_->heap().note_kept_elsewhere(-static_cast<std::ptrdiff_t>(large));
    set_->totals().lost_bytes.fetch_add(lost, std::memory_order_relaxed);
    set_->totals().lost_large_bytes.fetch_add(large, std::memory_order_relaxed);
    // Large blocks are counted without a lock, so `held_bytes` may not contain all of them.
    const std::uint64_t held = set_->totals().held_bytes.load(std::memory_order_relaxed);
    set_->totals().let_go(std::min(held, lost + large));
}

void Cache::load(unsigned bucket, Magazine& magazine) noexcept {
    Side& side = sides_[bucket];
    side.loaded = &magazine;
    void** const bottom = magazine.blocks;
    void** const top = bottom + magazine.count;
    if (set_->is_marked()) return show(loaded[bucket], top, top, nullptr);
    show(loaded[bucket], bottom, top,
         side.may_park ? std::max(top, bottom + side.capacity) : bottom);
}

// The position up to which the owner may push on a slow path. Inline paths see no room in a cache
// of the marked set: they cannot tell its blocks from others.
void** Cache::room_end(unsigned bucket) const noexcept {
    const Side& side = sides_[bucket];
    if (!set_->is_marked()) return loaded[bucket].limit;
    return side.loaded == nullptr || !side.may_park ? nullptr : side.loaded->blocks + side.capacity;
}

void Cache::set_first_unguarded() noexcept {
    // In a scope every free takes the slow path: a marked cache has no room that inline paths see.
    const bool hides =
        set_->is_marked() || set_->first().hides_frees.load(std::memory_order_relaxed);
    first_unguarded.store(hides ? UINTPTR_MAX : pages::address_space().first_unguarded(),
                          std::memory_order_relaxed);
}

// Makes the loaded magazine the spare. REQUIRES: there is no spare.
void Cache::unload(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    if (exposed_to() != nullptr) exposed_to()->refund(conceal(bucket));
    side.loaded->count = static_cast<unsigned>(loaded[bucket].top - side.loaded->blocks);
    side.spare = std::exchange(side.loaded, nullptr);
    show(loaded[bucket], nullptr, nullptr, nullptr);
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

// The bytes for which both magazines of a bucket have room.
std::size_t Cache::room(unsigned bucket) const noexcept {
    return (sides_[bucket].capacity + sides_[bucket].largest) * set_->block_bytes(bucket);
}

bool Cache::may_park(unsigned bucket, pages::Changes& changes) noexcept {
    Side& side = sides_[bucket];
    if (side.may_park) return true;
    if (!set_->parking_limit().take(room(bucket))) {
        // All threads together hold too much. While this thread waits for the registry's lock,
        // others may take back its own blocks.
        lock_.unlock();
        thread_registry().take_back(*set_, TakeFrom::enough, changes);
        enter_slow_call();
        if (!set_->parking_limit().take(room(bucket))) return false;
    }
    side.may_park = true;
    may_park_bytes_.store(may_park_bytes() + room(bucket), std::memory_order_relaxed);
    open_to_capacity(bucket);
    return true;
}

void Cache::park_no_more(unsigned bucket) noexcept {
    if (!std::exchange(sides_[bucket].may_park, false)) return;
    set_->parking_limit().give_back(room(bucket));
    may_park_bytes_.store(may_park_bytes() - room(bucket), std::memory_order_relaxed);
}

// Returns true if the capacity grew. A second trip to the depot since the last change shows that
// the bucket is busy.
bool Cache::grow(unsigned bucket, pages::Changes& changes) noexcept {
    Side& side = sides_[bucket];
    if (!std::exchange(side.went_to_depot, true)) return false;
    const unsigned max_capacity = (*set_)[bucket].layout().max_in_magazine;
    const unsigned capacity = std::min(side.capacity * 2U, max_capacity);
    const std::size_t more = 2 * (capacity - side.capacity) * set_->block_bytes(bucket);
    if (more == 0 || capacity_bytes_ + more > max_parked_bytes ||
        !make_larger(bucket, capacity, std::max<unsigned>(capacity, side.largest), changes)) {
        return false;
    }
    capacity_bytes_ += more;
    side.went_to_depot = false;
    open_to_capacity(bucket);
    return true;
}

bool Cache::make_larger(unsigned bucket, unsigned capacity, unsigned largest,
                        pages::Changes& changes) noexcept {
    Side& side = sides_[bucket];
    const std::size_t more = (capacity + largest) * set_->block_bytes(bucket) - room(bucket);
    // Blocks are taken only from idle threads. A pass over all threads costs as much as several
    // trips, so it is made on every 64th trip only.
    ParkingLimit& limit = set_->parking_limit();
    bool has_room = limit.take(more);
    if (!has_room && trips_ % 64 == 0) {
        thread_registry().take_back(*set_, TakeFrom::idle, changes);
        has_room = limit.take(more);
    }
    if (!has_room) return false;
    may_park_bytes_.store(may_park_bytes() + more, std::memory_order_relaxed);
    side.capacity = static_cast<std::uint16_t>(capacity);
    side.largest = static_cast<std::uint16_t>(largest);
    return true;
}

// Lets the loaded magazine fill up to the capacity.
void Cache::open_to_capacity(unsigned bucket) noexcept {
    const Side& side = sides_[bucket];
    if (side.loaded == nullptr || set_->is_marked()) return;
    loaded[bucket].limit.store(side.loaded->blocks + side.capacity, std::memory_order_relaxed);
}

void Cache::count_trip() noexcept {
    set_->counters().fold(*owned_counters_);
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
        forget_growth(bucket);
    }
}

// REQUIRES: the bucket parks nothing.
void Cache::forget_growth(unsigned bucket) noexcept {
    Side& side = sides_[bucket];
    const unsigned first = (*set_)[bucket].layout().first_refill;
    capacity_bytes_ -= 2 * (side.capacity - first) * set_->block_bytes(bucket);
    side.capacity = static_cast<std::uint16_t>(first);
    side.largest = side.capacity;
    side.went_to_depot = false;
}

void Cache::count_taken(unsigned bucket, std::size_t blocks) noexcept {
    detail::add(counters->buckets[bucket].taken, blocks);
}

void Cache::count_returned(unsigned bucket, std::size_t blocks) noexcept {
    detail::add_release(counters->buckets[bucket].returned, blocks);
}

}  // namespace tensorpool::blocks
