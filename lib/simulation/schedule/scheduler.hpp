#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/hazards/watch.hpp"

namespace tensorpool::device {

class Capture;
struct Stream;

/// The memory that a piece of work touches; the search for orders uses it to skip equivalent ones.
struct Footprint {
    std::vector<MemoryRange> reads;
    std::vector<MemoryRange> writes;
    bool opaque = false;  // may touch any memory
};

/// Work submitted to a stream.
struct Work : Footprint {
    std::string label;
    std::function<void()> run;   // called outside the lock
    std::function<void()> then;  // called under the lock, after `run`
    std::uint64_t duration_ns = 0;
};

/// A position that a stream must reach.
struct Target {
    std::shared_ptr<Stream> stream;
    std::uint64_t position = 0;

    bool reached() const noexcept;
};

/// An entry in a stream's queue: work, or a wait until the stream of `after` reaches a position.
struct QueueEntry {
    std::function<void()> run;   // called outside the lock
    std::function<void()> then;  // called under the lock, after `run`
    Target after;
    std::shared_ptr<const Footprint> footprint;

    bool is_wait() const noexcept { return after.stream != nullptr; }
};

/// One stream. The simulation's lock guards all of it.
struct Stream {
    int device = 0;
    StreamName name;
    Timeline timeline;
    VectorClock clock;               // everything ordered before the next work
    std::uint64_t host_version = 0;  // version of the host's clock merged into `clock`
    std::uint64_t time_ns = 0;

    std::deque<QueueEntry> queue;
    std::uint64_t given = 0;
    std::uint64_t done = 0;   // entries submitted and done: positions
    std::uint64_t polls = 0;  // queries answered not_ready since the last progress
    bool busy = false;        // a thread is running the first entry
    bool destroyed = false;   // to be removed when the queue is empty

    std::shared_ptr<Capture> capture;  // nullptr: work is executed, not captured
    std::uint32_t branch = 0;          // in that capture

    bool idle() const noexcept { return queue.empty(); }
    /// Whether the first entry can run now.
    bool runnable() const noexcept {
        return !busy && !queue.empty() && queue.front().after.reached();
    }
};

inline bool Target::reached() const noexcept {
    return stream == nullptr || stream->done >= position;
}

/// The point in a stream's work that an event stands for.
struct Mark {
    Target target;
    VectorClock clock;
    std::uint64_t time_ns = 0;
    std::uint64_t late_answers = 0;  // not_ready answers given after the target was reached
    std::shared_ptr<Capture> capture;
    VectorClock captured;  // clock in the capture, by branch
};

struct Event {
    int device = 0;
    bool timing = false;
    std::shared_ptr<Mark> mark;  // nullptr: never recorded
};

inline thread_local bool at_work_now = false;

// One in four: queues grow to some length before their work runs.
inline constexpr std::uint64_t random_chance = 4;

// Without this limit, a driven program that polls would have infinitely many orders.
inline constexpr std::uint64_t driven_patience = 2;

inline bool requests_memory(SimulatedCall call) noexcept {
    using enum SimulatedCall;
    return call == allocate || call == allocate_async || call == reserve_addresses ||
           call == create_memory || call == map_memory || call == allocate_pinned ||
           call == register_pinned;
}

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
                                                          ScheduleDriver& driver) {
        return std::unique_ptr<SimulatedBackend>(new SimulatedBackend(options, driver));
    }

    ScheduleDriver() noexcept = default;
    virtual ~ScheduleDriver() = default;
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

    // A choice with one alternative is not recorded.
    unsigned choose_step(const std::vector<Step>& steps) override {
        return steps.size() == 1 ? 0 : next(static_cast<unsigned>(steps.size()));
    }
    bool choose_not_ready() override { return next(2) == 0; }
    void done(const Step&) override {}

