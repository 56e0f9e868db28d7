#include "pages/sampled_area.hpp"

#include <algorithm>
#include <new>

#include "base/alignment.hpp"
#include "base/never_destroyed.hpp"
#include "pages/address_space.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

constinit base::NeverDestroyed<SampledArea> the_sampled_area;

constexpr std::size_t record_slab_bytes = std::size_t{64} << 10;
// The pages that become accessible at a time. They take no memory before they are touched.
constexpr PageCount commit_pages = 64;
// The pages of freed blocks that keep their memory: 128 KiB.
constexpr PageCount max_kept_pages = 32;

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return std::size_t{pages} << page_shift;
}

}  // namespace

SampledArea& sampled_area() noexcept {
    return the_sampled_area.get();
}

std::size_t SampledArea::bytes_for(std::size_t block_bytes) noexcept {
    return base::align_up(block_bytes, std::max(page_bytes, platform::page_bytes()));
}

char* SampledArea::address_of(const SampledBlock& block) noexcept {
    return address_space().address_of(block.pages.first);
}

SampledBlock* SampledArea::take(unsigned pool_number, std::size_t block_bytes) noexcept {
    const auto pages = static_cast<PageCount>(bytes_for(block_bytes) / page_bytes);
    const std::lock_guard guard(mutex_);
    SampledBlock* block = free_[pages];
    if (block != nullptr) {
        if (!block->is_committed && !platform::commit(address_of(*block), bytes_of(pages)))
            return nullptr;
        if (block->is_committed) kept_ -= pages;
        free_[pages] = block->next;
    } else {
        block = make(pages);
        if (block == nullptr) return nullptr;
    }
    block->is_committed = true;
    block->block_bytes = static_cast<std::uint32_t>(block_bytes);
    block->pool_number = static_cast<std::uint16_t>(pool_number);
    block->profiled = nullptr;
    block->in_use.store(true, std::memory_order_release);
    address_space().map().set_all(block->pages, PageEntry(block, pool_number));
    return block;
}

SampledBlock* SampledArea::make(PageCount pages) noexcept {
    if (state_ == State::unknown) state_ = reserve() ? State::ready : State::unavailable;
    if (state_ != State::ready || pages > end_ - used_end_) return nullptr;
    if (!commit_up_to(used_end_ + pages)) return nullptr;
    SampledBlock* const block = make_record();
    if (block == nullptr) return nullptr;
    block->pages = {used_end_, pages};
    used_end_ += pages;
    return block;
}

bool SampledArea::reserve() noexcept {
    const PageRun run = address_space().reserve_sampled();
    begin_ = used_end_ = committed_ = run.first;
    end_ = run.first + run.count;
    return run.count != 0;
}

bool SampledArea::commit_up_to(PageNumber end) noexcept {
    if (end <= committed_) return true;
    const PageCount more = std::min(std::max(commit_pages, end - committed_), end_ - committed_);
    if (!platform::commit(address_space().address_of(committed_), bytes_of(more))) return false;
    committed_ += more;
    return true;
}

SampledBlock* SampledArea::make_record() noexcept {
    if (records_ == records_end_) {
        void* const slab = platform::map(record_slab_bytes, alignof(SampledBlock));
        if (slab == nullptr) return nullptr;
        records_ = static_cast<SampledBlock*>(slab);
        records_end_ = records_ + record_slab_bytes / sizeof(SampledBlock);
    }
    return new (records_++) SampledBlock;
}

// The entry in the page map stays, so that a second free is recognized.
void SampledArea::give_back(SampledBlock& block) noexcept {
    const std::lock_guard guard(mutex_);
    put_back(block);
}

void SampledArea::put_back(SampledBlock& block) noexcept {
    const PageCount pages = block.pages.count;
    if (kept_ + pages <= max_kept_pages) {
        kept_ += pages;
    } else {
        block.is_committed = !platform::decommit(address_of(block), bytes_of(pages));
        if (block.is_committed) kept_ += pages;
    }
    block.next = free_[pages];
    free_[pages] = &block;
}

std::size_t SampledArea::forget_pool(unsigned pool_number) noexcept {
    const std::lock_guard guard(mutex_);
    std::size_t bytes = 0;
    for (PageNumber page = begin_; page != used_end_;) {
        const PageEntry entry = address_space().map().at(page);
        SampledBlock& block = *entry.sampled();
        page += block.pages.count;
        if (entry.pool_number() != pool_number) continue;
        if (end_use(block)) {
            bytes += bytes_of(block.pages.count);
            put_back(block);
        }
    }
    return bytes;
}

}  // namespace tensorpool::pages
