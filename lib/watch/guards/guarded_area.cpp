#include "watch/guards/guarded_area.hpp"

#include <cstdio>
#include <memory>

#include "pages/address_space.hpp"
#include "platform/stacks/program_stack.hpp"

namespace tensorpool::watch {
namespace {

constexpr unsigned char fill = 0xA5;
// The bytes before the block that are checked. Writes further down reach the inaccessible page or
// stay unnoticed.
constexpr std::size_t max_front = 64;

}  // namespace

void GuardedStack::capture() noexcept {
    thread = platform::current_thread_id();
    count = static_cast<std::uint32_t>(platform::capture_stack(frames.data(), frames.size()));
}

std::span<unsigned char> GuardedBlock::front(char* first_page) const noexcept {
    const std::size_t bytes = std::min(static_cast<std::size_t>(begin - first_page), max_front);
    return {reinterpret_cast<unsigned char*>(begin) - bytes, bytes};
}

std::span<unsigned char> GuardedBlock::slack(char* first_page) const noexcept {
    char* const end = first_page + page_bytes_in_use();
    return {reinterpret_cast<unsigned char*>(begin + requested),
            static_cast<std::size_t>(end - begin) - requested};
}

void GuardedBlock::fill_slack(char* first_page) const noexcept {
    std::ranges::fill(front(first_page), fill);
    std::ranges::fill(slack(first_page), fill);
}

const void* GuardedBlock::find_damage(char* first_page) const noexcept {
    for (const std::span<unsigned char> bytes : {front(first_page), slack(first_page)}) {
        const auto damaged =
            std::ranges::find_if(bytes, [](unsigned char byte) { return byte != fill; });
        if (damaged != bytes.end()) return &*damaged;
    }
    return nullptr;
}

using pages::address_space;

namespace {

// What may not be accessed beside a block, in the heap's pages: one page of the system.
PageCount guard_pages() noexcept {
    return static_cast<PageCount>(std::max(page_bytes, platform::page_bytes()) / page_bytes);
}

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return pages * page_bytes;
}

// Gives the memory of pages back, which become inaccessible. If the system refuses that, accesses
// go unnoticed.
void drop(pages::PageRun run) noexcept {
    if (run.count == 0) return;
    char* const begin = address_space().address_of(run.first);
    if (platform::reserve_again(begin, bytes_of(run.count))) return;
    (void)platform::decommit(begin, bytes_of(run.count));
}

}  // namespace

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
    std::unique_lock lock(mutex_);
    if (state_ != State::ready || in_use_ == max_blocks || bytes > max_block_bytes()) {
        return nullptr;
    }
    const auto pages = static_cast<PageCount>(bytes_for(bytes, alignment) / page_bytes);
    PageNumber first = 0;
    if (!find_room(pages, first)) return nullptr;
    GuardedBlock* const block = take_record();
    if (block == nullptr) return nullptr;
    block->state.store(GuardedBlock::State::changing, std::memory_order_relaxed);
    block->pool_number = static_cast<std::uint16_t>(pool_number);
    block->pages = {first, pages};
    block->requested = bytes;
    block->mark = nullptr;
    block->watcher = 0;
    address_space().map().set_all(block->pages, PageEntry(block, pool_number));
    cursor_ = first + pages + guard_pages();
    ++in_use_;
    lock.unlock();

    char* const first_page = address_of(*block);
    std::snprintf(block->pool_name.data(), block->pool_name.size(), "%s", pool_name);
    block->begin = first_page + bytes_of(pages) - base::align_up(bytes, alignment);
    block->allocated = stack;
    block->freed.count = 0;
    if (platform::commit(first_page, bytes_of(pages))) {
        block->fill_slack(first_page);
        block->state.store(GuardedBlock::State::in_use, std::memory_order_release);
        return block;
    }
    lock.lock();
    evict(*block);
    --in_use_;
    return nullptr;
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

