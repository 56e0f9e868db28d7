#include "pages/marked/sampled_area.hpp"

#include <algorithm>
#include <bit>
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

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return std::size_t{pages} << page_shift;
}
bool is_same(base::BlockSize a, base::BlockSize b) noexcept {
    return a.series == b.series && a.bucket == b.bucket;
}
constexpr std::uint64_t bit(unsigned number) noexcept {
    return std::uint64_t{1} << number;
}

}  // namespace

SampledArea& sampled_area() noexcept {
    return the_sampled_area.get();
}

char* SampledBlock::address() const noexcept {
    return address_space().address_of(pages->pages.first) + number * pages->block_bytes();
}

std::size_t SampledArea::bytes_for(base::BlockSize size) noexcept {
    return base::align_up(base::block_bytes(size.series, size.bucket),
                          std::max(page_bytes, platform::page_bytes()));
}

SampledBlock SampledArea::find(const void* p) noexcept {
    SampledPages* const pages = address_space().map().at(p).sampled();
    if (pages == nullptr) return {};
    const char* const begin = address_space().address_of(pages->pages.first);
    const auto number =
        static_cast<std::size_t>(static_cast<const char*>(p) - begin) / pages->block_bytes();
    if (number >= pages->blocks()) return {};
    return {pages, static_cast<unsigned>(number)};
}

SampledPages*& SampledArea::open_list(unsigned pool_number, base::BlockSize size) noexcept {
    return open_[(pool_number * 31 + size.series * 11U + size.bucket) % list_count];
}

void SampledArea::link(SampledPages*& list, SampledPages& pages) noexcept {
    pages.before = nullptr;
    pages.next = list;
    if (list != nullptr) list->before = &pages;
    list = &pages;
}

void SampledArea::unlink(SampledPages*& list, SampledPages& pages) noexcept {
    (pages.before == nullptr ? list : pages.before->next) = pages.next;
    if (pages.next != nullptr) pages.next->before = pages.before;
}

SampledBlock SampledArea::take(unsigned pool_number, base::BlockSize size) noexcept {
    const std::lock_guard guard(mutex_);
    SampledPages* pages = open_list(pool_number, size);
    while (pages != nullptr && (pages->pool_number != pool_number ||
                                !is_same(pages->size.load(std::memory_order_relaxed), size)))
        pages = pages->next;
    if (pages == nullptr) return {};
    return take_from(*pages);
}

SampledBlock SampledArea::take_from(SampledPages& pages) noexcept {
    const std::uint64_t in_use = pages.in_use.load(std::memory_order_relaxed);
    const auto number = static_cast<unsigned>(std::countr_one(in_use));
    pages.profiled[number] = nullptr;
    pages.in_use.store(in_use | bit(number), std::memory_order_relaxed);
    if (++pages.taken == pages.blocks()) unlink(list_of(pages), pages);
    return {&pages, number};
}

SampledBlock SampledArea::open(unsigned pool_number, base::BlockSize size) noexcept {
    const auto count = static_cast<PageCount>(bytes_for(size) / page_bytes);
    const std::lock_guard guard(mutex_);
    SampledPages* pages = take_closed(count);
    if (pages == nullptr) pages = make(count);
    if (pages == nullptr) return {};
    pages->is_committed = true;
    pages->pool_number = pool_number;
    pages->size.store(size, std::memory_order_relaxed);
    address_space().map().set_all(pages->pages, PageEntry(pages, pool_number));
    link(open_list(pool_number, size), *pages);
    return take_from(*pages);
}

SampledPages* SampledArea::take_closed(PageCount count) noexcept {
    SampledPages* const pages = closed_[count];
    if (pages == nullptr) return nullptr;
    if (!pages->is_committed &&
        !platform::commit(address_space().address_of(pages->pages.first), pages->bytes())) {
        return nullptr;
    }
    closed_[count] = pages->next;
    return pages;
}

SampledPages* SampledArea::make(PageCount count) noexcept {
    if (!is_reserved_) {
        const PageRun run = address_space().reserve_sampled();
        begin_ = used_end_ = committed_ = run.first;
        end_ = run.first + run.count;
        is_reserved_ = true;
    }
    if (count > end_ - used_end_ || !commit_up_to(used_end_ + count)) return nullptr;
    SampledPages* const pages = make_record();
    if (pages == nullptr) return nullptr;
    pages->pages = {used_end_, count};
    used_end_ += count;
    return pages;
}

bool SampledArea::commit_up_to(PageNumber end) noexcept {
    if (end <= committed_) return true;
    const PageCount more = std::min(std::max(commit_pages, end - committed_), end_ - committed_);
    if (!platform::commit(address_space().address_of(committed_), bytes_of(more))) return false;
    committed_ += more;
    return true;
}

SampledPages* SampledArea::make_record() noexcept {
    if (records_ == records_end_) {
        void* const slab = platform::map(record_slab_bytes, alignof(SampledPages));
        if (slab == nullptr) return nullptr;
        records_ = static_cast<SampledPages*>(slab);
        records_end_ = records_ + record_slab_bytes / sizeof(SampledPages);
    }
    return new (records_++) SampledPages;
}

SampledArea::Freed SampledArea::free(SampledBlock block) noexcept {
    SampledPages& pages = *block.pages;
    const std::lock_guard guard(mutex_);
    const std::uint64_t in_use = pages.in_use.load(std::memory_order_relaxed);
    if ((in_use & bit(block.number)) == 0) return {};
    Freed freed{.was_in_use = true, .profiled = block.profiled()};
    pages.in_use.store(in_use & ~bit(block.number), std::memory_order_relaxed);
    SampledPages*& list = list_of(pages);
    if (pages.taken-- == pages.blocks()) link(list, pages);
    if (pages.taken == 0) {
        unlink(list, pages);
        freed.closed_bytes = pages.bytes();
        close(pages);
    }
    return freed;
}

// The entries in the page map stay, so that a second free is recognized.
void SampledArea::close(SampledPages& pages) noexcept {
    const PageCount count = pages.pages.count;
    pages.is_committed =
        !platform::decommit(address_space().address_of(pages.pages.first), pages.bytes());
    pages.next = closed_[count];
    closed_[count] = &pages;
}

std::size_t SampledArea::forget_pool(unsigned pool_number) noexcept {
    const std::lock_guard guard(mutex_);
    std::size_t bytes = 0;
    for (PageNumber page = begin_; page != used_end_;) {
        SampledPages& pages = *address_space().map().at(page).sampled();
        page += pages.pages.count;
        if (pages.pool_number != pool_number || pages.taken == 0) continue;
        if (pages.taken != pages.blocks()) unlink(list_of(pages), pages);
        pages.taken = 0;
        pages.in_use.store(0, std::memory_order_relaxed);
        bytes += pages.bytes();
        close(pages);
    }
    return bytes;
}

}  // namespace tensorpool::pages
