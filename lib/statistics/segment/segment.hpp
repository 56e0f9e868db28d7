#pragma once

#include <algorithm>
#include <mutex>

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

    /// Returns a record that is zero except for its number, its name and the fields that `fill`
    /// sets. Returns nullptr if no record is left or there is no memory for the segment. Records
    /// without a name ignore `name`.
    template <class Record, class Fill>
    Record* add(std::string_view name, Fill fill) noexcept {
        const std::lock_guard guard(mutex_);
        SegmentHeader* const header = made();
        if (header == nullptr) return nullptr;
        const std::size_t index = index_for(Record::layout);
        const StructureChange change(*header);
        auto* const record = reinterpret_cast<Record*>(take(*header, index, name));
        if (record == nullptr) return nullptr;
        fill(*record);
        if constexpr (requires { record->id; }) {
            record->id.store(next_id(), std::memory_order_relaxed);
        }
        return record;
    }
    /// Zeros the record and makes it available to the next object of its kind.
    template <class Record>
    void remove(Record& record) noexcept {
        put_back(Record::layout, as_words(record));
    }
    /// Appends a record that is never removed, with the fields that `fill` sets. Returns its
    /// number, counted from 1, or 0 if no record is left or there is no memory.
    template <class Record, class Fill>
    std::uint32_t append(Fill fill) noexcept {
        const std::lock_guard guard(mutex_);
        SegmentHeader* const header = made();
        if (header == nullptr) return 0;
        auto* const record = reinterpret_cast<Record*>(append_to(*header, Record::layout));
        if (record == nullptr) return 0;
        fill(*record);
        if constexpr (requires { record->id; })
            record->id.store(next_id(), std::memory_order_relaxed);
        const auto number = static_cast<std::uint32_t>(record - records_in<Record>(*header)) + 1;
        // Pairs with the acquire of readers. No epoch: nothing that they have seen changes.
        header->region<Record>().used.store(number, std::memory_order_release);
        return number;
    }
    /// Returns the record of this name, which is never removed. Returns the record of `other` if no
    /// record is left, and nullptr if there is no segment.
    template <class Record>
    Record* find_or_add(std::string_view name) noexcept {
        return reinterpret_cast<Record*>(find_or_add(Record::layout, name));
    }

    /// Counts one more or one less object without a record of this kind.
    void count_left_out(const RecordKind& kind, bool more) noexcept;
    /// Returns the record that sums up the objects without a record. Returns nullptr if there is no
    /// segment or no such record yet.
    template <class Record>
    Record* other() noexcept {
        static_assert(Record::layout.first != First::record);
        SegmentHeader* const header = this->header();
        if (header == nullptr ||
            header->region<Record>().used.load(std::memory_order_relaxed) == 0) {
            return nullptr;
        }
        return records_in<Record>(*header);
    }

    /// Calls `function(kind, record)` with each record in use of the kinds that have numbers.
    template <class Function>
    void for_each_record(Function function) noexcept {
        const SegmentHeader* const header = this->header();
        if (header == nullptr) return;
        const std::size_t known =
            std::min(kinds().size(), header->kinds.load(std::memory_order_acquire));
        for (std::size_t i = 0; i != known; ++i) {
            const RecordKind& kind = *kinds_[i];
            if (kind.id == RecordKind::none) continue;
            const std::size_t used = header->regions[i].used.load(std::memory_order_acquire);
            const std::byte* record = reinterpret_cast<const std::byte*>(header) +
                                      header->regions[i].offset.load(std::memory_order_relaxed);
            for (std::size_t at = 0; at != used; ++at, record += kind.record_bytes) {
                const auto* const words = reinterpret_cast<const Counter*>(record);
                if (words[kind.id / sizeof *words].load(std::memory_order_relaxed) != 0) {
                    function(kind, words);
                }
            }
        }
    }

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
    /// Calls `function` under the lock, which a fork takes.
    template <class Function>
    auto locked(Function function) noexcept {
        const std::lock_guard guard(mutex_);
        return function();
    }

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
    // REQUIRES, for these and the next ones: the mutex is held.
    std::size_t index_for(const RecordKind& kind) noexcept;
    void describe_kinds(SegmentHeader& header) noexcept;
    Counter* take(SegmentHeader& header, std::size_t index, std::string_view name) noexcept;
    Counter* find_free(SegmentHeader& header, std::size_t index) noexcept;
    void put_back(const RecordKind& kind, Counter* record) noexcept;
    Counter* append_to(SegmentHeader& header, const RecordKind& kind) noexcept;
    Counter* find_or_add(const RecordKind& kind, std::string_view name) noexcept;
    std::span<const RecordKind* const> kinds() const noexcept {
        return {kinds_, kind_count_.load(std::memory_order_acquire)};
    }
    void show_left_out(SegmentHeader& header) noexcept;
    void part_from_parent() noexcept;
    bool part_in_place() noexcept;
    void renumber_thread(SegmentHeader& header) noexcept;

    std::mutex mutex_;
    // The kinds that this process has used. The array only grows.
    const RecordKind* kinds_[max_kinds] = {&EntryRecord::layout, &PoolRecord::layout,
                                           &CountersRecord::layout, &FrameNameRecord::layout,
                                           &SiteRecord::layout};
    std::atomic<std::size_t> kind_count_ = first_kind_count;
    std::atomic<SegmentHeader*> base_ = nullptr;  // release: the segment is complete
    std::atomic<std::uint64_t> last_id_ = 0;      // relaxed: the numbers only have to differ
    // Guarded by mutex_:
    SegmentMemory memory_;
    // 1 + the index of the first free record; 0 means none. Of kinds whose free records are not
    // linked: no used record with a lower number is free.
    std::uint64_t first_free_[max_kinds] = {};
    std::uint64_t left_out_[max_kinds] = {};  // also before the segment was created
    platform::SharedMemory of_child_;         // during a fork
    std::uint64_t forking_thread_ = 0;
};

Segment& segment() noexcept;

/// Returns the sum of a field over all records of this process of the kinds that have it.
std::uint64_t sum_of(std::string_view field) noexcept;

/// Describes the first kinds in the header of a new segment, of which `bytes` are mapped.
void describe_layout(SegmentHeader& header, std::size_t bytes = segment_bytes) noexcept;
/// Describes another kind, whose records lie after those of all others. It has no records if there
/// is no room for them.
void describe_kind(SegmentHeader& header, const RecordKind& kind,
                   std::size_t bytes = segment_bytes) noexcept;

}  // namespace tensorpool::statistics