// Evicts freed blocks without memory from a run. Returns false, with the end of another block that
// lies in it, if there is one.
bool GuardedArea::clear(PageNumber first, PageCount pages, PageNumber& next) noexcept {
    for (PageNumber page = first; page != first + pages; ++page) {
        GuardedBlock* const block = guarded_block(address_space().map().at(page));
        if (block == nullptr) continue;
        if (block->state.load(std::memory_order_relaxed) != GuardedBlock::State::freed ||
            block->has_memory) {
            next = block->pages.first + block->pages.count;
            return false;
        }
        evict(*block);
    }
    return true;
}

GuardedBlock* GuardedArea::take_record() noexcept {
    if (free_records_ == nullptr && freed_.oldest != nullptr) evict(*freed_.oldest);
    GuardedBlock* const block = free_records_;
    if (block == nullptr) return nullptr;
    free_records_ = block->next;
    records_used_ = std::max(records_used_, static_cast<unsigned>(block - records_) + 1);
    return block;
}

void GuardedArea::evict(GuardedBlock& block) noexcept {
    freed_.remove(block);
    address_space().map().set_all(block.pages, PageEntry());
    block.state.store(GuardedBlock::State::unused, std::memory_order_relaxed);
    block.next = free_records_;
    free_records_ = &block;
}

bool GuardedArea::end_use(GuardedBlock& block) noexcept {
    GuardedStack stack;
    stack.capture();
    GuardedBlock::State expected = GuardedBlock::State::in_use;
    if (!block.state.compare_exchange_strong(expected, GuardedBlock::State::changing,
                                             std::memory_order_acq_rel)) {
        return false;
    }
    block.freed = stack;
    return true;
}

void GuardedArea::close(GuardedBlock& block) noexcept {
    const bool is_closed =
        platform::make_inaccessible(address_of(block), block.page_bytes_in_use());
    {
        const std::lock_guard guard(mutex_);
        keep(block);
        --in_use_;
        if (is_closed && kept_bytes_ <= max_kept_bytes) return;
    }
    const std::lock_guard guard(drop_mutex_);
    drop_kept();
}

// Blocks are freed almost always in the order of their addresses or against it, and lie beside each
// other. What is between them is inaccessible.
void GuardedArea::drop_kept() noexcept {
    List dropped;
    {
        const std::lock_guard guard(mutex_);
        dropped = std::exchange(kept_, {});
        kept_bytes_ = 0;
    }
    pages::PageRun run;
    for (const GuardedBlock* block = dropped.oldest; block != nullptr; block = block->next) {
        const auto [first, count] = block->pages;
        if (run.count != 0 && first == run.first + run.count + guard_pages()) {
            run.count += guard_pages() + count;
        } else if (run.count != 0 && first + count + guard_pages() == run.first) {
            run = {first, run.count + guard_pages() + count};
        } else {
            drop(run);
            run = block->pages;
        }
    }
    drop(run);
    const std::lock_guard guard(mutex_);
    while (GuardedBlock* const block = dropped.oldest) {
        dropped.oldest = block->next;
        block->has_memory = false;
        freed_.add(*block);
    }
}

std::size_t GuardedArea::forget_pool(unsigned pool_number) noexcept {
    std::size_t bytes = 0;
    const auto for_each = [&](auto function) {
        const std::lock_guard guard(mutex_);
        for (unsigned i = 0; i != records_used_; ++i) {
            const GuardedBlock::State state = records_[i].state.load(std::memory_order_relaxed);
            if (state == GuardedBlock::State::unused || records_[i].pool_number != pool_number)
                continue;
            function(records_[i], state == GuardedBlock::State::in_use);
        }
    };
    const std::lock_guard guard(drop_mutex_);
    for_each([&](GuardedBlock& block, bool in_use) {
        if (!in_use) return;
        if (block.mark != nullptr) block.mark->on_free(block.requested);
        bytes += block.page_bytes_in_use();
        --in_use_;
        keep(block);
    });
    drop_kept();
    for_each([&](GuardedBlock& block, bool) { evict(block); });
    return bytes;
}

// Blocks leave almost always in the order in which they came.
void GuardedArea::List::remove(const GuardedBlock& block) noexcept {
    GuardedBlock* before = nullptr;
    for (GuardedBlock** link = &oldest; *link != nullptr; link = &(*link)->next) {
        if (*link == &block) {
            *link = block.next;
            if (newest == &block) newest = before;
            return;
        }
        before = *link;
    }
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
