#pragma once

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>

#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/stream.hpp"

namespace tensorpool::device {

/// Makes the choices of one run: which stream does its next work, and whether a query is answered
/// late. The scheduler reports each piece of work before it runs.
class ScheduleDriver {
public:
    struct Step {
        StreamName stream;
        std::uint64_t position = 0;                  // of the work in its stream
        std::shared_ptr<const Footprint> footprint;  // nullptr: touches nothing
    };

    static std::unique_ptr<SimulatedBackend> make_backend(const SimulationOptions& options,
                                                          ScheduleDriver& driver);

    ScheduleDriver() noexcept = default;
    virtual ~ScheduleDriver();
    ScheduleDriver(const ScheduleDriver&) = delete;
    ScheduleDriver& operator=(const ScheduleDriver&) = delete;

    /// Returns the index of the step to run next. `steps` is not empty.
    virtual unsigned choose_step(const std::vector<Step>& steps) = 0;
    /// Returns true if a query of unfinished work reports not_ready, or false if the work is done
    /// first.
    virtual bool choose_not_ready() = 0;
    /// Called before each step runs, whether it was chosen or was the only one.
    virtual void done(const Step& step) = 0;
};

/// Makes the given choices in order, and the first alternative of each after that.
class ReplayDriver final : public ScheduleDriver {
public:
    explicit ReplayDriver(std::vector<unsigned> choices) noexcept : choices_(std::move(choices)) {}

    unsigned choose_step(const std::vector<Step>& steps) override;
    bool choose_not_ready() override;
    void done(const Step&) override {}

private:
    unsigned next(unsigned count) noexcept;

    std::vector<unsigned> choices_;
    std::size_t made_ = 0;
};

/// Counts calls, decides which of them fail by injected faults, and keeps each thread's last error
/// text. Not thread-safe: the simulation's lock guards it.
class CallBook {
public:
    const SimulatedCalls& calls() const noexcept { return calls_; }
    void reset_calls() noexcept { calls_ = {}; }
    const SimulationFaults& faults() const noexcept { return faults_; }
    void set_faults(const SimulationFaults& faults);

    /// Counts the call. Returns ok if no fault is injected into it.
    DeviceStatus admit(SimulatedCall call);

    void keep_error(std::string text) { errors_[std::this_thread::get_id()] = std::move(text); }
    std::string error() const;

private:
    bool demanded(SimulatedCall call) const noexcept;

    SimulatedCalls calls_;
    SimulationFaults faults_;
    SimulatedCalls since_faults_;
    std::uint64_t all_since_faults_ = 0;
    std::unordered_map<std::thread::id, std::string> errors_;
};

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
