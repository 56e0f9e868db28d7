#include "simulation/schedule/scheduler.hpp"

namespace tensorpool::device {
namespace {

thread_local bool at_work_now = false;

// One in four: queues grow to some length before their work runs.
constexpr std::uint64_t random_chance = 4;

// Without this limit, a driven program that polls would have infinitely many orders.
constexpr std::uint64_t driven_patience = 2;

ScheduleDriver::Step step_of(const Stream& stream) {
    return {stream.name, stream.done + 1, stream.queue.front().footprint};
}

}  // namespace

Scheduler::Scheduler(const SimulationOptions& options, ScheduleDriver* driver)
    : schedule_(options.schedule),
      patience_(driver == nullptr ? options.patience : driven_patience),
      driver_(driver),
      random_(options.seed) {}

// Streams that wait for each other hold references to each other; clearing the queues frees them.
Scheduler::~Scheduler() {
    for (const auto& stream : streams_) stream->queue.clear();
}

bool Scheduler::at_work() noexcept {
    return at_work_now;
}

void Scheduler::retire(Stream& stream) {
    stream.destroyed = true;
    if (!stream.idle()) return;
    std::erase_if(streams_, [&](const auto& each) { return each.get() == &stream; });
}

void Scheduler::give(SimulationLock& lock, Stream& stream, QueueEntry entry) {
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

void Scheduler::wait(SimulationLock& lock, const Target& target) {
    while (!target.reached()) {
        if (!advance(lock, target)) changed_.wait(lock);
    }
}

bool Scheduler::poll(SimulationLock& lock, const Target& target) {
    if (target.reached()) return true;
    if (schedule_ == Schedule::random) run_some(lock);
    if (target.reached()) return true;
    if (decide_to_answer_late(target)) return false;
    wait(lock, target);
    return true;
}

bool Scheduler::decide_to_answer_late(const Target& target) {
    std::uint64_t& polls = target.stream->polls;
    if (schedule_ != Schedule::eager && patience_ != 0 && polls >= patience_) return false;
    ++polls;
    return driver_ == nullptr || driver_->choose_not_ready();
}

void Scheduler::drain(SimulationLock& lock) {
    for (;;) {
        const auto pending = std::find_if(streams_.begin(), streams_.end(),
                                          [](const auto& stream) { return !stream->idle(); });
        if (pending == streams_.end()) return;
        const Target target = {*pending, (*pending)->done + 1};
        if (Stream* const needed = needed_for(target)) {
            run(lock, *needed);
        } else {
            changed_.wait(lock);
        }
    }
}

bool Scheduler::step(SimulationLock& lock, Stream& stream) {
    if (!stream.runnable()) return false;
    run(lock, stream);
    return true;
}

// Runs one piece of work towards the target. Returns false if other threads are running all the
// work that could be run.
bool Scheduler::advance(SimulationLock& lock, const Target& target) {
    Stream* const next = choose(target);
    if (next == nullptr) return false;
    run(lock, *next);
    return true;
}

Stream* Scheduler::choose(const Target& target) {
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

Stream* Scheduler::needed_for(const Target& target) noexcept {
    Stream* stream = target.stream.get();
    while (!stream->busy && !stream->queue.front().after.reached()) {
        stream = stream->queue.front().after.stream.get();
    }
    return stream->busy ? nullptr : stream;
}

Stream* Scheduler::any_runnable() noexcept {
    for (const auto& stream : streams_) {
        if (stream->runnable()) return stream.get();
    }
    return nullptr;
}

Stream* Scheduler::random_runnable() {
    std::vector<Stream*> runnable;
    for (const auto& stream : streams_) {
        if (stream->runnable()) runnable.push_back(stream.get());
    }
    return runnable.empty() ? nullptr : runnable[random_() % runnable.size()];
}

Stream* Scheduler::driven_runnable() {
    std::vector<Stream*> runnable;
    std::vector<ScheduleDriver::Step> steps;
    for (const auto& stream : streams_) {
        if (!stream->runnable()) continue;
        runnable.push_back(stream.get());
        steps.push_back(step_of(*stream));
    }
    return runnable.empty() ? nullptr : runnable[driver_->choose_step(steps)];
}

void Scheduler::run_some(SimulationLock& lock) {
    while (random_() % random_chance == 0) {
        Stream* const next = random_runnable();
        if (next == nullptr) return;
        run(lock, *next);
    }
}

void Scheduler::run(SimulationLock& lock, Stream& stream) {
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

void Scheduler::finish_first(Stream& stream) noexcept {
    if (stream.queue.front().is_wait()) --waits_;
    stream.queue.pop_front();
    ++stream.done;
    stream.polls = 0;
}

// A wait is passed as soon as its target is reached. It is no step, so no schedule chooses its
// time.
void Scheduler::pass_waits() noexcept {
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

namespace {

bool requests_memory(SimulatedCall call) noexcept {
    using enum SimulatedCall;
    return call == allocate || call == allocate_async || call == reserve_addresses ||
           call == create_memory || call == map_memory || call == allocate_pinned ||
           call == register_pinned;
}

}  // namespace

void CallBook::set_faults(const SimulationFaults& faults) {
    faults_ = faults;
    since_faults_ = {};
    all_since_faults_ = 0;
}

DeviceStatus CallBook::admit(SimulatedCall call) {
    const auto index = static_cast<std::size_t>(call);
    ++calls_.counts[index];
    if (call == SimulatedCall::note_block) return DeviceStatus::ok;  // requests nothing of a device
    ++since_faults_.counts[index];
    ++all_since_faults_;
    if (faults_.lost_from != 0 && all_since_faults_ >= faults_.lost_from) {
        return DeviceStatus::device_lost;
    }
    if (!demanded(call)) return DeviceStatus::ok;
    return requests_memory(call) ? DeviceStatus::out_of_memory : DeviceStatus::failed;
}

bool CallBook::demanded(SimulatedCall call) const noexcept {
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

std::string CallBook::error() const {
    const auto found = errors_.find(std::this_thread::get_id());
    return found == errors_.end() ? std::string() : found->second;
}

ScheduleDriver::~ScheduleDriver() = default;

std::unique_ptr<SimulatedBackend> ScheduleDriver::make_backend(const SimulationOptions& options,
                                                               ScheduleDriver& driver) {
    return std::unique_ptr<SimulatedBackend>(new SimulatedBackend(options, driver));
}

unsigned ReplayDriver::next(unsigned count) noexcept {
    if (made_ == choices_.size()) return 0;
    return std::min(choices_[made_++], count - 1);
}

// A choice with one alternative is not recorded.
unsigned ReplayDriver::choose_step(const std::vector<Step>& steps) {
    return steps.size() == 1 ? 0 : next(static_cast<unsigned>(steps.size()));
}

bool ReplayDriver::choose_not_ready() {
    return next(2) == 0;
}

}  // namespace tensorpool::device
