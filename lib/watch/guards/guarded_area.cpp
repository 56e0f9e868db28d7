#include "watch/guards/guarded_area.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/alignment.hpp"
#include "base/never_destroyed.hpp"
#include "pages/address_space.hpp"
#include "platform/platform.hpp"
#include "platform/whole_pages.hpp"

namespace tensorpool::watch {

using pages::address_space;

namespace {

constinit base::NeverDestroyed<GuardedArea> the_guarded_area;

// What may not be accessed beside a block, in the heap's pages: one page of the system.
PageCount guard_pages() noexcept {
    return static_cast<PageCount>(std::max(page_bytes, platform::page_bytes()) / page_bytes);
}

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return pages * page_bytes;
}

// Gives the memory of a block back. If the system refuses to make it inaccessible, accesses go
// unnoticed.
void make_inaccessible(const GuardedBlock& block) noexcept {
    char* const first_page = GuardedArea::address_of(block);
    if (platform::reserve_again(first_page, block.page_bytes_in_use())) return;
    (void)platform::decommit(first_page, block.page_bytes_in_use());
}

}  // namespace

GuardedArea& guarded_area() noexcept {
    return the_guarded_area.get();
}

bool GuardedArea::set_up() noexcept {
    const std::lock_guard guard(mutex_);
    if (state_ == State::unknown) state_ = reserve() ? State::ready : State::unavailable;
    return state_ == State::ready;
}

bool GuardedArea::reserve() noexcept {
    pages_ = address_space().reserve_guarded();
    if (pages_ == 0) return false;
    const std::size_t bytes = platform::whole_pages(record_count * sizeof(GuardedBlock));
    void* const memory = platform::map(bytes, alignof(GuardedBlock));
    if (memory == nullptr) return false;
    records_ = static_cast<GuardedBlock*>(memory);
    std::uninitialized_default_construct_n(records_, record_count);
    for (unsigned i = record_count; i != 0; --i) {
        records_[i - 1].next = free_records_;
        free_records_ = &records_[i - 1];
    }
    cursor_ = guard_pages();
    return true;
}

std::size_t GuardedArea::bytes_for(std::size_t bytes, std::size_t alignment) noexcept {
    return base::align_up(base::align_up(bytes, alignment), bytes_of(guard_pages()));
}

GuardedBlock* GuardedArea::take(unsigned pool_number, const char* pool_name, std::size_t bytes,
                                std::size_t alignment) noexcept {
    GuardedStack stack;
    stack.capture();
    const std::lock_guard guard(mutex_);
    if (state_ != State::ready || in_use_ == max_blocks || bytes > max_block_bytes()) {
        return nullptr;
    }
    const auto pages = static_cast<PageCount>(bytes_for(bytes, alignment) / page_bytes);
    PageNumber first = 0;
    if (!find_room(pages, first)) return nullptr;
    GuardedBlock* const block = take_record();
    if (block == nullptr) return nullptr;
    char* const first_page = address_space().address_of(first);
    if (!platform::commit(first_page, bytes_of(pages))) {
        block->next = free_records_;
        free_records_ = block;
        return nullptr;
    }
    block->pool_number = static_cast<std::uint16_t>(pool_number);
    std::snprintf(block->pool_name.data(), block->pool_name.size(), "%s", pool_name);
    block->pages = {first, pages};
    block->begin = first_page + bytes_of(pages) - base::align_up(bytes, alignment);
    block->requested = bytes;
    block->fill_slack(first_page);
    block->allocated = stack;
    block->freed.count = 0;
    block->mark = nullptr;
    block->watcher = 0;
    block->state.store(GuardedBlock::State::in_use, std::memory_order_release);
    address_space().map().set_all(block->pages, PageEntry(block, pool_number));
    cursor_ = first + pages + guard_pages();
    ++in_use_;
    return block;
}

