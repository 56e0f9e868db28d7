#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "pages/heap/test_heap.hpp"
#include "pages/random.hpp"

namespace tensorpool::testing {

/// A model of a page heap: the spans in use, each stamped in its first and last page. `fault`
/// compares heap and model. No other heap may use the budget; others may use the address space.
class PageHeapModel {
public:
    explicit PageHeapModel(TestHeap& heap) : heap_(heap) {}

    /// Allocates a span. Returns false if the heap refused.
    bool allocate(const pages::PageRequest& request) {
        pages::Span* const span = heap_.heap.allocate(request, heap_.path);
        if (span == nullptr) return false;
        if (span->pages != request.pages) note("another size than requested");
        const auto address = reinterpret_cast<std::uintptr_t>(heap_.address_of(*span));
        if (address % (request.alignment * pages::page_bytes) != 0) note("not aligned");
        if (span->clean && !is_zero(*span)) note("clean, but not zero");
        if (!in_use_.emplace(span->first_page, span).second)
            note("begins at the same page as another");
        pages_in_use_ += span->pages;
        stamp(*span);
        return true;
    }

    void free(std::size_t index) {
        pages::Span* const span = std::next(in_use_.begin(), static_cast<long>(index))->second;
        if (!is_stamped(*span)) note("a span in use was overwritten");
        in_use_.erase(span->first_page);
        pages_in_use_ -= span->pages;
        heap_.heap.free(*span, heap_.path);
    }
    void free_all() {
        while (count() != 0) free(count() - 1);
    }

    /// Grows a span by `more` pages, in place or by moving it, if the heap does not refuse.
    void lengthen(std::size_t index, pages::PageCount more) {
        pages::Span& span = *std::next(in_use_.begin(), static_cast<long>(index))->second;
        if (pages::PageEntry(&span, 0, span.kind).is_bucket()) return;
        if (!is_stamped(span)) note("a span in use was overwritten");
        const pages::PageNumber first = span.first_page;
        const pages::PageCount before = span.pages;
        pages::Span* left = nullptr;
        if (!heap_.heap.extend(span, before + more, heap_.path)) {
            left = heap_.heap.move(span, before + more, heap_.path);
            if (left == nullptr) {
                if (span.first_page != first || span.pages != before) note("a failure changed it");
                return;
            }
            heap_.heap.take_left(*left);
        }
        if ((left == nullptr) != (span.first_page == first)) note("moved although it should not");
        if (span.pages != before + more) note("another length than requested");
        if (!begins_and_ends_with(span, before, first)) note("content has changed");
        in_use_.erase(first);
        if (!in_use_.emplace(span.first_page, &span).second)
            note("begins at the same page as another");
        pages_in_use_ += more;
        stamp(span);
    }

    /// Shortens a span to `pages` pages, if it has more.
    void shorten(std::size_t index, pages::PageCount pages) {
        pages::Span& span = *std::next(in_use_.begin(), static_cast<long>(index))->second;
        const pages::PageCount before = span.pages;
        if (pages::PageEntry(&span, 0, span.kind).is_bucket() || pages >= before) return;
        if (!is_stamped(span)) note("a span in use was overwritten");
        const pages::PageNumber first = span.first_page;
        const bool is_done = heap_.heap.shorten(span, pages);
        if (span.first_page != first || span.pages != (is_done ? pages : before))
            note("another length than requested");
        pages_in_use_ -= before - span.pages;
        stamp(span);
    }

    std::size_t count() const { return in_use_.size(); }
    std::size_t pages_in_use() const { return pages_in_use_; }

    enum class Depth : bool { quick, all_words };
    /// Compares heap and model. Returns the first fault found so far, or an empty string.
    std::string fault(Depth depth) {
        if (fault_.empty()) compare(depth);
        return fault_;
    }

private:
    using PageNumber = pages::PageNumber;
    using PageKind = pages::PageKind;
    using Span = pages::Span;

