#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "platform/stacks/program_stack.hpp"
#include "statistics/segment/segment_layout.hpp"

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
    SiteTable(const SiteTable&) = delete;
    SiteTable& operator=(const SiteTable&) = delete;

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
    std::uint64_t word_of(const platform::ProgramFrame& frame) noexcept;
    std::uint64_t number_of_name(std::string_view name) noexcept;

    Numbers<count_of<SiteRecord>> addresses_;
    std::uint64_t words_[SiteRecord::max_frames] = {};  // of the stack that is looked up
    Numbers<count_of<SiteRecord>> sites_;
    Numbers<count_of<FrameNameRecord>> names_;
};

}  // namespace tensorpool::watch
