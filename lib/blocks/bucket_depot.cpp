#include "blocks/bucket_depot.hpp"

namespace tensorpool::blocks {
namespace {

// The pointer arrays of a depot stay below 1/256 of the bucket's capacity, so that together with
// the page map and span records (1/180 at 64 B) all records stay below 1 % of it. A minimum of
// 256 KiB is always allowed, so that threads can exchange magazines.
constexpr std::size_t capacity_per_array_byte = 256;
constexpr std::size_t min_array_bytes = std::size_t{256} << 10;

// With less idle memory than this, returning it gains nothing.
constexpr std::size_t min_idle_bytes = std::size_t{2} << 20;

}  // namespace

BucketDepot::~BucketDepot() {
    // Its memory is freed with the records, blocks and magazines with the pool.
    if (Depot* const depot = depot_.load(std::memory_order_relaxed)) depot->~Depot();
}

void BucketDepot::give(Magazine& magazine) noexcept {
    Depot& depot = *depot_.load(std::memory_order_acquire);
    if (magazine.count != 0) {
        note_kept(magazine.count);
        depot.give_full(magazine);
    } else {
        depot.give_empty(magazine);
    }
}

bool BucketDepot::may_keep(unsigned blocks) noexcept {
    const std::size_t bytes = blocks * spans_.traits().block_bytes;
    // A finer size gets a quarter, so that the three finer sizes of a row together keep about as
    // much as the row's bucket.
    const std::size_t idle = sources().series == 0 ? min_idle_bytes : min_idle_bytes / 4;
    return spans_.are_at_least_half_out(idle) && sources().heap.kept().may_keep(bytes);
}

// A depot's period ends by the clock or here. If much of its content was taken, blocks that stayed
// all the time are not needed.
void BucketDepot::drain_after_exchange(pages::Changes& changes) noexcept {
    Depot* const depot = depot_.load(std::memory_order_acquire);
    if (depot == nullptr) return;
    DepotShard& own = depot->own_shard();
    const std::size_t bytes = own.blocks() * spans_.traits().block_bytes;
    if (bytes >= min_idle_bytes && own.taken() >= own.blocks() / 8) drain_unneeded(own, changes);
}

std::size_t BucketDepot::drain_unneeded(pages::Changes& changes) noexcept {
    Depot* const depot = depot_.load(std::memory_order_acquire);
    if (depot == nullptr) return 0;
    std::size_t bytes = 0;
    depot->for_each_shard([&](DepotShard& shard) { bytes += drain_unneeded(shard, changes); });
    return bytes;
}

std::size_t BucketDepot::drain_unneeded(DepotShard& shard, pages::Changes& changes) noexcept {
    const std::size_t unneeded = shard.unneeded();
    std::size_t bytes = 0;
    for (std::size_t drained = 0; drained < unneeded;) {
        Magazine* const magazine = shard.take_full();
        if (magazine == nullptr) break;
        note_kept(-static_cast<std::ptrdiff_t>(magazine->count));
        drained += magazine->count;
        bytes += bring_home(*magazine, changes);
        give(*magazine);
    }
    shard.begin_period();
    return bytes;
}

void BucketDepot::drain(Magazines magazines, pages::Changes& changes) noexcept {
    Depot* const depot = depot_.load(std::memory_order_acquire);
    if (depot == nullptr) return;
    MagazineList emptied;
    const auto empty = [&](Magazine& magazine) {
        bring_home(magazine, changes);
        emptied.push_front(magazine);
    };
    while (Magazine* const magazine = take_full()) empty(*magazine);
    if (magazines == Magazines::keep) {
        while (!emptied.empty()) {
            Magazine& magazine = emptied.front();
            emptied.pop_front();
            depot->give_empty(magazine);
        }
        return;
    }
    while (Magazine* const magazine = depot->take_empty()) empty(*magazine);
    {
        const std::lock_guard guard(spans_.first_shard());
        for (Magazine& magazine : emptied) {
            depot->leave(magazine);
            --magazines_;
        }
    }
    sources().magazines.destroy(emptied);
}

Magazine* BucketDepot::make_magazine(MayMake may_make) noexcept {
    const std::lock_guard guard(spans_.first_shard());
    const std::size_t limit =
        std::max(spans_.capacity() / capacity_per_array_byte, min_array_bytes);
    if (may_make == MayMake::within_limit && magazines_ * sizeof(Magazine) >= limit) return nullptr;
    Depot* const depot = make_depot();
    if (depot == nullptr) return nullptr;
    Magazine* const magazine = sources().magazines.make();
    if (magazine == nullptr) return nullptr;
    if (depot->enter(*magazine)) {
        ++magazines_;
        return magazine;
    }
    MagazineList unused;
    unused.push_front(*magazine);
    sources().magazines.destroy(unused);
    return nullptr;
}

Depot* BucketDepot::make_depot() noexcept {
    Depot* depot = depot_.load(std::memory_order_relaxed);
    if (depot != nullptr) return depot;
    void* const memory = sources().records.allocate(sizeof(Depot), alignof(Depot));
    if (memory == nullptr) return nullptr;
    try {
        depot = new (memory) Depot(sources().records);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    depot_.store(depot, std::memory_order_release);
    return depot;
}

}  // namespace tensorpool::blocks
