#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>

#include "statistics/segment/name.hpp"
#include "statistics/segment/segment_layout.hpp"
#include "statistics/segment/segment_memory.hpp"

namespace tensorpool::statistics {

/// The writer's side of the segment: hands out its places. Made when the first pool, arena, scratch
/// or scope of the process needs a place, so that a program that uses none has none. Its memory
/// never moves and is never given back. Where the system refuses to share, or
/// TENSORPOOL_STATISTICS=off, it is private memory. Thread-safe; the only one but in tests is the
/// process's.
///
/// Whoever gets nullptr counts in memory of its own, is counted as left out, and adds itself up in
/// place 0 (see folded_words.hpp).
class Segment {
public:
    constexpr Segment() noexcept = default;
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    /// A place, zeros but for what is given here; nullptr when there is none left.
    PoolRecord* add_pool(std::string_view name, std::uint64_t limit_bytes) noexcept;
    void remove_pool(PoolRecord& pool) noexcept;
    ArenaRecord* add_arena(std::string_view name, std::uint64_t kind,
                           std::uint64_t thread) noexcept;
    void remove_arena(ArenaRecord& arena) noexcept;
    /// Of this pool, and of no thread yet.
    SlotRecord* add_slot(const PoolRecord& pool) noexcept;
    void remove_slot(SlotRecord& slot) noexcept;
    /// `device` is text such as "cuda:0", of which 15 bytes are kept.
    DeviceRecord* add_device(std::string_view name, std::uint64_t kind,
                             std::string_view device) noexcept;
    void remove_device(DeviceRecord& device) noexcept;
    /// Of this allocator, which has a place.
    DeviceStreamRecord* add_device_stream(const DeviceRecord& device,
                                          std::uint64_t stream) noexcept;
    void remove_device_stream(DeviceStreamRecord& stream) noexcept;
    PlannedRecord* add_planned(std::string_view name) noexcept;
    void remove_planned(PlannedRecord& planned) noexcept;
    /// The place of scopes of this name, which stays; `other`'s when there is none left. nullptr
    /// when there is no segment.
    ScopeRecord* find_or_add_scope(std::string_view name) noexcept;

    /// One thing more without a place, or one less.
    enum class Kind { pools, arenas, slots, scopes, devices, device_streams, planned };
    void count_left_out(Kind kind, bool more) noexcept;
    /// Where what has no place is added up; nullptr when there is no segment.
    PoolRecord* other_pool() noexcept;
    ArenaRecord* other_arena() noexcept;
    DeviceRecord* other_device() noexcept;
    /// nullptr too before the first planned arena had a place.
    PlannedRecord* other_planned() noexcept;

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
    void show_left_out(SegmentHeader& header) noexcept;
    void part_from_parent() noexcept;
    bool part_in_place() noexcept;
    void renumber_thread(SegmentHeader& header) noexcept;

    static constexpr std::size_t none = ~std::size_t{0};

    std::mutex mutex_;
    std::atomic<SegmentHeader*> base_ = nullptr;  // stored with release when it is whole
    std::atomic<std::uint64_t> last_id_ = 0;      // relaxed: only that they differ matters
    // Below: under mutex_.
    SegmentMemory memory_;
    std::size_t first_free_slot_ = none;
    std::uint64_t left_out_[7] = {};  // by Kind, also from before there was a segment
    void* copy_ = nullptr;            // for the child of a fork
    std::uint64_t forking_thread_ = 0;
};

Segment& segment() noexcept;

}  // namespace tensorpool::statistics
