#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorpool::device {

/// Names a stream permanently: by its device and its number there. Number 0 is the default stream.
struct StreamName {
    std::uint16_t device = 0xFFFF;
    std::uint32_t number = 0;

    static constexpr StreamName host() noexcept { return {}; }
    constexpr bool is_host() const noexcept { return device == 0xFFFF; }
    friend constexpr bool operator==(const StreamName&, const StreamName&) = default;
};

/// The part of an operation that is kept for as long as a hazard may refer to it.
struct Operation {
    std::uint64_t number = 0;  // 0: none
    std::uint64_t tick = 0;    // position on its timeline
    std::uint32_t timeline = 0;
    std::uint32_t label = 0;  // number in HazardLog
    StreamName stream;

    friend bool operator==(const Operation&, const Operation&) = default;
};

/// How far each timeline had advanced when something happened (Mattern, "Virtual Time and Global
/// States of Distributed Systems", 1988). A timeline is a sequence of operations that run one after
/// the other: a stream, or a branch of a graph.
class VectorClock {
public:
    std::uint64_t operator[](std::size_t timeline) const noexcept {
        return timeline < ticks_.size() ? ticks_[timeline] : 0;
    }
    void raise(std::size_t timeline, std::uint64_t tick) {
        if (timeline >= ticks_.size()) ticks_.resize(timeline + 1);
        ticks_[timeline] = std::max(ticks_[timeline], tick);
    }
    /// Merges `other` into this clock. Returns whether this clock advanced.
    bool join(const VectorClock& other) {
        if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
        bool later = false;
        for (std::size_t timeline = 0; timeline < other.ticks_.size(); ++timeline) {
            if (other.ticks_[timeline] <= ticks_[timeline]) continue;
            ticks_[timeline] = other.ticks_[timeline];
            later = true;
        }
        return later;
    }
    bool covers(const VectorClock& other) const noexcept {
        for (std::size_t timeline = 0; timeline < other.ticks_.size(); ++timeline) {
            if ((*this)[timeline] < other.ticks_[timeline]) return false;
        }
        return true;
    }

private:
    std::vector<std::uint64_t> ticks_;
};

/// A sequence of operations, by its index in vector clocks.
struct Timeline {
    std::uint32_t number = 0;
    std::uint64_t tick = 0;  // of the last operation
};

/// Hands out timeline numbers. The number of an ended stream is reused, continuing at its last
/// tick, once the host has seen all of that stream's work complete. This keeps the clocks short.
class Timelines {
public:
    Timeline take(const VectorClock& host) {
        for (std::size_t i = 0; i < ended_.size(); ++i) {
            const Timeline ended = ended_[i];
            if (host[ended.number] < ended.tick) continue;
            ended_[i] = ended_.back();
            ended_.pop_back();
            return ended;
        }
        return {made_++, 0};
    }
    void give(Timeline timeline) { ended_.push_back(timeline); }

private:
    std::uint32_t made_ = 0;
    std::vector<Timeline> ended_;
};

}  // namespace tensorpool::device
