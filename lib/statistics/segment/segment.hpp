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

/// Marks a change of the segment's structure for as long as the object exists. REQUIRES: the
/// segment's mutex is held.
class StructureChange {
public:
    explicit StructureChange(SegmentHeader& header) noexcept : epoch_(header.epoch) {
        detail::add(epoch_, 1);
        // Pairs with the reader's acquire fence: a reader that saw any part of the change also sees
        // that a change was in progress.
        std::atomic_thread_fence(std::memory_order_release);
    }
    ~StructureChange() { detail::add_release(epoch_, 1); }
    StructureChange(const StructureChange&) = delete;
    StructureChange& operator=(const StructureChange&) = delete;

private:
    Counter& epoch_;
};

/// Requests the pages of this range from the system and returns whether it has them. Touching a
/// page that the system cannot provide would end the process.
bool has_pages(void* begin, std::size_t bytes) noexcept;

/// The writer's side of the segment: it gives out records. The segment is created when the first
/// pool, arena, scratch or scope of the process needs a record; a program without these has no
/// segment. Its memory never moves and is never released. It is private memory if the system cannot
/// share memory or with TENSORPOOL_STATISTICS=off. Thread-safe. The process has one Segment; tests
/// create others.
///
/// An object that gets no record counts in private memory, is counted as left out, and is summed
/// into `other` (see owned_record.hpp).
class Segment {
public:
    constexpr Segment() noexcept = default;
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    /// Returns a record that is zero except for its number, its name and the fields that `fill`
    /// sets. Returns nullptr if no record is left or there is no memory for the segment. Records
    /// without a name ignore `name`.
    template <class Record, class Fill>
    Record* add(std::string_view name, Fill fill) noexcept;
    /// Zeros the record and makes it available to the next object of its kind.
    template <class Record>
    void remove(Record& record) noexcept;
    /// Appends a record that is never removed, with the fields that `fill` sets. Returns its
    /// number, counted from 1, or 0 if no record is left or there is no memory.
    template <class Record, class Fill>
    std::uint32_t append(Fill fill) noexcept;
    /// Returns the record of the scopes of this name, which is never removed. Returns the record of
    /// `other` if no record is left, and nullptr if there is no segment.
    ScopeRecord* find_or_add_scope(std::string_view name) noexcept;

    /// Counts one more or one less object without a record.
    template <class Record>
    void count_left_out(bool more) noexcept {
        count_left_out(index_of<Record>, more);
    }
    /// Returns the record that sums up the objects without a record. Returns nullptr if there is no
    /// segment or no such record yet.
    template <class Record>
    Record* other() noexcept;

    /// Returns nullptr before the first record was added, and if there is no memory for the
    /// segment.
    SegmentHeader* header() noexcept { return base_.load(std::memory_order_acquire); }
    EntryRecord* timeline() noexcept;
    /// Returns false if the system has no page for the entry that is written next. REQUIRES: there
    /// is a header.
    bool has_page_of_next_entry() noexcept;
    /// Returns the next number for a pool, arena, planned arena or device allocator; never 0.
    std::uint64_t next_id() noexcept {
        return last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
    }

    SegmentMemory& memory() noexcept { return memory_; }

    /// Called around a fork, after all other locks of the library were acquired. The child gets a
    /// copy of the segment, taken between `before_fork` and its own handler, in a segment of its
    /// own at the same address.
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;
    /// Called in a child that was made without these handlers, where any lock may be held: from now
    /// on it counts in memory of its own, which no other process reads.
    void part_without_locks() noexcept;

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
    std::atomic<SegmentHeader*> base_ = nullptr;  // stored with release when the segment is
                                                  // complete
    std::atomic<std::uint64_t> last_id_ = 0;      // relaxed: the numbers only have to differ
    // Guarded by mutex_:
    SegmentMemory memory_;
    // 1 + the index of the first free record; 0 means none. Of kinds whose free records are not
    // linked: no used record with a lower number is free.
    std::uint64_t first_free_[kind_count] = {};
    std::uint64_t left_out_[kind_count] = {};  // includes objects from before the segment was
                                               // created
    void* copy_ = nullptr;                     // for the child of a fork
    std::uint64_t forking_thread_ = 0;
};

Segment& segment() noexcept;

// Functions for all kinds of records ------------------------------------------------------------

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

template <class Record, class Fill>
std::uint32_t Segment::append(Fill fill) noexcept {
    const std::lock_guard guard(mutex_);
    SegmentHeader* const header = made();
    if (header == nullptr) return 0;
    Region& region = header->region<Record>();
    const std::uint64_t used = region.used.load(std::memory_order_relaxed);
    Record* const record = records_in<Record>(*header) + used;
    if (used == count_of<Record> || !has_pages(record, sizeof(Record))) return 0;
    fill(*record);
    if constexpr (requires { record->id; }) record->id.store(next_id(), std::memory_order_relaxed);
    // Pairs with the acquire of readers. No epoch: nothing that they have seen changes.
    region.used.store(used + 1, std::memory_order_release);
    return static_cast<std::uint32_t>(used + 1);
}

template <class Record>
void Segment::remove(Record& record) noexcept {
    const std::lock_guard guard(mutex_);
    const StructureChange change(*header());
    for (std::size_t i = 0; i < words_of<Record>; ++i) {
        as_words(record)[i].store(0, std::memory_order_relaxed);
    }
    const auto number = static_cast<std::uint64_t>(&record - records_in<Record>(*header())) + 1;
    std::uint64_t& first = first_free_[index_of<Record>];
    if constexpr (requires { record.next; }) {
        record.next.store(first, std::memory_order_relaxed);
        first = number;
    } else {
        first = std::min(first, number);
    }
}

/// Returns the lowest free record that is not `other`, or the one that was removed last. If none is
/// free, takes a new one.
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
        std::uint64_t& free = first_free_[index_of<Record>];
        for (free = std::max<std::uint64_t>(free, first + 1); free <= used; ++free) {
            Record* const record = records + free - 1;
            if (record->id.load(std::memory_order_relaxed) != 0) continue;
            ++free;
            return record;
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
