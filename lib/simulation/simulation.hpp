#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "simulation/capture.hpp"
#include "simulation/hazards/access_checker.hpp"
#include "simulation/hazards/life_keeper.hpp"
#include "simulation/hazards/watch.hpp"
#include "simulation/schedule/call_book.hpp"
#include "simulation/schedule/scheduler.hpp"
#include "simulation/simulated_memory.hpp"
#include "simulation/stream.hpp"
#include "simulation/work.hpp"

namespace tensorpool::device {

/// What a SimulatedBackend consists of: its parts, and what several of its functions need of them.
/// All of it is guarded by one lock, which `call` takes.
class Simulation {
public:
    Simulation(const SimulationOptions& options, ScheduleDriver* driver);

    /// Counts the call, asks whether it may be made at all, and does it: `function(lock)`. Keeps
    /// what is to be said about a failure.
    template <class Function>
    DeviceStatus call(SimulatedCall call, int device, Function&& function) noexcept {
        try {
            SimulationLock lock(mutex);
            detail_.clear();
            DeviceStatus status = admit(call, device);
            if (status == DeviceStatus::ok) status = function(lock);
            if (status != DeviceStatus::ok && status != DeviceStatus::not_ready) {
                keep_error(call, device, status);
            }
            return status;
        } catch (const std::exception&) {
            return DeviceStatus::failed;  // the host has no memory for the simulation itself
        }
    }
    /// What a call that fails returns, with what is to be said about it.
    DeviceStatus refuse(DeviceStatus status, std::string detail) {
        detail_ = std::move(detail);
        return status;
    }

    DeviceStatus no_stream() { return refuse(DeviceStatus::invalid_argument, "no such stream"); }
    DeviceStatus no_event() { return refuse(DeviceStatus::invalid_argument, "no such event"); }

    bool is_device(int device) const noexcept { return device >= 0 && device < options.devices; }
    /// nullptr for a handle that is none of the device's.
    std::shared_ptr<Stream> stream(int device, StreamHandle handle) const;
    Event* event(int device, EventHandle handle) const;
    Event* event(EventHandle handle) const;
    std::shared_ptr<Stream> make_stream(int device);

    /// The next thing that the stream does, after all that the host knows.
    Operation next_operation(Stream& stream, const std::string& label);
    /// What the stream's next work comes after.
    const VectorClock& clock_of(Stream& stream);
    /// Looks at what the work touches, and puts it into a stream.
    DeviceStatus give(SimulationLock& lock, Stream& stream, Work work);
    /// Puts it there without a look.
    void enqueue(SimulationLock& lock, Stream& stream, Work work);
    /// All devices end what they have to do where that is not known to be done, for its memory
    /// goes.
    void end_life(SimulationLock& lock, std::uintptr_t address, const char* label,
                  LifeKeeper::Gone gone = LifeKeeper::Gone::no);
    /// Nothing can be ended at the address: says so, where it is not for the call's other
    /// arguments.
    void wrong_end(const char* label, const void* memory_given);
    /// The host itself is about to touch memory.
    void host_touch(const std::string& label, const std::vector<MemoryRange>& reads,
                    const std::vector<MemoryRange>& writes);
    void note(const BlockNote& note);
    enum class Paint : std::uint8_t { fresh, freed };
    /// Where patterns are wanted.
    void paint(void* block, std::size_t bytes, Paint color) const noexcept;
    /// The host does it, on the calling thread; no stream waits for it or is waited for.
    DeviceStatus do_now(SimulationLock& lock, int device, Work work);
    /// What is given to the stream from now on comes after the mark.
    DeviceStatus order_after(SimulationLock& lock, Stream& stream, const Mark& mark);
    /// What stands for all that was given to the stream so far.
    std::shared_ptr<Mark> mark(const std::shared_ptr<Stream>& stream);
    /// The host waits for it, and knows then what it knew.
    void wait(SimulationLock& lock, const Mark& mark);
    bool poll(SimulationLock& lock, const Mark& mark);
    /// The same of an event, which may be late with its answer.
    bool poll_event(SimulationLock& lock, Mark& mark);
    /// Whether work of the device may touch memory of the other one.
    bool reaches(int device, int other) const noexcept;
    DeviceStatus synchronize(SimulationLock& lock, int device);

    std::shared_ptr<Graph> graph(int device, GraphHandle handle) const;
    DeviceStatus replay(SimulationLock& lock, const std::shared_ptr<Stream>& on,
                        const std::shared_ptr<Graph>& graph);
    /// Reports a call that may not be made in this capture.
    DeviceStatus illegal(const Capture* capture, const std::string& what);
    /// The open capture because of which this thread may not wait or allocate, or nullptr.
    const Capture* forbidding() const noexcept;

    /// A call of the host takes its time.
    void spend(std::uint64_t ns) noexcept { now_ns += ns; }

    const SimulationOptions options;
    mutable std::mutex mutex;
    Watch watch;
    LifeKeeper lives{watch};
    SimulatedMemory memory;
    AccessChecker checker;
    Timelines timelines;
    CallBook book;
    std::unique_ptr<ReplayDriver> replay_driver;  // where the options hold the choices
    Scheduler scheduler;
    std::unordered_map<StreamHandle, std::shared_ptr<Stream>> streams;
    std::unordered_map<EventHandle, std::unique_ptr<Event>> events;
    std::vector<std::shared_ptr<Stream>> default_streams;
    std::vector<std::shared_ptr<Capture>> captures;  // that are open
    std::unordered_map<GraphHandle, std::shared_ptr<Graph>> graphs;
    std::vector<std::vector<bool>> peers;  // [device][peer]: may be accessed
    std::uint64_t now_ns = 0;

private:
    DeviceStatus admit(SimulatedCall call, int device);
    void keep_error(SimulatedCall call, int device, DeviceStatus status);
    void pass(const Mark& mark);
    DeviceStatus not_there();
    bool touch_of_node(Stream& stream, const Graph& graph, const Capture::Node& node);
    bool all_idle() const noexcept;

    std::string detail_;
    std::vector<std::uint32_t> stream_counts_;  // ever made, of each device
};

/// A copy's or fill's time.
std::uint64_t duration_ns(std::size_t bytes, double bytes_per_ns) noexcept;

}  // namespace tensorpool::device