private:
    unsigned next(unsigned count) noexcept {
        if (made_ == choices_.size()) return 0;
        return std::min(choices_[made_++], count - 1);
    }

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
    void set_faults(const SimulationFaults& faults) {
        faults_ = faults;
        since_faults_ = {};
        all_since_faults_ = 0;
    }

    /// Counts the call. Returns ok if no fault is injected into it.
    DeviceStatus admit(SimulatedCall call) {
        const auto index = static_cast<std::size_t>(call);
        ++calls_.counts[index];
        if (call == SimulatedCall::note_block)
            return DeviceStatus::ok;  // requests nothing of a device
        ++since_faults_.counts[index];
        ++all_since_faults_;
        if (faults_.lost_from != 0 && all_since_faults_ >= faults_.lost_from) {
            return DeviceStatus::device_lost;
        }
        if (!demanded(call)) return DeviceStatus::ok;
        return requests_memory(call) ? DeviceStatus::out_of_memory : DeviceStatus::failed;
    }

    void keep_error(std::string text) { errors_[std::this_thread::get_id()] = std::move(text); }
    std::string error() const {
        const auto found = errors_.find(std::this_thread::get_id());
        return found == errors_.end() ? std::string() : found->second;
    }

private:
    bool demanded(SimulatedCall call) const noexcept {
        using enum SimulatedCall;
        if (faults_.refuses_pinned && (call == allocate_pinned || call == register_pinned)) {
            return true;
        }
        for (const FailingCall& failing : faults_.failing) {
            const std::uint64_t number = since_faults_[call];
            if (failing.call == call && number >= failing.from &&
                number - failing.from < failing.count) {
                return true;
            }
        }
        return false;
    }

    SimulatedCalls calls_;
    SimulationFaults faults_;
    SimulatedCalls since_faults_;
    std::uint64_t all_since_faults_ = 0;
    std::unordered_map<std::thread::id, std::string> errors_;
};

inline ScheduleDriver::Step step_of(const Stream& stream) {
    return {stream.name, stream.done + 1, stream.queue.front().footprint};
}

using SimulationLock = std::unique_lock<std::mutex>;

/// Holds the queues of all streams and decides, by the schedule, which stream does its next work.
/// The work runs on the thread that submits or waits for work, outside the lock.
class Scheduler {
public:
    Scheduler(const SimulationOptions& options, ScheduleDriver* driver)
        : schedule_(options.schedule),
          patience_(driver == nullptr ? options.patience : driven_patience),
          driver_(driver),
          random_(options.seed) {}
    // Streams that wait for each other hold references to each other; clearing the queues frees
    // them.
    ~Scheduler() {
        for (const auto& stream : streams_) stream->queue.clear();
    }

    void add(std::shared_ptr<Stream> stream) { streams_.push_back(std::move(stream)); }
    /// Removes the stream as soon as its queue is empty.
    void retire(Stream& stream) {
        stream.destroyed = true;
        if (!stream.idle()) return;
        std::erase_if(streams_, [&](const auto& each) { return each.get() == &stream; });
    }

    /// All streams in order of creation, with destroyed ones that still have work.
    const std::vector<std::shared_ptr<Stream>>& streams() const noexcept { return streams_; }

    /// REQUIRES, for this and all functions below: the lock is held. It is released while work
    /// runs.
    void give(SimulationLock& lock, Stream& stream, QueueEntry entry) {
        if (entry.is_wait() && entry.after.reached() && stream.idle()) return;
        if (entry.is_wait()) ++waits_;
        stream.queue.push_back(std::move(entry));
        ++stream.given;
        stream.polls = 0;
        if (schedule_ == Schedule::eager) {
            while (Stream* const next = any_runnable()) run(lock, *next);
        } else if (schedule_ == Schedule::random) {
            run_some(lock);
        }
    }
    void wait(SimulationLock& lock, const Target& target) {
        while (!target.reached()) {
            if (!advance(lock, target)) changed_.wait(lock);
        }
    }
    /// Returns whether the target is reached, after running some work if the schedule says so.
    bool poll(SimulationLock& lock, const Target& target) {
        if (target.reached()) return true;
        if (schedule_ == Schedule::random) run_some(lock);
        if (target.reached()) return true;
        if (decide_to_answer_late(target)) return false;
        wait(lock, target);
        return true;
    }
    /// Runs all submitted work, in any order, regardless of the schedule.
    void drain(SimulationLock& lock) {
        for (;;) {
            const auto pending =
                std::ranges::find_if(streams_, [](auto& stream) { return !stream->idle(); });
            if (pending == streams_.end()) return;
            const Target target = {*pending, (*pending)->done + 1};
            if (Stream* const needed = needed_for(target)) {
                run(lock, *needed);
            } else {
                changed_.wait(lock);
            }
        }
    }
    bool step(SimulationLock& lock, Stream& stream) {
        if (!stream.runnable()) return false;
        run(lock, stream);
        return true;
    }

