#pragma once

#include <string_view>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/errors.hpp>

#include "statistics/segment/owned_record.hpp"

namespace tensorpool::arena {

using OwnedArenaRecord = statistics::OwnedRecord<statistics::ArenaRecord>;

/// Makes the record of an arena, or of the scratch of `thread`. Throws AllocationError if the
/// system has no memory for it.
inline OwnedArenaRecord make_record(std::string_view name, ArenaStatistics::Kind kind,
                                    std::uint64_t thread) {
    const auto describe = [&](statistics::ArenaRecord& record) {
        record.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
        record.thread.store(thread, std::memory_order_relaxed);
    };
    OwnedArenaRecord record(name, describe);
    if (!record) {
        throw AllocationError(std::string(name).c_str(), sizeof(statistics::ArenaRecord), 0, 0,
                              "memory for its record", platform::available_address_space());
    }
    return record;
}

}  // namespace tensorpool::arena
