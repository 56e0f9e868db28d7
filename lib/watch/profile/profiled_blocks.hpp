#pragma once

#include "base/block_mark.hpp"
#include "base/never_destroyed.hpp"
#include "platform/stacks/program_stack.hpp"
#include "statistics/segment/segment_layout.hpp"
#include "statistics/segment/slab_list.hpp"
#include "watch/pace.hpp"

namespace tensorpool::watch {

using statistics::count_of;
using statistics::FrameNameRecord;
using statistics::records_in;
using statistics::SegmentHeader;
using statistics::SiteRecord;

/// Finds the record of a call stack in the segment. Stacks with the same names and offsets have one
/// record. What they are is looked up once for each set of code addresses, function objects and
/// lines of Python. Memory is static, because a pool that samples may serve malloc. Not
/// thread-safe.
class SiteTable {
public:
    constexpr SiteTable() noexcept = default;

    /// Returns the record of a stack of the calling thread, innermost call first. If there is no
    /// room, returns the record of other stacks; without a segment nullptr.
    SiteRecord* find_or_add(std::span<const platform::ProgramFrame> frames) noexcept;

private:
    /// The numbers of records, from 1, by a hash of what they are for, with open addressing. Two
    /// things with the same hash of 64 bits count as one.
    template <std::size_t count>
    struct Numbers {
        struct Entry {
            std::uint64_t hash = 0;
            std::uint32_t number = 0;  // 0 for an unused entry
        };
        /// Returns the entry for a hash, which is unused if there is none yet.
        Entry& find(std::uint64_t hash) noexcept {
            std::size_t at = hash % size;
            while (entries[at].number != 0 && entries[at].hash != hash) at = (at + 1) % size;
            return entries[at];
        }
        /// Notes a number in an unused entry. If half of the entries are in use, the others are
        /// forgotten.
        void set(Entry& entry, Entry value) noexcept {
            if (used != count) {
                entry = value;
                ++used;
                return;
            }
            *this = {};
            find(value.hash) = value;
            used = 1;
        }
        static constexpr std::size_t size = 2 * count;
        std::size_t used = 0;
        Entry entries[size] = {};
    };

    static constexpr std::uint32_t other = 1;
    /// Returns the number of the record of a stack whose addresses are new, `other` if there is no
    /// room, and 0 without a segment.
    std::uint32_t find_by_name(std::span<const platform::ProgramFrame> frames) noexcept;
    std::uint64_t number_of_name(std::string_view name) noexcept;

    Numbers<count_of<SiteRecord>> addresses_;
    std::uint64_t words_[SiteRecord::max_frames] = {};  // of the stack that is looked up
    Numbers<count_of<SiteRecord>> sites_;
    Numbers<count_of<FrameNameRecord>> names_;
};

/// Recognizes a stack that was captured before, many times faster than it can be captured:
/// the same return addresses lie at the same places of the stack, and Python has reached the same
/// instructions. The stacks of all threads share the table. Memory is static. Not thread-safe.
class KnownStacks {
public:
    constexpr KnownStacks() noexcept = default;

    /// Returns the site of the calling thread's stack, or nullptr if it is not known. `base` is the
    /// frame of a function that the caller is in, or was called from, and `python` what
    /// `hash_python_stack` returns.
    SiteRecord* find(const void* base, std::uint64_t python) const noexcept {
        for (const Known& known : known_[set_of(base)]) {
            if (known.base == base && known.python == python && known.is_on_stack())
                return known.site;
        }
        return nullptr;
    }
    /// Notes the site of the calling thread's stack. What lies inside `base` is not compared.
    void add(const void* base, std::uint64_t python, const platform::StackBuffers& stack,
             SiteRecord& site) noexcept;

private:
    static constexpr std::size_t set_count = 64;
    static constexpr std::size_t ways = 4;
    static constexpr std::size_t max_frames = platform::StackBuffers::max_native;

    struct Known {
        const void* base = nullptr;
        std::uint64_t python = 0;
        SiteRecord* site = nullptr;
        std::uint32_t count = 0;
        std::uint32_t offsets[max_frames] = {};  // from the base
        std::uintptr_t returns[max_frames] = {};

        bool is_on_stack() const noexcept;
    };
    static std::size_t set_of(const void* base) noexcept {
        return reinterpret_cast<std::uintptr_t>(base) / 16 % set_count;
    }

    Known known_[set_count][ways];
    std::uint8_t next_[set_count] = {};  // the way that is replaced next
};

/// Samples take 0.5 % of a thread's time. Time that was not needed is saved for 8 ms of samples.
inline constexpr Terms profile_terms{.share = 0.005,
                                     .first_cost_ns = 4'000,  // perf/results/profile.md
                                     .enough = 50,
                                     .max_saved = 2'000,
                                     .haste = 0};

/// Returns the mean distance in bytes between samples of the heap profile; 0 if none are taken.
/// Reads TENSORPOOL_PROFILE on the first call. Does not call malloc.
std::uint64_t profile_interval() noexcept;
/// Writes the interval to the segment, for readers. Called when a pool is made.
void show_profile_interval() noexcept;

/// The mark of a block in use that was sampled. The block counts as more blocks and bytes than it
/// has: those that were not sampled.
struct ProfiledBlock final : base::BlockMark {
    void on_free(std::size_t bytes) noexcept override;
    BlockMark* charge() noexcept override {
        return covered == nullptr ? nullptr : covered->charge();
    }

    SiteRecord* site = nullptr;
    const void* address = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;  // in units of 1 / SiteRecord::block_units
    std::uint64_t begin_ns = 0;
    BlockMark* covered = nullptr;  // the earlier mark of the block
    ProfiledBlock* next_free = nullptr;
};

/// The heap profile of the process: its sampled blocks, added up by call stack in the segment.
/// Memory comes from the system and never from malloc, which this library may serve. Thread-safe.
class ProfiledBlocks : public base::Lockable {
public:
    constexpr ProfiledBlocks() noexcept = default;

    /// Notes a block of `bytes` bytes, which was sampled at a mean distance of `mean` bytes, for
    /// the stack of the caller. The sample covers the block's mark `covered`. Returns nullptr, and
    /// counts the sample as lost, if there is no memory. REQUIRES: the caller holds no lock.
    [[gnu::noinline]] ProfiledBlock* begin(const void* address, std::size_t bytes, double mean,
                                           base::BlockMark* covered = nullptr) noexcept;
    /// Notes the end of a block's use.
    void end(ProfiledBlock& block) noexcept;
    /// Notes that a pool ended, whose sampled blocks have ended before, and what was requested from
    /// it.
    void note_end_of_pool(std::uint64_t requested_bytes) noexcept;
    /// Counts a sample that could not be taken.
    void count_lost() noexcept;

private:
    // REQUIRES, for all that follow: the lock is held.
    SiteRecord* site_of_caller(const void* frame) noexcept;
    void keep_peak() noexcept;

    SiteTable sites_;
    KnownStacks known_;
    platform::ProgramFrame frames_[SiteRecord::max_frames] = {};
    platform::StackBuffers buffers_ = {};
    statistics::SlabList<ProfiledBlock> free_;
};

inline ProfiledBlocks& profiled_blocks() noexcept {
    return base::the_only<ProfiledBlocks>.get();
}

}  // namespace tensorpool::watch
