#include "simulation/simulation.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "platform/platform.hpp"

namespace tensorpool::device {
namespace {

[[noreturn]] void refuse_options(const std::string& what) {
    throw std::invalid_argument("tensorpool: SimulationOptions: " + what);
}

const SimulationOptions& validated(const SimulationOptions& options) {
    if (options.devices < 1 || options.devices > 64) {
        refuse_options("devices is " + std::to_string(options.devices) + ", expected 1 to 64");
    }
    if (options.memory_bytes == 0) refuse_options("memory_bytes is 0");
    if (!std::has_single_bit(options.granularity) || options.granularity < platform::page_bytes()) {
        refuse_options("granularity is " + std::to_string(options.granularity) +
                       ", expected a power of two and a page at least");
    }
    for (const double speed :
         {options.host_to_device_bytes_per_ns, options.device_to_host_bytes_per_ns,
          options.device_to_device_bytes_per_ns, options.host_to_host_bytes_per_ns,
          options.peer_bytes_per_ns}) {
        if (!(speed > 0)) refuse_options("a bandwidth is not above 0");
    }
    return options;
}

bool replays(const SimulationOptions& options, const ScheduleDriver* driver) noexcept {
    return driver == nullptr && options.schedule == Schedule::replayed;
}

std::shared_ptr<const Footprint> footprint_of(const Work& work) {
    return std::make_shared<Footprint>(Footprint{work.reads, work.writes, work.opaque});
}

// Whatever waits, and what makes or ends memory of a device.
bool forbidden_in_capture(SimulatedCall call) noexcept {
    using enum SimulatedCall;
    return call == synchronize_device || call == synchronize_stream || call == synchronize_event ||
           call == allocate || call == deallocate || call == allocate_async ||
           call == deallocate_async || call == copy || call == fill;
}

}  // namespace

std::uint64_t duration_ns(std::size_t bytes, double bytes_per_ns) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / bytes_per_ns);
}

Simulation::Simulation(const SimulationOptions& given, ScheduleDriver* driver)
    : options(validated(given)),
      watch(options),
      memory(options, [this](std::uintptr_t at, std::size_t bytes) { lives.forget(at, bytes); }),
      checker(watch, memory, [this](int device, int other) { return reaches(device, other); }),
      replay_driver(replays(options, driver) ? std::make_unique<ReplayDriver>(options.choices)
                                             : nullptr),
      scheduler(options, replay_driver != nullptr ? replay_driver.get() : driver),
      stream_counts_(static_cast<std::size_t>(options.devices)) {
    const auto devices = static_cast<std::size_t>(options.devices);
    peers.assign(devices, std::vector<bool>(devices));
    for (int device = 0; device < options.devices; ++device) {
        default_streams.push_back(make_stream(device));
    }
}

DeviceStatus Simulation::admit(SimulatedCall call, int device) {
    if (Scheduler::at_work()) {
        return refuse(DeviceStatus::failed, "called by a function of a stream");
    }
    const DeviceStatus status = book.admit(call);
    if (status != DeviceStatus::ok) return refuse(status, "a fault on demand");
    if (!is_device(device)) {
        return refuse(DeviceStatus::invalid_argument,
                      "there are " + std::to_string(options.devices) + " devices");
    }
    const Capture* const capture = forbidden_in_capture(call) ? forbidding() : nullptr;
    return capture == nullptr ? DeviceStatus::ok : illegal(capture, to_string(call));
}

void Simulation::keep_error(SimulatedCall call, int device, DeviceStatus status) {
    std::string text = "tensorpool: ";
    text += to_string(call);
    text += " on " + to_string(Device{DeviceType::simulated, device}) + ": " + to_string(status);
    if (!detail_.empty()) text += ": " + detail_;
    book.keep_error(std::move(text));
}

// Streams ----------------------------------------------------------------------------------------

std::shared_ptr<Stream> Simulation::stream(int device, StreamHandle handle) const {
    if (handle == nullptr) return default_streams[static_cast<std::size_t>(device)];
    const auto found = streams.find(handle);
    if (found == streams.end() || found->second->device != device) return nullptr;
    return found->second;
}

Event* Simulation::event(EventHandle handle) const {
    const auto found = events.find(handle);
    return found == events.end() ? nullptr : found->second.get();
}

Event* Simulation::event(int device, EventHandle handle) const {
    Event* const found = event(handle);
    return found == nullptr || found->device != device ? nullptr : found;
}

std::shared_ptr<Stream> Simulation::make_stream(int device) {
    auto stream = std::make_shared<Stream>();
    stream->device = device;
    stream->name = {static_cast<std::uint16_t>(device),
                    stream_counts_[static_cast<std::size_t>(device)]++};
    stream->timeline = timelines.take(watch.host);
    scheduler.add(stream);
    return stream;
}

const VectorClock& Simulation::clock_of(Stream& stream) {
    if (stream.host_version != watch.host_version) {
        stream.clock.join(watch.host);
        stream.host_version = watch.host_version;
    }
    return stream.clock;
}

Operation Simulation::next_operation(Stream& stream, const std::string& label) {
    (void)clock_of(stream);
    const std::uint64_t tick = ++stream.timeline.tick;
    stream.clock.raise(stream.timeline.number, tick);
    return watch.operation(label, stream.name, stream.timeline.number, tick);
}

DeviceStatus Simulation::not_there() {
    return refuse(DeviceStatus::invalid_argument, "it touches memory that is not there");
}

