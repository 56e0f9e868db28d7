#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "simulation/hazards/watch.hpp"
#include "simulation/schedule/scheduler.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// The order between streams and the host, in vector clocks, and the simulated time of the host. A
/// stream's next work is ordered after everything that the host has waited for. By waiting for a
/// mark, the host takes over the mark's clock.
class Ordering {
public:
    Ordering(Watch& watch, Scheduler& scheduler) : watch_(watch), scheduler_(scheduler) {}

    /// Returns the clock of everything that the stream's next work is ordered after.
    const VectorClock& clock_of(Stream& stream);
    /// Returns the next operation of the stream, ordered after all that the host has waited for.
    Operation next_operation(Stream& stream, const std::string& label);
    /// Returns a mark that stands for all work submitted to the stream so far.
    std::shared_ptr<Mark> mark(const std::shared_ptr<Stream>& stream);
    void wait(SimulationLock& lock, const Mark& mark);
    /// Returns whether the mark is reached. The first `late_answers` calls after that still return
    /// false.
    bool poll(SimulationLock& lock, Mark& mark, std::uint64_t late_answers = 0);

    std::uint64_t now_ns() const noexcept { return now_ns_; }
    /// Advances the host's time by the duration of a call.
    void spend(std::uint64_t ns) noexcept { now_ns_ += ns; }

private:
    void pass(const Mark& mark);

    Watch& watch_;
    Scheduler& scheduler_;
    std::uint64_t now_ns_ = 0;
};

}  // namespace tensorpool::device