    /// Checks that the heap's spans cover its loans without gaps, by their first entries in the
    /// map.
    void compare(Depth depth) {
        const pages::PageMap& map = pages::address_space().map();
        const std::size_t lent = heap_.totals.reserved_bytes / pages::page_bytes;
        std::size_t covered = 0;
        std::size_t hot = 0;
        std::size_t used = 0;
        std::size_t spans_in_use = 0;
        PageKind last = PageKind::none;
        unsigned last_shard = 0;
        for (PageNumber page = 0; covered < lent && page < map.page_count();) {
            const pages::PageEntry entry = map.at(page);
            if (entry.empty() || entry.pool_number() != heap_.heap.pool_number()) {
                page = (page / pages::granule_pages + 1) * pages::granule_pages;
                last = PageKind::none;
                continue;
            }
            const Span& span = *entry.span();
            if (span.first_page != page || span.pages == 0)
                return note("no span begins there", page);
            if (span.kind == PageKind::extent_hot || span.kind == PageKind::extent_cold) {
                const unsigned shard = pages::address_space().shard_of(page);
                if (span.kind == last && shard == last_shard)
                    return note("two free extents of a kind touch", page);
                last_shard = shard;
            } else {
                ++spans_in_use;
                used += span.pages;
                const auto known = in_use_.find(page);
                if (known == in_use_.end() || known->second != &span)
                    return note("not in use", page);
            }
            if (span.kind == PageKind::extent_hot) hot += span.pages;
            check_entries(span, entry, depth);
            covered += span.pages;
            last = span.kind;
            page = span.end_page();
        }
        if (covered != lent) note("spans do not cover the loans");
        if (spans_in_use != in_use_.size() || used != pages_in_use_)
            note("a span in use is missing");
        if (hot != heap_.free_pages()) note("free pages differ from the statistics");
        if (used + hot != heap_.capacity())
            note("capacity is not the sum of pages in use and free");
        if (heap_.committed() != heap_.capacity()) note("the budget differs from capacity");
        const std::size_t max_capacity = heap_.heap.options().max_capacity;
        if (max_capacity != 0 && heap_.heap.capacity().bytes() > max_capacity)
            note("capacity exceeds its limit");
        if (heap_.totals.peak_capacity_bytes < heap_.heap.capacity().bytes())
            note("peak below capacity");
    }

    void check_entries(const Span& span, pages::PageEntry first, Depth depth) {
        const pages::PageMap& map = pages::address_space().map();
        if (first.kind() != span.kind) return note("entry of another kind", span.first_page);
        if (map.at(span.end_page() - 1).word() != first.word())
            note("last entry", span.end_page() - 1);
        const bool is_free =
            span.kind == PageKind::extent_hot || span.kind == PageKind::extent_cold;
        for (PageNumber granule =
                 (span.first_page + pages::granule_pages - 1) / pages::granule_pages;
             granule * pages::granule_pages < span.end_page(); ++granule) {
            const std::uint64_t expected = is_free || first.is_bucket() ? 0 : first.word();
            if (map.granules()[granule] != expected) return note("granule", granule);
        }
        if (!is_free) {
            for (const PageNumber page :
                 {span.first_page, span.first_page + span.pages / 2, span.end_page() - 1}) {
                if (map.find(map.address_of(page), heap_.heap.pool_number()).span() != &span)
                    return note("not found", page);
            }
        }
        if (depth == Depth::quick && span.pages > pages::granule_pages) return;
        const std::uint64_t inside = first.is_bucket() ? first.word() : 0;
        for (PageNumber page = span.first_page + 1; page + 1 < span.end_page(); ++page) {
            if (map.at(page).word() != inside) return note("word of an interior page", page);
        }
    }

