#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arena/arena_table.hpp"
#include "statistics/add_records.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::testing {

/// All records of arenas and scratches that were ever taken, as a reader of the segment finds them.
/// The first one is that of `other`.
inline std::span<statistics::ArenaRecord> all_arena_records() {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return {};
    auto* const begin = reinterpret_cast<std::byte*>(header);
    return {reinterpret_cast<statistics::ArenaRecord*>(
                begin + header->region<statistics::ArenaRecord>().offset),
            header->region<statistics::ArenaRecord>().used};
}

/// Returns the record with this number; nullptr if there is none.
inline statistics::ArenaRecord* arena_record(std::uint64_t id) {
    for (statistics::ArenaRecord& record : all_arena_records()) {
        if (record.id == id) return &record;
    }
    return nullptr;
}

inline std::size_t arena_records() {
    std::size_t count = 0;
    for (const statistics::ArenaRecord& record : all_arena_records()) count += record.id != 0;
    return count;
}

inline std::uint64_t arenas_left_out() {
    return statistics::segment().header()->region<statistics::ArenaRecord>().left_out;
}

/// Returns whether any word of the record is an address within 4 GiB of `address`.
inline bool holds_address(const statistics::ArenaRecord& record, const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t near = std::uintptr_t{4} << 30;
    const auto* const words = statistics::as_words(record);
    for (std::size_t i = 0; i < statistics::words_of<statistics::ArenaRecord>; ++i) {
        if (words[i] > at - near && words[i] < at + near) return true;
    }
    return false;
}

/// Keeps all records of arenas and scratches taken while it exists.
class NoArenaRecords {
public:
    NoArenaRecords() {
        while (auto* const filler = add_arena(statistics::segment(), "filler", 0, 0)) {
            fillers_.push_back(filler);
        }
    }
    ~NoArenaRecords() {
        for (statistics::ArenaRecord* const filler : fillers_) {
            statistics::segment().remove(*filler);
        }
    }
    NoArenaRecords(const NoArenaRecords&) = delete;
    NoArenaRecords& operator=(const NoArenaRecords&) = delete;

private:
    std::vector<statistics::ArenaRecord*> fillers_;
};

/// Returns whether the sums of `other` are empty.
inline bool other_arena_is_empty() {
    const statistics::ArenaRecord& other = *statistics::segment().other<statistics::ArenaRecord>();
    const auto* const totals = statistics::as_words(other.totals);
    for (std::size_t i = 0; i < statistics::words_of<statistics::ArenaTotals>; ++i) {
        if (totals[i] != 0) return false;
    }
    return other.words.used == 0 && other.words.high == 0;
}

}  // namespace tensorpool::testing
