// In Boost 1.74, the only constructor that takes an allocator asserts that the stack's size is
// fixed. This stack's is not, but the constructor does what is needed without that assertion. It is
// used in this file only.
#define BOOST_DISABLE_ASSERTS

#include "blocks/depot.hpp"

#include <memory>

namespace tensorpool::blocks {

bool MagazineTable::enter(Magazine& magazine) noexcept {
    if (unused_ == nothing && !add_chunk()) return false;
    Entry& entry = (*this)[unused_];
    magazine.number = std::exchange(unused_, entry.below.load(std::memory_order_relaxed));
    entry.magazine = &magazine;
    return true;
}

// Doubles the number of entries.
bool MagazineTable::add_chunk() noexcept {
    const Number count = end_;
    if (count >> number_bits != 0) return false;
    void* const memory = records_.allocate(count * sizeof(Entry), alignof(Entry));
    if (memory == nullptr) return false;
    auto* const entries = static_cast<Entry*>(memory);
    std::uninitialized_default_construct_n(entries, count);
    chunks_[bits_of(count)].store(entries, std::memory_order_relaxed);
    for (Number i = count; i != 0; --i) {
        entries[i - 1].below.store(unused_, std::memory_order_relaxed);
        unused_ = end_ + i - 1;
    }
    end_ += count;
    return true;
}

// Boost.Atomic begins with an uninitialized pointer, which the stack's constructor then sets.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

DepotShard::DepotShard(const MagazineTable& table, pages::RecordArena& records)
    : full_(table), empty_(RecordAllocator<Magazine*>(records)) {}

// Not inline in the functions of depots: ThreadSanitizer then finds the functions of
// Boost.Lockfree, whose accesses it must ignore.
[[gnu::noinline]] Magazine* DepotShard::take_empty() noexcept {
    Magazine* magazine = nullptr;
    return empty_.pop(magazine) ? magazine : nullptr;
}

[[gnu::noinline]] bool DepotShard::give_empty(Magazine& magazine) noexcept {
    return empty_.bounded_push(&magazine);
}

bool DepotShard::add_node() noexcept {
    try {
        empty_.reserve(1);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

Depot::Depot(pages::RecordArena& records)
    : records_(records), table_(records), shards_(table_, records) {}

DepotShard& Depot::make_own_shard() noexcept {
    const auto make = [this](unsigned) noexcept -> DepotShard* {
        void* const memory = records_.allocate(sizeof(DepotShard), alignof(DepotShard));
        try {
            return memory == nullptr ? nullptr : new (memory) DepotShard(table_, records_);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    };
    return shards_.own(make, [](DepotShard& unused) noexcept { unused.~DepotShard(); });
}

bool Depot::enter(Magazine& magazine) noexcept {
    if (nodes_ == entered_) {
        if (!own_shard().add_node()) return false;
        ++nodes_;
    }
    if (!table_.enter(magazine)) return false;
    ++entered_;
    return true;
}

Magazine* Depot::take_from_others(const DepotShard& own,
                                  Magazine* (DepotShard::*take)() noexcept) noexcept {
    Magazine* magazine = nullptr;
    shards_.for_each_other(own, [&](DepotShard& other) {
        if (magazine == nullptr) magazine = (other.*take)();
    });
    return magazine;
}

// A pass over all shards finds no free node only if other threads use and free nodes during it.
void Depot::give_empty_to_others(Magazine& magazine) noexcept {
    constexpr int max_passes = 10'000;
    bool given = false;
    for (int pass = 0; pass != max_passes && !given; ++pass) {
        shards_.for_each([&](DepotShard& shard) { given = given || shard.give_empty(magazine); });
    }
    if (given) return;
    platform::fail("depot: no room for magazine %p, although room was reserved when it was made",
                   static_cast<const void*>(&magazine));
}

}  // namespace tensorpool::blocks
