#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include <tensorpool/device/simulation_options.hpp>

#include "simulation/schedule/schedule_driver.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

using SimulationLock = std::unique_lock<std::mutex>;

/// Holds the queues of all streams and decides, by the schedule, which stream does its next work.
/// The work is done on the thread that gives or waits for work, outside of the lock.
class Scheduler {
public:
    Scheduler(const SimulationOptions& options, ScheduleDriver* driver);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    void add(std::shared_ptr<Stream> stream) { streams_.push_back(std::move(stream)); }
    /// The stream goes as soon as it is empty.
    void retire(Stream& stream);

    /// In the order in which they were made; those that were destroyed as long as they have work.
    const std::vector<std::shared_ptr<Stream>>& streams() const noexcept { return streams_; }

    /// REQUIRES for all that follow: the lock is held. It is let go while work is done.
    void give(SimulationLock& lock, Stream& stream, QueueEntry entry);
    void wait(SimulationLock& lock, const Target& target);
    /// Whether it is reached, after some work where the schedule says so.
    bool poll(SimulationLock& lock, const Target& target);
    /// Does all that was given, in any order: where no schedule has a say.
    void drain(SimulationLock& lock);
    bool step(SimulationLock& lock, Stream& stream);

    /// The thread does work of a stream now.
    static bool at_work() noexcept;

private:
    bool advance(SimulationLock& lock, const Target& target);
    Stream* choose(const Target& target);
    Stream* needed_for(const Target& target) noexcept;
    Stream* any_runnable() noexcept;
    Stream* random_runnable();
    Stream* driven_runnable();
    bool decide_to_answer_late(const Target& target);
    void run(SimulationLock& lock, Stream& stream);
    void run_some(SimulationLock& lock);
    void finish_first(Stream& stream) noexcept;
    void pass_waits() noexcept;

    Schedule schedule_;
    std::uint64_t patience_;
    ScheduleDriver* driver_;  // nullptr, but for Schedule::replayed
    std::mt19937_64 random_;
    std::vector<std::shared_ptr<Stream>> streams_;
    std::size_t waits_ = 0;  // entries of queues that only wait
    std::condition_variable changed_;
};

}  // namespace tensorpool::device