    /// Whether the calling thread is running work of a stream.
    static bool at_work() noexcept { return at_work_now; }

private:
    // Runs one piece of work towards the target. Returns false if other threads are running all the
    // work that could be run.
    bool advance(SimulationLock& lock, const Target& target) {
        Stream* const next = choose(target);
        if (next == nullptr) return false;
        run(lock, *next);
        return true;
    }
    Stream* choose(const Target& target) {
        switch (schedule_) {
            case Schedule::eager:
                return any_runnable();
            case Schedule::lazy:
                return needed_for(target);
            case Schedule::random:
                return random_runnable();
            case Schedule::replayed:
                return driven_runnable();
        }
        return nullptr;
    }
    Stream* needed_for(const Target& target) noexcept {
        Stream* stream = target.stream.get();
        while (!stream->busy && !stream->queue.front().after.reached()) {
            stream = stream->queue.front().after.stream.get();
        }
        return stream->busy ? nullptr : stream;
    }
    Stream* any_runnable() noexcept {
        for (const auto& stream : streams_) {
            if (stream->runnable()) return stream.get();
        }
        return nullptr;
    }
    Stream* random_runnable() {
        std::vector<Stream*> runnable;
        for (const auto& stream : streams_) {
            if (stream->runnable()) runnable.push_back(stream.get());
        }
        return runnable.empty() ? nullptr : runnable[random_() % runnable.size()];
    }
    Stream* driven_runnable() {
        std::vector<Stream*> runnable;
        std::vector<ScheduleDriver::Step> steps;
        for (const auto& stream : streams_) {
            if (!stream->runnable()) continue;
            runnable.push_back(stream.get());
            steps.push_back(step_of(*stream));
        }
        return runnable.empty() ? nullptr : runnable[driver_->choose_step(steps)];
    }
    bool decide_to_answer_late(const Target& target) {
        std::uint64_t& polls = target.stream->polls;
        if (schedule_ != Schedule::eager && patience_ != 0 && polls >= patience_) return false;
        ++polls;
        return driver_ == nullptr || driver_->choose_not_ready();
    }
    void run(SimulationLock& lock, Stream& stream) {
        if (driver_ != nullptr) driver_->done(step_of(stream));
        QueueEntry& entry = stream.queue.front();
        if (entry.run) {
            stream.busy = true;
            lock.unlock();
            at_work_now = true;
            [&]() noexcept { entry.run(); }();
            at_work_now = false;
            lock.lock();
            stream.busy = false;
        }
        if (entry.then) entry.then();
        finish_first(stream);
        if (waits_ != 0) pass_waits();
        std::erase_if(streams_, [](const auto& each) { return each->destroyed && each->idle(); });
        changed_.notify_all();
    }
    void run_some(SimulationLock& lock) {
        while (random_() % random_chance == 0) {
            Stream* const next = random_runnable();
            if (next == nullptr) return;
            run(lock, *next);
        }
    }
    void finish_first(Stream& stream) noexcept {
        if (stream.queue.front().is_wait()) --waits_;
        stream.queue.pop_front();
        ++stream.done;
        stream.polls = 0;
    }
    // A wait is passed as soon as its target is reached. It is no step, so no schedule chooses its
    // time.
    void pass_waits() noexcept {
        for (bool passed = true; passed;) {
            passed = false;
            for (const auto& stream : streams_) {
                while (stream->runnable() && stream->queue.front().is_wait()) {
                    finish_first(*stream);
                    passed = true;
                }
            }
        }
    }

    Schedule schedule_;
    std::uint64_t patience_;
    ScheduleDriver* driver_;  // set for Schedule::replayed only
    std::mt19937_64 random_;
    std::vector<std::shared_ptr<Stream>> streams_;
    std::size_t waits_ = 0;  // queue entries that are waits
    std::condition_variable changed_;
};

}  // namespace tensorpool::device
