#include "blocks/magazine_pair.hpp"

#include <algorithm>
#include <utility>

namespace tensorpool::blocks {

void MagazinePair::begin(Bucket& bucket, detail::LoadedMagazine& view,
                         detail::BucketCounters& counted) noexcept {
    *this = {};
    loaded.begin(bucket, view, counted);
    capacity = largest = static_cast<std::uint16_t>(bucket.traits.layout.first_refill);
}

bool MagazinePair::parks(const void* block) const noexcept {
    if (loaded.holds(block)) return true;
    if (spare_ == nullptr) return false;
    const void* const* const end = spare_->blocks + spare_->count;
    return std::find<const void* const*>(spare_->blocks, end, block) != end;
}

bool MagazinePair::load_full_spare() noexcept {
    if (spare_ == nullptr || spare_->count == 0) return false;
    swap();
    return true;
}

bool MagazinePair::load_empty_spare() noexcept {
    if (loaded.magazine() == nullptr || spare_ == nullptr || spare_->count != 0) return false;
    swap();
    return true;
}

void MagazinePair::swap() noexcept {
    Magazine* const spare = std::exchange(spare_, nullptr);
    if (loaded.magazine() != nullptr) spare_ = &loaded.unload();
    loaded.load(*spare, usable_capacity());
}

void MagazinePair::load(Magazine& magazine) noexcept {
    if (spare_ != nullptr) give(*spare_);
    spare_ = &magazine;
    swap();
}

bool MagazinePair::load_empty(pages::Changes& changes) noexcept {
    const auto may_make =
        spare_ == nullptr ? BucketDepot::MayMake::always : BucketDepot::MayMake::within_limit;
    Magazine* empty = nullptr;
    if (spare_ == nullptr || loaded.bucket().depot.may_keep(spare_->count)) {
        empty = loaded.bucket().depot.take_empty(may_make);
        loaded.bucket().depot.drain_after_exchange(changes);
    }
    if (empty == nullptr && spare_ != nullptr) {
        empty = std::exchange(spare_, nullptr);
        bring_home(*empty, changes);
    }
    if (empty == nullptr) return false;
    empty->count = 0;
    load(*empty);
    return true;
}

Magazine* MagazinePair::loaded_or_empty() noexcept {
    if (loaded.magazine() == nullptr) {
        Magazine* const empty = loaded.bucket().depot.take_empty(BucketDepot::MayMake::always);
        if (empty == nullptr) return nullptr;
        empty->count = 0;
        loaded.load(*empty, usable_capacity());
    }
    return loaded.magazine();
}

void MagazinePair::give_back() noexcept {
    if (spare_ != nullptr) give(*std::exchange(spare_, nullptr));
    if (loaded.magazine() != nullptr) give(loaded.unload());
}

std::size_t MagazinePair::take_back(pages::Changes& changes) noexcept {
    const std::size_t exposed = loaded.take_back(changes);
    if (Magazine* const spare = std::exchange(spare_, nullptr)) {
        bring_home(*spare, changes);
        spare->count = 0;
        loaded.bucket().depot.give(*spare);
    }
    return exposed;
}

bool MagazinePair::was_idle() noexcept {
    const std::uint64_t operations = loaded.counted().allocations.load(std::memory_order_relaxed) +
                                     loaded.counted().deallocations.load(std::memory_order_relaxed);
    return std::exchange(seen_, operations) == operations;
}

void MagazinePair::give(Magazine& magazine) noexcept {
    detail::add_release(loaded.counted().returned, magazine.count);
    loaded.bucket().depot.give(magazine);
}

void MagazinePair::bring_home(const Magazine& magazine, pages::Changes& changes) noexcept {
    if (magazine.count == 0) return;
    detail::add_release(loaded.counted().returned, magazine.count);
    loaded.bucket().spans.bring_home(magazine.blocks, magazine.count, changes);
}

}  // namespace tensorpool::blocks