// Looks from the cursor to the end of the area, and once more from its beginning.
bool GuardedArea::find_room(PageCount pages, PageNumber& first) noexcept {
    for (unsigned rounds = 0; rounds != 2; ++rounds) {
        while (cursor_ + pages + guard_pages() <= pages_) {
            PageNumber next = 0;
            if (clear(cursor_, pages + guard_pages(), next)) {
                first = cursor_;
                return true;
            }
            cursor_ = next + guard_pages();
        }
        cursor_ = guard_pages();
    }
    return false;
}

// Evicts freed blocks from a run. Returns false, with the end of a block in use that lies in it, if
// there is one.
bool GuardedArea::clear(PageNumber first, PageCount pages, PageNumber& next) noexcept {
    for (PageNumber page = first; page != first + pages; ++page) {
        GuardedBlock* const block = guarded_block(address_space().map().at(page));
        if (block == nullptr) continue;
        if (block->state.load(std::memory_order_relaxed) != GuardedBlock::State::freed) {
            next = block->pages.first + block->pages.count;
            return false;
        }
        evict(*block);
    }
    return true;
}

GuardedBlock* GuardedArea::take_record() noexcept {
    if (free_records_ == nullptr && oldest_ != nullptr) evict(*oldest_);
    GuardedBlock* const block = free_records_;
    if (block != nullptr) free_records_ = block->next;
    return block;
}

// Blocks are evicted almost always in the order in which they were freed.
void GuardedArea::evict(GuardedBlock& block) noexcept {
    GuardedBlock* before = nullptr;
    for (GuardedBlock** link = &oldest_; *link != nullptr; link = &(*link)->next) {
        if (*link == &block) {
            *link = block.next;
            if (newest_ == &block) newest_ = before;
            break;
        }
        before = *link;
    }
    address_space().map().set_all(block.pages, PageEntry());
    block.state.store(GuardedBlock::State::unused, std::memory_order_relaxed);
    block.next = free_records_;
    free_records_ = &block;
}

bool GuardedArea::end_use(GuardedBlock& block) noexcept {
    GuardedStack stack;
    stack.capture();
    GuardedBlock::State expected = GuardedBlock::State::in_use;
    if (!block.state.compare_exchange_strong(expected, GuardedBlock::State::ending,
                                             std::memory_order_acq_rel)) {
        return false;
    }
    block.freed = stack;
    return true;
}

void GuardedArea::close(GuardedBlock& block) noexcept {
    const std::lock_guard guard(mutex_);
    make_inaccessible(block);
    block.state.store(GuardedBlock::State::freed, std::memory_order_release);
    block.next = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->next) = &block;
    newest_ = &block;
    --in_use_;
}

std::size_t GuardedArea::forget_pool(unsigned pool_number) noexcept {
    const std::lock_guard guard(mutex_);
    if (state_ != State::ready) return 0;
    std::size_t bytes = 0;
    for (unsigned i = 0; i != record_count; ++i) {
        GuardedBlock& block = records_[i];
        const GuardedBlock::State state = block.state.load(std::memory_order_relaxed);
        if (state == GuardedBlock::State::unused || block.pool_number != pool_number) continue;
        if (state == GuardedBlock::State::in_use) {
            if (block.mark != nullptr) block.mark->on_free(block.requested);
            bytes += block.page_bytes_in_use();
            make_inaccessible(block);
            --in_use_;
        }
        evict(block);
    }
    return bytes;
}

GuardedBlock* GuardedArea::find(const void* p) noexcept {
    return guarded_block(address_space().map().at(p));
}

GuardedBlock* GuardedArea::find_near(const void* p) noexcept {
    const std::size_t guard = bytes_of(guard_pages());
    for (const std::ptrdiff_t distance : {std::ptrdiff_t{0}, -static_cast<std::ptrdiff_t>(guard),
                                          static_cast<std::ptrdiff_t>(guard)}) {
        if (GuardedBlock* const found = find(static_cast<const char*>(p) + distance)) return found;
    }
    return nullptr;
}

char* GuardedArea::address_of(const GuardedBlock& block) noexcept {
    return address_space().address_of(block.pages.first);
}

}  // namespace tensorpool::watch
