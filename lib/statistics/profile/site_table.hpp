#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "platform/stacks/program_stack.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Finds the record of a call stack in the segment. A stack is known by the addresses of its code
/// and by the function objects and lines of Python, so names are looked up once for each stack.
/// Memory is static, because a pool that samples may serve malloc. Not thread-safe.
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
        static constexpr std::size_t size = 2 * count;  // never full
        Entry entries[size] = {};
    };

    static constexpr std::uint32_t other = 1;
    /// Returns the number of a new record, `other` if there is no room, and 0 without a segment.
    std::uint32_t add(std::span<const platform::ProgramFrame> frames) noexcept;
    std::uint64_t word_of(const platform::ProgramFrame& frame) noexcept;
    std::uint64_t number_of_name(std::string_view name) noexcept;

    Numbers<count_of<SiteRecord>> sites_;
    Numbers<count_of<FrameNameRecord>> names_;
};

}  // namespace tensorpool::statistics
