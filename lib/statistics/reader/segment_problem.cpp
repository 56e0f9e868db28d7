#include "statistics/reader/segment_problem.hpp"

#include <algorithm>

namespace tensorpool::statistics {
namespace {

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

bool fits(const Region& region, std::size_t offset, std::size_t record_bytes,
          std::size_t places) noexcept {
    return read(region.offset) == offset && read(region.record_bytes) == record_bytes &&
           read(region.places) == places && read(region.used) <= places;
}

bool has_our_layout(const SegmentHeader& header) noexcept {
    return read(header.bytes) == segment_bytes && read(header.header_bytes) == header_bytes &&
           fits(header.timeline, timeline_offset, sizeof(EntryRecord), entry_count) &&
           fits(header.scopes, scopes_offset, sizeof(ScopeRecord), scope_count) &&
           fits(header.pools, pools_offset, sizeof(PoolRecord), pool_count) &&
           fits(header.arenas, arenas_offset, sizeof(ArenaRecord), arena_count) &&
           fits(header.devices, devices_offset, sizeof(DeviceRecord), device_count) &&
           fits(header.device_streams, device_streams_offset, sizeof(DeviceStreamRecord),
                device_stream_count) &&
           fits(header.planned, planned_offset, sizeof(PlannedRecord), planned_count) &&
           fits(header.slots, slots_offset, sizeof(SlotRecord), slot_count);
}

SegmentProblem cut_short(std::uint64_t bytes) {
    return {AttachFailure::damaged,
            "its segment is cut short: " + std::to_string(bytes) + " bytes, expected " +
                std::to_string(segment_bytes) +
                "; it can be read again when the process has been started anew"};
}

}  // namespace

std::optional<SegmentProblem> problem_of(const SegmentHeader& header) {
    // Pairs with the release store of who made it: what follows is whole.
    const std::uint64_t magic = header.magic.load(std::memory_order_acquire);
    if (magic == 0) {
        return SegmentProblem{AttachFailure::no_segment,
                              "its segment is being made; try again in a moment"};
    }
    if (magic != segment_magic) {
        return SegmentProblem{AttachFailure::damaged,
                              "what it shares is no segment, or has been overwritten; it can be "
                              "read again when the process has been started anew"};
    }
    if (read(header.version) != segment_version) {
        return SegmentProblem{AttachFailure::other_version,
                              "its tensorpool lays out its segment by version " +
                                  std::to_string(read(header.version)) + ", this reader knows " +
                                  std::to_string(segment_version) +
                                  "; use the command of the tensorpool that the process uses"};
    }
    if (!has_our_layout(header)) {
        return SegmentProblem{AttachFailure::damaged,
                              "its segment's header has been overwritten; it can be read again "
                              "when the process has been started anew"};
    }
    return std::nullopt;
}

std::optional<SegmentProblem> read_header(const platform::ObservedFile& file, SegmentHeader& to) {
    if (file.read(0, &to, sizeof to) != sizeof to) return cut_short(file.bytes());
    if (auto problem = problem_of(to)) return problem;
    if (file.bytes() < segment_bytes) return cut_short(file.bytes());
    return std::nullopt;
}

}  // namespace tensorpool::statistics
