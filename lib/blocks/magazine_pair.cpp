#include "blocks/magazine_pair.hpp"

namespace tensorpool::blocks {
namespace {

// An address above every magazine.
void** beyond_all() noexcept {
    return reinterpret_cast<void**>(UINTPTR_MAX);
}

}  // namespace

void LoadedBlocks::begin(Bucket& bucket, detail::LoadedMagazine& view,
                         detail::BucketCounters& counted) noexcept {
    *this = {};
    bucket_ = &bucket;
    view_ = &view;
    counted_ = &counted;
    is_marked_ = bucket.traits.sources.is_marked;
    show(nullptr, nullptr, nullptr);
}

void LoadedBlocks::close_again() noexcept {
    view_->bottom.store(beyond_all(), std::memory_order_relaxed);
    view_->limit.store(nullptr, std::memory_order_relaxed);
}

// Another thread may have taken blocks from the bottom of the magazine. Moves the rest down.
void LoadedBlocks::open(unsigned capacity) noexcept {
    if (magazine_ == nullptr) return show(nullptr, nullptr, nullptr);
    void** const blocks = magazine_->blocks;
    void** const end = std::move(blocks + begin_, view_->top, blocks);
    magazine_->count = static_cast<unsigned>(end - blocks);
    load(*magazine_, capacity);
    view_->bottom.store(blocks + (exposed_ - begin_), std::memory_order_relaxed);
}

// The magazine itself stays: a call of its thread that is in progress may read or write the entry
// at its top.
std::size_t LoadedBlocks::take_back(pages::Changes& changes) noexcept {
    if (magazine_ == nullptr) return 0;
    void** const blocks = magazine_->blocks;
    // Acquire pairs with the owner's release in `push`. A `pop` of the owner that is about to fail
    // may have lowered the top below the bottom that an earlier call left.
    void** const top =
        std::max(blocks + exposed_, std::atomic_ref(view_->top).load(std::memory_order_acquire));
    const unsigned exposed = is_marked_ ? index_of(top) - exposed_ : 0U;
    set_marks(top - exposed, top, nullptr);
    if (const unsigned count = index_of(top) - begin_) {
        detail::add_release(counted_->returned, count);
        bucket_->spans.bring_home(blocks + begin_, count, changes);
    }
    begin_ = exposed_ = index_of(top);
    view_->bottom.store(top, std::memory_order_relaxed);
    view_->limit.store(top, std::memory_order_relaxed);
    return exposed * bucket_->traits.block_bytes;
}

void** LoadedBlocks::expose(std::size_t count, base::BlockMark& mark) noexcept {
    if (more_to_expose_ < 7) ++more_to_expose_;
    void** const bottom = view_->top - count;
    set_marks(bottom, view_->top, &mark);
    view_->bottom.store(bottom, std::memory_order_relaxed);
    return bottom;
}

std::size_t LoadedBlocks::conceal() noexcept {
    more_to_expose_ = 0;
    void** const bottom = view_->bottom.load(std::memory_order_relaxed);
    set_marks(bottom, view_->top, nullptr);
    view_->bottom.store(view_->top, std::memory_order_relaxed);
    return static_cast<std::size_t>(view_->top - bottom) * bucket_->traits.block_bytes;
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

std::size_t MagazinePair::take_back(pages::Changes& changes) noexcept {
    const std::size_t exposed = loaded.take_back(changes);
    if (Magazine* const spare = std::exchange(spare_, nullptr)) {
        bring_home(*spare, changes);
        spare->count = 0;
        loaded.bucket().depot.give(*spare);
    }
    return exposed;
}

}  // namespace tensorpool::blocks
