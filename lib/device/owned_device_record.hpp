#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device_statistics.hpp>

#include "statistics/metrics/device_metrics.hpp"

namespace tensorpool::device {

/// Where the figures of one allocator lie, and those of each of its streams: places in the segment,
/// so that others read the very words that their owner writes; or, where none is left, memory of
/// its own, which is added up under `other` now and then. While it lives, snapshots show it, and
/// recorders know it by its number. REQUIRES for all but `id` and `figures`: one thread at a time.
class OwnedDeviceRecord {
public:
    /// Throws std::bad_alloc. `name` is cut to 47 bytes.
    OwnedDeviceRecord(std::string_view name, DeviceStatistics::Kind kind, Device device);
    ~OwnedDeviceRecord();
    OwnedDeviceRecord(const OwnedDeviceRecord&) = delete;
    OwnedDeviceRecord& operator=(const OwnedDeviceRecord&) = delete;

    std::uint64_t id() const noexcept;
    statistics::DeviceTotals& totals() noexcept;

    /// Counters for one more stream, zeros; counted in `totals().streams`. They stay where they
    /// are. Throws std::bad_alloc.
    statistics::DeviceStreamCounters& add_stream(StreamHandle stream);
    /// The stream ended: its counters go on with the next stream that is added, so that nothing is
    /// folded in or counted twice.
    void end_stream(statistics::DeviceStreamCounters& stream) noexcept;

    /// Memory came or went, and the totals say so: tells a recorder, and brings `other` up to date
    /// with what has no place.
    void note_capacity() noexcept;

    /// Takes no lock.
    DeviceStatistics figures() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::device
