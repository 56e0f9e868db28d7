#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "simulation/hazards/watch.hpp"
#include "simulation/schedule/scheduler.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// The order between streams and the host, in vector clocks, and the time that passes for the host.
/// A stream's next work comes after all that the host knows; by waiting for a mark, the host learns
/// what the mark knows.
class Ordering {
public:
    Ordering(Watch& watch, Scheduler& scheduler) : watch_(watch), scheduler_(scheduler) {}

    /// Returns what the stream's next work comes after.
    const VectorClock& clock_of(Stream& stream);
    /// Returns the next operation of the stream, after all that the host knows.
    Operation next_operation(Stream& stream, const std::string& label);
    /// Returns what stands for all that was given to the stream so far.
    std::shared_ptr<Mark> mark(const std::shared_ptr<Stream>& stream);
    void wait(SimulationLock& lock, const Mark& mark);
    /// Whether the mark is reached. The first `late_answers` answers after that are still false.
    bool poll(SimulationLock& lock, Mark& mark, std::uint64_t late_answers = 0);

    std::uint64_t now_ns() const noexcept { return now_ns_; }
    /// A call of the host takes its time.
    void spend(std::uint64_t ns) noexcept { now_ns_ += ns; }

private:
    void pass(const Mark& mark);

    Watch& watch_;
    Scheduler& scheduler_;
    std::uint64_t now_ns_ = 0;
};

}  // namespace tensorpool::device
