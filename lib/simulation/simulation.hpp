#pragma once

#include "simulation/hazards/access_checker.hpp"
#include "simulation/hazards/lifetime_tracker.hpp"
#include "simulation/simulated_streams.hpp"

namespace tensorpool::device {

/// The parts of a SimulatedBackend, guarded by one lock that `call` takes, and the path of work
/// through them into a stream. Functions report errors as DeviceError, which `call` catches.
class Simulation {
public:
    Simulation(const SimulationOptions& options, ScheduleDriver* driver);

    /// Counts the call, checks whether it is allowed, and calls `function(*this, lock)`, which
    /// returns a status, or nothing for ok. Keeps the text of an error for `last_error`.
    template <class Function>
    DeviceStatus call(SimulatedCall call, int device, Function&& function) noexcept {
        try {
            SimulationLock lock(mutex);
            try {
                admit(call, device);
                return status_after([&] { return function(*this, lock); });
            } catch (const DeviceError& error) {
                return keep_error(call, device, error);
            }
        } catch (const std::exception&) {
            return DeviceStatus::failed;  // the host ran out of memory for the simulation itself
        }
    }

    bool is_device(int device) const noexcept { return device >= 0 && device < options.devices; }
    /// Whether work of the device may touch memory of the other one.
    bool reaches(int device, int other) const noexcept;

    /// Checks the memory that the work touches, and submits the work to a stream.
    void give(SimulationLock& lock, Stream& stream, Work work);
    /// Submits work that was checked before.
    void enqueue(SimulationLock& lock, Stream& stream, Work work);
    /// Waits for the default stream and runs the work on the calling thread.
    void do_now(SimulationLock& lock, int device, const Work& work);
    /// Runs the work on the calling thread, ordered with no stream.
    void do_at_once(int device, const Work& work);
    /// Checks an access by the host itself.
    void host_touch(const std::string& label, const std::vector<MemoryRange>& reads,
                    const std::vector<MemoryRange>& writes);
    /// Orders work submitted to the stream from now on after the mark.
    void order_after(SimulationLock& lock, Stream& stream, const Mark& mark);
    void synchronize(SimulationLock& lock, int device);
    /// Waits for one stream. `call` names the call for errors.
    void synchronize(SimulationLock& lock, const std::shared_ptr<Stream>& stream,
                     const std::string& call);

    const SimulationOptions options;
    mutable std::mutex mutex;
    Watch watch;
    LifetimeTracker lifetimes{watch};
    SimulatedMemory memory;
    AccessChecker checker;
    CallBook book;
    std::unique_ptr<ReplayDriver> replay_driver;  // set if the options hold the choices
    Scheduler scheduler;
    Ordering ordering{watch, scheduler};
    Timelines timelines;
    SimulatedStreams streams;
    SimulatedCaptures captures{watch, timelines};
    std::vector<std::vector<bool>> peers;  // [device][peer]: access is enabled

private:
    void admit(SimulatedCall call, int device);
    bool is_supported(SimulatedCall call) const noexcept;
    DeviceStatus keep_error(SimulatedCall call, int device, const DeviceError& error);
};

/// Records an allocator's note about a block, and paints the block if no queued work uses it.
void note_block(Simulation& simulation, const BlockNote& note);

/// Fills the start of newly allocated memory with NaNs if `fill_patterns` is set.
void paint_fresh(const SimulationOptions& options, void* memory, std::size_t bytes) noexcept;

}  // namespace tensorpool::device
