#pragma once

#include <cstdint>
#include <string_view>

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "plan/planned_table.hpp"
#include "statistics/segment/owned_record.hpp"

/// Adds records to a segment as their owners do.
namespace tensorpool::statistics {

inline PoolRecord* add_pool(Segment& segment, std::string_view name, std::uint64_t limit) {
    return segment.add<PoolRecord>(name, [&](PoolRecord& pool) { pool.limit_bytes = limit; });
}
inline ArenaRecord* add_arena(Segment& segment, std::string_view name, std::uint64_t kind,
                              std::uint64_t thread) {
    return segment.add<ArenaRecord>(name, [&](ArenaRecord& arena) {
        arena.kind = kind;
        arena.thread = thread;
    });
}
inline CountersRecord* add_slot(Segment& segment, const PoolRecord& pool) {
    return segment.add<CountersRecord>(
        "", [&](CountersRecord& record) { record.pool = pool.id.load(); });
}
inline DeviceRecord* add_device(Segment& segment, std::string_view name, std::uint64_t kind,
                                std::string_view device) {
    return segment.add<DeviceRecord>(name, [&](DeviceRecord& record) {
        record.kind = kind;
        store_text(record.device, device);
    });
}
inline DeviceStreamRecord* add_device_stream(Segment& segment, const DeviceRecord& device,
                                             std::uint64_t number) {
    return segment.add<DeviceStreamRecord>("", [&](DeviceStreamRecord& stream) {
        stream.device = device.id.load();
        stream.stream = number;
    });
}
inline PlannedRecord* add_planned(Segment& segment, std::string_view name) {
    return segment.add<PlannedRecord>(name, [](PlannedRecord&) {});
}

/// Creates the record of a pool as a pool does.
inline OwnedRecord<PoolRecord> own_pool(std::string_view name, std::uint64_t limit) {
    return {name, [&](PoolRecord& pool) { pool.limit_bytes = limit; }};
}

}  // namespace tensorpool::statistics
