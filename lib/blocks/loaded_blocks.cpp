#include "blocks/loaded_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "blocks/bucket_states.hpp"

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
    show(nullptr, nullptr, nullptr);
}

void LoadedBlocks::show(void** bottom, void** top, void** limit) noexcept {
    std::atomic_ref(view_->top).store(top, std::memory_order_relaxed);
    view_->bottom.store(bottom, std::memory_order_relaxed);
    view_->limit.store(limit, std::memory_order_relaxed);
}

void LoadedBlocks::load(Magazine& magazine, unsigned capacity) noexcept {
    magazine_ = &magazine;
    void** const bottom = magazine.blocks;
    void** const top = bottom + magazine.count;
    if (is_marked()) return show(top, top, nullptr);
    show(bottom, top, capacity == 0 ? bottom : std::max(top, bottom + capacity));
}

Magazine& LoadedBlocks::unload() noexcept {
    magazine_->count = static_cast<unsigned>(view_->top - magazine_->blocks);
    show(nullptr, nullptr, nullptr);
    return *std::exchange(magazine_, nullptr);
}

void LoadedBlocks::set_capacity(unsigned capacity) noexcept {
    if (magazine_ == nullptr || is_marked()) return;
    view_->limit.store(magazine_->blocks + capacity, std::memory_order_relaxed);
}

bool LoadedBlocks::has_room(unsigned capacity) const noexcept {
    if (!is_marked()) return view_->top < view_->limit.load(std::memory_order_relaxed);
    return magazine_ != nullptr && view_->top < magazine_->blocks + capacity;
}

bool LoadedBlocks::holds(const void* block) const noexcept {
    return magazine_ != nullptr && std::find(magazine_->blocks, view_->top, block) != view_->top;
}

void LoadedBlocks::close() noexcept {
    exposed_ = view_->bottom.load(std::memory_order_relaxed);
    bottom_ = magazine_ == nullptr ? nullptr : magazine_->blocks;
    close_again();
}

void LoadedBlocks::close_again() noexcept {
    view_->bottom.store(beyond_all(), std::memory_order_relaxed);
    view_->limit.store(nullptr, std::memory_order_relaxed);
}

// Another thread may have taken blocks from the bottom of the magazine. Moves the rest down.
void LoadedBlocks::open(unsigned capacity) noexcept {
    if (magazine_ == nullptr) return show(nullptr, nullptr, nullptr);
    const std::ptrdiff_t concealed = exposed_ - bottom_;
    void** const end = std::move(bottom_, view_->top, magazine_->blocks);
    magazine_->count = static_cast<unsigned>(end - magazine_->blocks);
    load(*magazine_, capacity);
    view_->bottom.store(magazine_->blocks + concealed, std::memory_order_relaxed);
}

// The magazine itself stays: a call of its thread that is in progress may read or write the entry
// at its top.
std::size_t LoadedBlocks::take_back(pages::Changes& changes) noexcept {
    // Acquire pairs with the owner's release in `push`. A `pop` of the owner that is about to fail
    // may have lowered the top below the bottom that an earlier call left.
    void** const top =
        std::max(exposed_, std::atomic_ref(view_->top).load(std::memory_order_acquire));
    const std::size_t exposed = is_marked() ? static_cast<std::size_t>(top - exposed_) : 0;
    if (exposed != 0) set_marks(exposed_, top, nullptr);
    if (const auto count = static_cast<unsigned>(top - bottom_)) {
        detail::add_release(counted_->returned, count);
        bucket_->spans.bring_home(bottom_, count, changes);
    }
    bottom_ = exposed_ = top;
    view_->bottom.store(top, std::memory_order_relaxed);
    view_->limit.store(top, std::memory_order_relaxed);
    return exposed * bucket_->traits.block_bytes;
}

std::size_t LoadedBlocks::concealed() const noexcept {
    if (magazine_ == nullptr) return 0;
    void** const bottom = view_->bottom.load(std::memory_order_relaxed);
    return static_cast<std::size_t>(bottom - magazine_->blocks);
}

std::size_t LoadedBlocks::to_expose() const noexcept {
    return std::min(std::size_t{1} << more_to_expose_, concealed());
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

void LoadedBlocks::set_marks(void** from, void** to, base::BlockMark* mark) noexcept {
    for (void** at = from; at != to; ++at) {
        mark_of(bucket_->traits, *at).store(mark, std::memory_order_relaxed);
    }
}

// The release store is for a thread that takes the blocks.
void LoadedBlocks::push_exposed(void* block) noexcept {
    *view_->top = block;
    std::atomic_ref(view_->top).store(view_->top + 1, std::memory_order_release);
    detail::add_release(counted_->deallocations, 1);
}

void LoadedBlocks::push_concealed(void* block) noexcept {
    void** const bottom = view_->bottom.load(std::memory_order_relaxed);
    if (bottom != view_->top) std::swap(*bottom, block);
    view_->bottom.store(bottom + 1, std::memory_order_relaxed);
    push_exposed(block);
}

}  // namespace tensorpool::blocks
