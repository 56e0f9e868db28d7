#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/arena_statistics.hpp>

#include "statistics/segment/owned_record.hpp"

namespace tensorpool::arena {

using OwnedArenaRecord = statistics::OwnedRecord<statistics::ArenaRecord>;

/// The record of an arena, or of `thread`'s scratch. Throws std::bad_alloc.
inline OwnedArenaRecord make_record(std::string_view name, ArenaStatistics::Kind kind,
                                    std::uint64_t thread) {
    const auto describe = [&](statistics::ArenaRecord& record) {
        record.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
        record.thread.store(thread, std::memory_order_relaxed);
    };
    return OwnedArenaRecord(name, describe).or_throw();
}

}  // namespace tensorpool::arena
