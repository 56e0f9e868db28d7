#include "arena/record_holder.hpp"

#include <cstddef>
#include <utility>

#include "statistics/segment/segment.hpp"

namespace tensorpool::arena {
namespace {

using statistics::as_words;
using statistics::Counter;
using statistics::segment;
using statistics::Segment;

}  // namespace

/// What is added up: the totals, and what is in use without the arena's own bits.
struct RecordHolder::Apart {
    statistics::ArenaRecord record = {};
    statistics::FoldedWords<statistics::words_of<statistics::ArenaTotals>> totals;
    statistics::FoldedWords<2> used;
    bool is_counted = false;

    void fold(statistics::ArenaRecord& other) noexcept {
        const Counter now[] = {record.used.load(std::memory_order_relaxed) & statistics::used_mask,
                               record.high.load(std::memory_order_relaxed)};
        totals.fold(as_words(record.totals), as_words(other.totals));
        used.fold(now, &other.used);
    }
    void unfold(statistics::ArenaRecord& other) noexcept {
        totals.unfold(as_words(other.totals));
        used.unfold(&other.used);
    }
};
static_assert(offsetof(statistics::ArenaRecord, high) ==
              offsetof(statistics::ArenaRecord, used) + sizeof(Counter));

void RecordHolder::DropApart::operator()(Apart* apart) const noexcept {
    delete apart;
}

RecordHolder::RecordHolder(std::string_view name, ArenaStatistics::Kind kind,
                           std::uint64_t thread) {
    const auto kind_number = static_cast<std::uint64_t>(kind);
    record_ = segment().add_arena(name, kind_number, thread);
    if (record_ != nullptr) return;
    apart_.reset(new Apart);
    record_ = &apart_->record;
    record_->id.store(segment().next_id(), std::memory_order_relaxed);
    statistics::store_name(record_->name, name);
    record_->kind.store(kind_number, std::memory_order_relaxed);
    record_->thread.store(thread, std::memory_order_relaxed);
    apart_->is_counted = segment().header() != nullptr;
    if (apart_->is_counted) segment().count_left_out(Segment::Kind::arenas, true);
}

void RecordHolder::fold() noexcept {
    statistics::ArenaRecord* const other = segment().other_arena();
    if (apart_ != nullptr && other != nullptr) apart_->fold(*other);
}

void RecordHolder::leave() noexcept {
    if (std::exchange(has_left_, true)) return;
    if (apart_ == nullptr) return segment().remove_arena(*std::exchange(record_, nullptr));
    if (apart_->is_counted) segment().count_left_out(Segment::Kind::arenas, false);
    if (statistics::ArenaRecord* const other = segment().other_arena()) apart_->unfold(*other);
}

}  // namespace tensorpool::arena
