#include "blocks/cache.hpp"

#include "blocks/marked_set.hpp"

namespace tensorpool::blocks {
namespace {

constexpr std::size_t max_parked_bytes = std::size_t{4} << 20;

// The number of trips to depots and spans between two checks for idle buckets. It is small enough
// that a phase with other sizes returns the blocks of the previous phase, and large enough for the
// cost to be negligible.
constexpr unsigned trips_per_look = 256;

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

bool ParkedRoom::grow_again(MagazinePair& pair, pages::Changes& changes) noexcept {
    const unsigned max_capacity = pair.loaded.bucket().traits.layout.max_in_magazine;
    const unsigned capacity = std::min(pair.capacity * 2U, max_capacity);
    const std::size_t more =
        2 * (capacity - pair.capacity) * pair.loaded.bucket().traits.block_bytes;
    if (capacity_bytes_ + more > max_parked_bytes ||
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
    pair.capacity = static_cast<std::uint8_t>(capacity);
    pair.largest = static_cast<std::uint8_t>(largest);
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

void Cache::begin(BucketSet& set, statistics::OwnedCounters& owned) noexcept {
    set_ = &set;
    owned_counters_ = &owned;
    counters = owned.counters;
    bytes_to_sample = set.shared().samples_requests ? 0 : never_sampled;
    // In a scope every free takes the slow path: a marked cache has no room that inline paths see.
    const bool hides_frees =
        set.is_marked() || set.shared().hides_frees.load(std::memory_order_relaxed);
    first_unguarded.store(hides_frees ? UINTPTR_MAX : pages::address_space().first_unguarded(),
                          std::memory_order_relaxed);
    marked = nullptr;
    is_listed = false;
    exposed_to_.store(nullptr, std::memory_order_relaxed);
    countdown = {};
    lock_.unlock();  // a thread that does not exist in the child of a fork may have held it
    was_closed_ = false;
    seen_calls = 0;
    seen_large_calls = 0;
    large.begin(set, counters->large);
    room_.begin(set);
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        pairs_[bucket].begin(set[bucket], loaded[bucket], counters->buckets[bucket]);
    }
}

void Cache::open() noexcept {
    was_closed_ = false;
    for (MagazinePair& pair : pairs_) pair.loaded.open(pair.usable_capacity());
}

void* Cache::pop_slow(unsigned bucket, std::size_t requested_bytes,
                      pages::SlowPath& path) noexcept {
    statistics::look_at_scopes();
    const SlowCall call(*this);
    // Whether the request is sampled has been decided.
    const std::int64_t left = std::exchange(bytes_to_sample, never_sampled);
    // A block may be left if another thread has taken back only some.
    void* block = pop(bucket, requested_bytes);
    if (block == nullptr) {
        MagazinePair& pair = pairs_[bucket];
        const bool has_blocks = set_->is_marked()
                                    ? expose(bucket, path)
                                    : exchange_for_full(pair, path) || load_from_spans(pair, path);
        if (has_blocks) block = pop(bucket, requested_bytes);
    }
    bytes_to_sample = block == nullptr ? left : left - static_cast<std::int64_t>(requested_bytes);
    return block;
}

void Cache::push_slow(unsigned bucket, void* block, pages::Changes& changes) noexcept {
    statistics::look_at_scopes();
    const SlowCall call(*this);
    MagazinePair& pair = pairs_[bucket];
    if (make_room(pair, changes)) {
        set_->is_marked() ? pair.loaded.push_concealed(block) : void(push(bucket, block));
        return;
    }
    // There is no magazine, so the block goes home directly. It is counted as freed and then as
    // returned, as if it had passed through a magazine.
    detail::add_release(pair.loaded.counted().deallocations, 1);
    detail::add_release(pair.loaded.counted().returned, 1);
    pair.loaded.bucket().spans.bring_home(&block, 1, changes);
}

void* Cache::pop_exchanged(unsigned bucket, std::size_t requested_bytes,
                           pages::Changes& changes) noexcept {
    statistics::look_at_scopes();
    const SlowCall call(*this);
    return exchange_for_full(pairs_[bucket], changes) ? pop(bucket, requested_bytes) : nullptr;
}

bool Cache::exchange_for_full(MagazinePair& pair, pages::Changes& changes) noexcept {
    if (pair.load_full_spare()) return true;
    count_trip(changes);
    if (!may_park(pair, changes)) return false;
    room_.grow(pair, changes);
    Magazine* const full = room_.take_full(pair, changes);
    if (full == nullptr) return false;
    const unsigned blocks = full->count;
    pair.load(*full);
    detail::add(pair.loaded.counted().depot_hits, 1);
    detail::add(pair.loaded.counted().taken, blocks);
    detail::add(pair.loaded.counted().misses, 1);
    return true;
}

bool Cache::load_from_spans(MagazinePair& pair, pages::SlowPath& path) noexcept {
    Magazine* const magazine = pair.loaded_or_empty();
    if (magazine == nullptr) {
        path.refusal = pages::no_records();
        return false;
    }
    const std::size_t grown_before = path.grown;
    magazine->count = take_from_spans(pair, magazine->blocks, path);
    const bool any = magazine->count != 0;
    detail::add(pair.loaded.counted().system_misses, path.grown != grown_before && any ? 1 : 0);
    detail::add(pair.loaded.counted().taken, magazine->count);
    detail::add(pair.loaded.counted().misses, any ? 1 : 0);
    pair.loaded.load(*magazine, pair.usable_capacity());
    return any;
}

// Before the pool grows, this thread's parked blocks of other sizes and all blocks in depots return
// to their spans.
unsigned Cache::take_from_spans(MagazinePair& pair, void** blocks, pages::SlowPath& path) noexcept {
    const unsigned max_count = std::max(1U, pair.usable_capacity());
    path.may_grow = false;
    unsigned count = pair.loaded.bucket().spans.take(blocks, max_count, path);
    path.may_grow = true;
    if (count != 0) return count;
    for (MagazinePair& other : pairs_) {
        if (&other != &pair) give_back(other, path);
    }
    set_->for_each_series([&](const BucketSet& series) {
        Cache* const cache = own_cache(series);
        if (cache != nullptr && cache != this) cache->give_back_blocks(path);
    });
    set_->drain(BucketDepot::Magazines::keep, path);
    return pair.loaded.bucket().spans.take(blocks, max_count, path);
}

bool Cache::make_room(MagazinePair& pair, pages::Changes& changes) noexcept {
    if (!may_park(pair, changes)) return false;
    const auto has_room = [&] { return pair.loaded.has_room(pair.capacity); };
    if (has_room()) return true;  // another thread has taken blocks back
    conceal(pair);
    if (pair.load_empty_spare()) return true;
    if (pair.loaded.magazine() != nullptr && room_.grow(pair, changes) && has_room()) return true;
    count_trip(changes);
    return may_park(pair, changes) && pair.load_empty(changes);
}

bool Cache::may_park(MagazinePair& pair, pages::Changes& changes) noexcept {
    if (pair.may_park || room_.take(pair)) return true;
    // All threads together hold too much. While this thread waits for the registry's lock, others
    // may take back its own blocks.
    lock_.unlock();
    blocks::take_back(*set_, TakeFrom::enough, changes);
    SlowCall::enter(*this);
    return room_.take(pair);
}

void Cache::give_back(MagazinePair& pair, pages::Changes& changes) noexcept {
    conceal(pair);
    pair.give_back(changes);
    room_.give_back(pair);
}

void Cache::count_trip(pages::Changes& changes) noexcept {
    set_->counters().fold(*owned_counters_);
    if (++room_.trips % trips_per_look != 0) return;
    for (MagazinePair& pair : pairs_) {
        if (!pair.was_idle()) continue;
        give_back(pair, changes);
        room_.forget_growth(pair);
    }
}

bool Cache::close() noexcept {
    if (!lock_.is_claimed() || !large.lock.is_claimed()) return false;
    for (MagazinePair& pair : pairs_) {
        was_closed_ ? pair.loaded.close_again() : pair.loaded.close();
    }
    was_closed_ = true;
    return true;
}

void Cache::take_back(pages::Changes& changes) noexcept {
    std::size_t exposed = 0;
    for (MagazinePair& pair : pairs_) {
        exposed += pair.take_back(changes);
        room_.give_back(pair);
        room_.forget_growth(pair);
    }
    if (exposed_to() != nullptr) exposed_to()->refund(exposed);
    large.empty(changes);
}

void abandon(Cache& cache) noexcept {
    detail::ThreadCounters& counters = *cache.counters;
    for (detail::BucketCounters& counted : counters.buckets) {
        // Also if what it parks is below 0: the fork may have come between two updates of the
        // counters.
        base::write(counted.returned, base::read(counted.taken) - base::read(counted.allocations) +
                                          base::read(counted.deallocations));
    }
    const std::uint64_t large = counters.large.parked_bytes.exchange(0, std::memory_order_relaxed);
    cache.set().heap().kept().note_elsewhere(-static_cast<std::ptrdiff_t>(large));
    statistics::PoolTotals& totals = cache.set().totals();
    totals.lost_large_bytes.fetch_add(large, std::memory_order_relaxed);
    // Large blocks are counted without a lock, so `held_bytes` may not contain all of them.
    totals.let_go(std::min(base::read(totals.held_bytes), large));
}

void count_lost(BucketSet& first) noexcept {
    statistics::PoolTotals& totals = first.totals();
    const pages::PageMap& map = first.heap().space().map();
    std::uint64_t known = base::read(totals.lost_bytes);
    known += first.shared().quarantine.bytes_of_those(
        [&](const void* block) { return map.at(block).is_bucket(); });
    first.for_each_series([&](BucketSet& series) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            known += series[bucket].depot.bytes();
        }
    });
    // Blocks that threads park or have handed out.
    first.counters().for_each([&](const detail::ThreadCounters& thread, unsigned series) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            const detail::BucketCounters& counted = thread.buckets[bucket];
            known += (base::read(counted.taken) - base::read(counted.returned)) *
                     base::block_bytes(series, bucket);
        }
    });
    std::uint64_t out = 0;
    for (const detail::Counter& of_row : totals.bucket_out_bytes) out += base::read(of_row);
    const std::uint64_t lost = statistics::above(out, known);
    totals.lost_bytes.fetch_add(lost, std::memory_order_relaxed);
    // Blocks that other threads got between the copies of these counters are not in all of them.
    totals.let_go(std::min(base::read(totals.held_bytes), lost));
}

