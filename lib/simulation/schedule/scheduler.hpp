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
/// The work runs on the thread that submits or waits for work, outside the lock.
class Scheduler {
public:
    Scheduler(const SimulationOptions& options, ScheduleDriver* driver);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    void add(std::shared_ptr<Stream> stream) { streams_.push_back(std::move(stream)); }
    /// Removes the stream as soon as its queue is empty.
    void retire(Stream& stream);

    /// All streams in order of creation, with destroyed ones that still have work.
    const std::vector<std::shared_ptr<Stream>>& streams() const noexcept { return streams_; }

    /// REQUIRES, for this and all functions below: the lock is held. It is released while work
    /// runs.
    void give(SimulationLock& lock, Stream& stream, QueueEntry entry);
    void wait(SimulationLock& lock, const Target& target);
    /// Returns whether the target is reached, after running some work if the schedule says so.
    bool poll(SimulationLock& lock, const Target& target);
    /// Runs all submitted work, in any order, regardless of the schedule.
    void drain(SimulationLock& lock);
    bool step(SimulationLock& lock, Stream& stream);

    /// Whether the calling thread is running work of a stream.
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
    ScheduleDriver* driver_;  // set for Schedule::replayed only
    std::mt19937_64 random_;
    std::vector<std::shared_ptr<Stream>> streams_;
    std::size_t waits_ = 0;  // queue entries that are waits
    std::condition_variable changed_;
};

}  // namespace tensorpool::device
