#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>

#include "statistics/segment/folded_words.hpp"
#include "statistics/segment/name.hpp"
#include "statistics/segment/segment_layout.hpp"
#include "statistics/segment/segment_memory.hpp"

namespace tensorpool::statistics {

/// While it lives, structure changes. Under the segment's mutex.
class StructureChange {
public:
    explicit StructureChange(SegmentHeader& header) noexcept : epoch_(header.epoch) {
        detail::add(epoch_, 1);
        // Pairs with the reader's acquire fence: who saw a change sees that one was under way.
        std::atomic_thread_fence(std::memory_order_release);
    }
    ~StructureChange() { detail::add_release(epoch_, 1); }
    StructureChange(const StructureChange&) = delete;
    StructureChange& operator=(const StructureChange&) = delete;

private:
    Counter& epoch_;
};

/// Whether the system has the pages of it, which it then gives: a page that it has not would end
/// the process at its first touch.
bool has_pages(void* begin, std::size_t bytes) noexcept;

/// The writer's side of the segment: hands out its records. Made when the first pool, arena,
/// scratch or scope of the process needs a record, so that a program that uses none has none. Its
/// memory never moves and is never given back. Where the system refuses to share, or
/// TENSORPOOL_STATISTICS=off, it is private memory. Thread-safe; the only one but in tests is the
/// process's.
///
/// An object that gets nullptr counts in memory of its own, is counted as left out, and is summed
/// into `other` (see owned_record.hpp).
class Segment {
public:
    constexpr Segment() noexcept = default;
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    /// A record, zeros but for its number, its name and what `fill` sets; nullptr if there is none
    /// left, or no memory for the segment. Records without a name ignore `name`.
    template <class Record, class Fill>
    Record* add(std::string_view name, Fill fill) noexcept;
    /// Zeros the record, and gives it to the next object of its kind.
    template <class Record>
    void remove(Record& record) noexcept;
    /// The place of scopes of this name, which stays; `other`'s when there is none left. nullptr
    /// when there is no segment.
    ScopeRecord* find_or_add_scope(std::string_view name) noexcept;

    /// One object more, or one less, found no record.
    template <class Record>
    void count_left_out(bool more) noexcept {
        count_left_out(index_of<Record>, more);
    }
    /// The record that sums up those that found no room; nullptr if there is no segment, or none of
    /// its kind yet.
    template <class Record>
    Record* other() noexcept;

    /// nullptr before anything was added, and where there is no memory for it.
    SegmentHeader* header() noexcept { return base_.load(std::memory_order_acquire); }
    EntryRecord* timeline() noexcept;
    /// There is a header. False when the system has no page for what is written next.
    bool has_page_of_next_entry() noexcept;
    /// The numbers of pools, arenas, planned ones too, and device allocators; never 0.
    std::uint64_t next_id() noexcept {
        return last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    SegmentMemory& memory() noexcept { return memory_; }

    /// Around a fork, after all other locks of the library: the child gets a copy of what is here
    /// between `before_fork` and its own handler, at the same address, in a segment of its own.
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    SegmentHeader* made() noexcept;
    template <class Record>
    Record* find_free(SegmentHeader& header) noexcept;
    void count_left_out(std::size_t kind, bool more) noexcept;
    void show_left_out(SegmentHeader& header) noexcept;
    void part_from_parent() noexcept;
    bool part_in_place() noexcept;
    void renumber_thread(SegmentHeader& header) noexcept;

    std::mutex mutex_;
    std::atomic<SegmentHeader*> base_ = nullptr;  // stored with release when it is whole
    std::atomic<std::uint64_t> last_id_ = 0;      // relaxed: only that they differ matters
    // Below: under mutex_.
    SegmentMemory memory_;
    std::uint64_t first_free_[kind_count] = {};  // 1 + the place; 0: none
    std::uint64_t left_out_[kind_count] = {};    // also from before there was a segment
    void* copy_ = nullptr;                       // for the child of a fork
    std::uint64_t forking_thread_ = 0;
};

Segment& segment() noexcept;

// Of one kind: the same for all ------------------------------------------------------------------

template <class Record, class Fill>
Record* Segment::add(std::string_view name, Fill fill) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return nullptr;
    const StructureChange change(*header);
    Record* const record = find_free<Record>(*header);
    if (record == nullptr) return nullptr;
    if constexpr (requires { record->name; }) {
        if (kind_of<Record>.first == First::other_later) {
            store_name(records_in<Record>(*header)->name, "other");
        }
        store_name(record->name, name);
    }
    fill(*record);
    if constexpr (requires { record->id; }) {
        record->id.store(next_id(), std::memory_order_relaxed);
    }
    return record;
}

template <class Record>
void Segment::remove(Record& record) noexcept {
    const std::lock_guard guard(mutex_);
    const StructureChange change(*header());
    for (std::size_t i = 0; i < words_of<Record>; ++i) {
        as_words(record)[i].store(0, std::memory_order_relaxed);
    }
    if constexpr (requires { record.next; }) {
        std::uint64_t& first = first_free_[index_of<Record>];
        record.next.store(first, std::memory_order_relaxed);
        first = static_cast<std::uint64_t>(&record - records_in<Record>(*header())) + 1;
    }
}

/// The lowest free one that is not `other`'s, or the last one removed; then one more.
template <class Record>
Record* Segment::find_free(SegmentHeader& header) noexcept {
    Record* const records = records_in<Record>(header);
    Region& region = header.region<Record>();
    constexpr std::size_t first = kind_of<Record>.first == First::record ? 0 : 1;
    const std::size_t used =
        std::max<std::size_t>(region.used.load(std::memory_order_relaxed), first);
    if constexpr (requires { records->next; }) {
        if (std::uint64_t& free = first_free_[index_of<Record>]; free != 0) {
            Record* const record = records + free - 1;
            free = record->next.exchange(0, std::memory_order_relaxed);
            return record;
        }
    } else {
        for (std::size_t i = first; i < used; ++i) {
            if (records[i].id.load(std::memory_order_relaxed) == 0) return records + i;
        }
    }
    if (used == count_of<Record> || !has_pages(records + used, sizeof(Record))) return nullptr;
    region.used.store(used + 1, std::memory_order_relaxed);
    return records + used;
}

template <class Record>
Record* Segment::other() noexcept {
    static_assert(kind_of<Record>.first != First::record);
    SegmentHeader* const header = this->header();
    if (header == nullptr || header->region<Record>().used.load(std::memory_order_relaxed) == 0) {
        return nullptr;
    }
    return records_in<Record>(*header);
}

}  // namespace tensorpool::statistics