DeviceStatus Simulation::give(SimulationLock& lock, Stream& stream, Work work) {
    Toucher by;
    by.device = stream.device;
    by.clock = &stream.clock;
    if (stream.capture != nullptr) {
        by.operation = watch.operation(work.label, stream.name);
        by.kind = Toucher::Kind::captured;
        if (!checker.touch(by, work.reads, work.writes)) return not_there();
        stream.capture->add(stream, std::move(work));
        return DeviceStatus::ok;
    }
    by.operation = next_operation(stream, work.label);
    if (!checker.touch(by, work.reads, work.writes)) return not_there();
    enqueue(lock, stream, std::move(work));
    return DeviceStatus::ok;
}

void Simulation::enqueue(SimulationLock& lock, Stream& stream, Work work) {
    spend(options.launch_latency_ns);
    stream.time_ns = std::max(stream.time_ns, now_ns) + work.duration_ns;
    QueueEntry entry;
    if (options.schedule == Schedule::replayed) entry.footprint = footprint_of(work);
    entry.run = std::move(work.run);
    entry.then = std::move(work.then);
    scheduler.give(lock, stream, std::move(entry));
}

DeviceStatus Simulation::do_now(SimulationLock&, int device, Work work) {
    Toucher by;
    by.operation = watch.host_operation(work.label);
    by.device = device;
    by.clock = &watch.host;
    by.kind = Toucher::Kind::copy;
    if (!checker.touch(by, work.reads, work.writes)) return not_there();
    spend(options.launch_latency_ns + work.duration_ns);
    work.run();
    return DeviceStatus::ok;
}

void Simulation::host_touch(const std::string& label, const std::vector<MemoryRange>& reads,
                            const std::vector<MemoryRange>& writes) {
    if (!watch.on) return;
    Toucher by;
    by.operation = watch.host_operation(label);
    by.clock = &watch.host;
    by.kind = Toucher::Kind::host;
    (void)checker.touch(by, reads, writes);
}

DeviceStatus Simulation::order_after(SimulationLock& lock, Stream& stream, const Mark& mark) {
    if (mark.capture != nullptr) {
        if (!mark.capture->open() ||
            (stream.capture != nullptr && stream.capture != mark.capture)) {
            return illegal(mark.capture.get(), "wait_event for an event of another capture");
        }
        mark.capture->order_after(mark.capture, stream, mark.captured);
        return DeviceStatus::ok;
    }
    if (stream.capture != nullptr) {
        return illegal(stream.capture.get(), "wait_event for an event from outside");
    }
    stream.time_ns = std::max(stream.time_ns, mark.time_ns);
    stream.clock.join(mark.clock);
    QueueEntry entry;
    entry.after = mark.target;
    scheduler.give(lock, stream, std::move(entry));
    return DeviceStatus::ok;
}

bool Simulation::reaches(int device, int other) const noexcept {
    if (!is_device(device) || !is_device(other)) return false;
    return device == other ||
           peers[static_cast<std::size_t>(device)][static_cast<std::size_t>(other)];
}

std::shared_ptr<Mark> Simulation::mark(const std::shared_ptr<Stream>& stream) {
    auto mark = std::make_shared<Mark>();
    mark->target = {stream, stream->given};
    mark->clock = clock_of(*stream);
    mark->time_ns = std::max(stream->time_ns, now_ns);
    mark->capture = stream->capture;
    if (mark->capture != nullptr) mark->captured = mark->capture->clock_of(*stream);
    return mark;
}

void Simulation::wait(SimulationLock& lock, const Mark& mark) {
    scheduler.wait(lock, mark.target);
    pass(mark);
}

bool Simulation::poll(SimulationLock& lock, const Mark& mark) {
    if (!scheduler.poll(lock, mark.target)) return false;
    pass(mark);
    return true;
}

bool Simulation::poll_event(SimulationLock& lock, Mark& mark) {
    if (!scheduler.poll(lock, mark.target)) return false;
    if (mark.late_answers < book.faults().slow_event_queries) {
        ++mark.late_answers;
        return false;
    }
    pass(mark);
    return true;
}

void Simulation::pass(const Mark& mark) {
    watch.learn(mark.clock);
    now_ns = std::max(now_ns, mark.time_ns);
}

// Captures ---------------------------------------------------------------------------------------

std::shared_ptr<Graph> Simulation::graph(int device, GraphHandle handle) const {
    const auto found = graphs.find(handle);
    if (found == graphs.end() || found->second->device != device) return nullptr;
    return found->second;
}

DeviceStatus Simulation::illegal(const Capture* capture, const std::string& what) {
    const Operation operation = watch.host_operation(what);
    watch.log.add(HazardKind::illegal_in_capture, operation, capture->begun(), 0, 0);
    return refuse(DeviceStatus::in_capture, what);
}

const Capture* Simulation::forbidding() const noexcept {
    for (const auto& capture : captures) {
        if (capture->by_this_thread()) return capture.get();
    }
    return nullptr;
}

DeviceStatus Simulation::synchronize(SimulationLock& lock, int device) {
    std::vector<std::shared_ptr<Mark>> marks;
    for (const auto& each : scheduler.streams()) {
        if (each->device != device) continue;
        if (each->capture != nullptr) return illegal(each->capture.get(), "synchronize_device");
        marks.push_back(mark(each));
    }
    for (const auto& each : marks) wait(lock, *each);
    memory.settle(device);
    return DeviceStatus::ok;
}

}  // namespace tensorpool::device
