#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tensorpool/arena_statistics.hpp>

#include "statistics/segment/folded_words.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::arena {

/// Where the figures of one arena or one scratch lie: a place in the segment, so that others read
/// the very words that their owner writes; or, where no place is left, memory of its own, which is
/// added up under `other` now and then.
class RecordHolder {
public:
    /// A scratch is `thread`'s; 0 for an arena. Throws std::bad_alloc.
    RecordHolder(std::string_view name, ArenaStatistics::Kind kind, std::uint64_t thread);
    ~RecordHolder() { leave(); }
    RecordHolder(const RecordHolder&) = delete;
    RecordHolder& operator=(const RecordHolder&) = delete;

    statistics::ArenaRecord& operator*() const noexcept { return *record_; }
    statistics::ArenaRecord* operator->() const noexcept { return record_; }

    bool has_place() const noexcept { return apart_ == nullptr; }
    /// Without a place: brings `other` up to date. One thread at a time, and no fork meanwhile.
    void fold() noexcept;
    /// Gives the place back, and there is no record any more. Without a place: takes what was added
    /// to `other` away; the record stays until this goes, for a fork may yet look at it.
    void leave() noexcept;

private:
    struct Apart;
    struct DropApart {
        void operator()(Apart* apart) const noexcept;
    };

    statistics::ArenaRecord* record_;
    bool has_left_ = false;
    std::unique_ptr<Apart, DropApart> apart_;
};

}  // namespace tensorpool::arena