// Charges blocks of the loaded magazine to the budget of the thread's scope, as far as the limits
// allow. REQUIRES: no block is exposed.
bool Cache::expose(unsigned bucket, pages::SlowPath& path) noexcept {
    MagazinePair& pair = pairs_[bucket];
    if (pair.loaded.concealed() != 0) count_trip(path);  // which may take them away
    if (pair.loaded.concealed() == 0 && !exchange_for_full(pair, path) &&
        !load_from_spans(pair, path)) {
        return false;
    }
    const std::size_t block_bytes = set_->block_bytes(bucket);
    detail::BudgetNode& budget = *limits::scope_budget;
    const std::size_t charged =
        budget.charge(block_bytes, pair.loaded.to_expose() * block_bytes, block_bytes, path.budget);
    if (charged == 0) {
        path.refusal = path.budget.refusal();
        give_back(pair, path);  // another thread could not take it back if there was no room for it
        return false;
    }
    const std::size_t count = charged / block_bytes;
    note_addresses(*set_, pair.loaded.expose(count, budget), count);
    exposed_to_.store(&budget, std::memory_order_relaxed);
    exposing_ |= 1u << bucket;
    if (!is_listed) own_caches().list_exposing(*this);
    return true;
}

bool Cache::try_conceal() noexcept {
    if (!lock_.try_lock()) return false;
    if (was_closed_) open();
    std::size_t bytes = 0;
    for (; exposing_ != 0; exposing_ &= exposing_ - 1) {
        bytes += pairs_[std::countr_zero(exposing_)].loaded.conceal();
    }
    if (exposed_to() != nullptr) exposed_to()->refund(bytes);
    exposed_to_.store(nullptr, std::memory_order_relaxed);
    lock_.unlock();
    return true;
}

bool Cache::push_exposed(unsigned bucket, void* block, const base::BlockMark* mark) noexcept {
    if (mark != exposed_to() || !lock_.try_lock()) [[unlikely]]
        return false;
    MagazinePair& pair = pairs_[bucket];
    const bool has_room = !was_closed_ && pair.loaded.has_room(pair.usable_capacity());
    if (has_room) [[likely]] {
        pair.loaded.push_exposed(block);
        exposing_ |= 1u << bucket;
    }
    lock_.unlock();
    return has_room;
}

}  // namespace tensorpool::blocks