    void stamp(const Span& span) {
        for (unsigned char* const end : stamped_ends(span, span.pages)) {
            std::memcpy(end, &span.first_page, sizeof span.first_page);
        }
    }
    bool is_stamped(const Span& span) const {
        return begins_and_ends_with(span, span.pages, span.first_page);
    }
    /// Returns whether the span's first `pages` pages begin and end with the stamp of `first`.
    bool begins_and_ends_with(const Span& span, pages::PageCount pages, PageNumber first) const {
        for (const unsigned char* const end : stamped_ends(span, pages)) {
            if (std::memcmp(end, &first, sizeof first) != 0) return false;
        }
        return true;
    }
    std::vector<unsigned char*> stamped_ends(const Span& span, pages::PageCount pages) const {
        unsigned char* const begin = heap_.address_of(span);
        return {begin, begin + pages * pages::page_bytes - sizeof span.first_page};
    }
    bool is_zero(const Span& span) const {
        const unsigned char* const begin = heap_.address_of(span);
        for (std::size_t at = 0; at < span.bytes(); at += pages::page_bytes) {
            if (begin[at] != 0 || begin[at + pages::page_bytes - sizeof span.first_page] != 0)
                return false;
        }
        return true;
    }

    void note(const char* what, PageNumber page = 0) {
        if (fault_.empty()) fault_ = std::string(what) + " (page " + std::to_string(page) + ")";
    }

    TestHeap& heap_;
    std::map<PageNumber, Span*> in_use_;
    std::size_t pages_in_use_ = 0;
    std::string fault_;
};

/// The random operations on a heap, in parts of a thousand. The rest are frees.
struct HeapHabits {
    unsigned allocate = 480;
    unsigned trim = 5;
    unsigned reserve = 5;
    unsigned give_back = 15;
    unsigned look_at_retention = 15;
    unsigned lengthen = 40;
    unsigned shorten = 20;
    pages::PageCount max_pages = 700;
    pages::PageCount max_alignment = 2048;
};

/// Runs random steps and compares after each. `is_rightly_refused` decides, right after a refusal,
/// whether it was correct. Returns the first fault, or an empty string.
template <class IsRightlyRefused>
std::string run_at_random(PageHeapModel& model, TestHeap& heap, const HeapHabits& habits,
                          Random& random, unsigned steps, IsRightlyRefused is_rightly_refused) {
    for (unsigned step = 0; step < steps; ++step) {
        unsigned chance = random.below(1000);
        const auto turn = [&chance](unsigned share) {
            const bool mine = chance < share;
            chance -= share;
            return mine;
        };
        if (turn(habits.allocate) || model.count() == 0) {
            const pages::PageRequest request{
                .pages = random.log_uniform(1, habits.max_pages),
                .alignment = random.one_in(4) ? pages::PageCount{1} << random.below(std::size_t{
                                                    std::bit_width(habits.max_alignment)})
                                              : 1,
                .kind = random.one_in(3) ? pages::kind_of_bucket(random.below(detail::bucket_count))
                                         : pages::PageKind::large_in_use};
            if (!model.allocate(request) && !is_rightly_refused(request)) return "refused";
        } else if (turn(habits.trim)) {
            heap.trim();
            if (heap.free_pages() != 0) return "free memory after trim";
        } else if (turn(habits.reserve)) {
            const std::size_t pages = heap.capacity() + random.below(200);
            if (heap.reserve(pages) && heap.capacity() < pages) return "less than was reserved";
        } else if (turn(habits.give_back)) {
            heap.give_back(random.below(500));
        } else if (turn(habits.look_at_retention)) {
            heap.end_period();
        } else if (turn(habits.lengthen)) {
            model.lengthen(random.below(model.count()), 1 + random.below(100));
        } else if (turn(habits.shorten)) {
            model.shorten(random.below(model.count()), 1 + random.below(100));
        } else {
            model.free(random.below(model.count()));
        }
        const auto depth =
            step % 64 == 0 ? PageHeapModel::Depth::all_words : PageHeapModel::Depth::quick;
        const std::string fault = model.fault(depth);
        if (!fault.empty()) return "step " + std::to_string(step) + ": " + fault;
    }
    return "";
}

}  // namespace tensorpool::testing
