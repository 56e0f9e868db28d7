#pragma once

#include "simulation/hazards/lifetime_tracker.hpp"
#include "simulation/simulated_streams.hpp"

namespace tensorpool::device {

[[noreturn]] inline void refuse_options(const std::string& what) {
    throw std::invalid_argument("tensorpool: SimulationOptions: " + what);
}

inline const SimulationOptions& validated(const SimulationOptions& options) {
    if (options.devices < 1 || options.devices > 64) {
        refuse_options("devices is " + std::to_string(options.devices) + ", expected 1 to 64");
    }
    if (options.memory_bytes == 0) refuse_options("memory_bytes is 0");
    if (!std::has_single_bit(options.granularity) || options.granularity < platform::page_bytes()) {
        refuse_options("granularity is " + std::to_string(options.granularity) +
                       ", expected a power of two, at least the size of a page");
    }
    for (const double speed :
         {options.host_to_device_bytes_per_ns, options.device_to_host_bytes_per_ns,
          options.device_to_device_bytes_per_ns, options.host_to_host_bytes_per_ns,
          options.peer_bytes_per_ns}) {
        if (!(speed > 0)) refuse_options("a bandwidth is not above 0");
    }
    return options;
}

inline bool replays(const SimulationOptions& options, const ScheduleDriver* driver) noexcept {
    return driver == nullptr && options.schedule == Schedule::replayed;
}

// Calls that wait, and calls that allocate or free memory of a device.
inline bool forbidden_in_capture(SimulatedCall call) noexcept {
    using enum SimulatedCall;
    return call == synchronize_device || call == synchronize_stream || call == synchronize_event ||
           call == allocate || call == deallocate || call == allocate_async ||
           call == deallocate_async || call == copy || call == fill;
}

// At most one page of each block: the pattern is visible, and untouched blocks stay cheap.
inline constexpr std::size_t max_painted = 4096;

inline constexpr std::uint32_t fresh_word = 0x7FEDBEEF;  // a NaN, as float
inline constexpr int freed_byte = 0xDD;

/// Fills the start of newly allocated memory with NaNs if `fill_patterns` is set.
inline void paint_fresh(const SimulationOptions& options, void* memory,
                        std::size_t bytes) noexcept {
    if (!options.fill_patterns) return;
    const std::size_t painted = std::min(bytes, max_painted);
    auto* const begin = static_cast<std::byte*>(memory);
    for (std::size_t at = 0; at + sizeof fresh_word <= painted; at += sizeof fresh_word) {
        std::memcpy(begin + at, &fresh_word, sizeof fresh_word);
    }
}

/// The parts of a SimulatedBackend, guarded by one lock that `call` takes, and the path of work
/// through them into a stream. Functions report errors as DeviceError, which `call` catches.
class Simulation {
public:
    Simulation(const SimulationOptions& given, ScheduleDriver* driver)
        : options(validated(given)),
          watch(options),
          memory(options,
                 [this](std::uintptr_t at, std::size_t bytes) { lifetimes.forget(at, bytes); }),
          checker(watch, memory, [this](int device, int other) { return reaches(device, other); }),
          replay_driver(replays(options, driver) ? std::make_unique<ReplayDriver>(options.choices)
                                                 : nullptr),
          scheduler(options, replay_driver != nullptr ? replay_driver.get() : driver),
          streams(options.devices, scheduler, timelines, watch.host) {
        const auto devices = static_cast<std::size_t>(options.devices);
        peers.assign(devices, std::vector<bool>(devices));
    }

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
    bool reaches(int device, int other) const noexcept {
        if (!is_device(device) || !is_device(other)) return false;
        return device == other ||
               peers[static_cast<std::size_t>(device)][static_cast<std::size_t>(other)];
    }

    /// Checks the memory that the work touches, and submits the work to a stream.
    void give(SimulationLock& lock, Stream& stream, Work work) {
        const bool captured = stream.capture != nullptr;
        Toucher by;
        by.device = stream.device;
        by.clock = &stream.clock;
        by.operation = captured ? watch.operation(work.label, stream.name)
                                : ordering.next_operation(stream, work.label);
        if (captured) by.kind = Toucher::Kind::captured;
        checker.check(by, work.reads, work.writes);
        if (captured) {
            stream.capture->add(stream, std::move(work));
        } else {
            enqueue(lock, stream, std::move(work));
        }
    }
    /// Submits work that was checked before.
    void enqueue(SimulationLock& lock, Stream& stream, Work work) {
        ordering.spend(options.launch_latency_ns);
        stream.time_ns = std::max(stream.time_ns, ordering.now_ns()) + work.duration_ns;
        QueueEntry entry;
        if (options.schedule == Schedule::replayed)
            entry.footprint = std::make_shared<Footprint>(work);
        entry.run = std::move(work.run);
        entry.then = std::move(work.then);
        scheduler.give(lock, stream, std::move(entry));
    }
    /// Waits for the default stream and runs the work on the calling thread.
    void do_now(SimulationLock& lock, int device, const Work& work) {
        synchronize(lock, streams.get(device, nullptr), work.label);
        do_at_once(device, work);
    }
    /// Runs the work on the calling thread, ordered with no stream.
    void do_at_once(int device, const Work& work) {
        Toucher by;
        by.operation = watch.host_operation(work.label);
        by.device = device;
        by.clock = &watch.host;
        by.kind = Toucher::Kind::copy;
        checker.check(by, work.reads, work.writes);
        ordering.spend(options.launch_latency_ns + work.duration_ns);
        work.run();
    }
    /// Checks an access by the host itself.
    void host_touch(const std::string& label, const std::vector<MemoryRange>& reads,
                    const std::vector<MemoryRange>& writes) {
        if (!watch.on) return;
        Toucher by;
        by.operation = watch.host_operation(label);
        by.clock = &watch.host;
        by.kind = Toucher::Kind::host;
        (void)checker.touch(by, reads, writes);
    }
    /// Orders work submitted to the stream from now on after the mark.
    void order_after(SimulationLock& lock, Stream& stream, const Mark& mark) {
        if (mark.capture != nullptr) {
            if (!mark.capture->open() ||
                (stream.capture != nullptr && stream.capture != mark.capture)) {
                captures.refuse(*mark.capture, "wait_event for an event of another capture");
            }
            mark.capture->order_after(mark.capture, stream, mark.captured);
            return;
        }
        captures.check_free(stream, "wait_event for an event from outside");
        stream.time_ns = std::max(stream.time_ns, mark.time_ns);
        stream.clock.join(mark.clock);
        QueueEntry entry;
        entry.after = mark.target;
        scheduler.give(lock, stream, std::move(entry));
    }
    void synchronize(SimulationLock& lock, int device) {
        std::vector<std::shared_ptr<Mark>> marks;
        for (const auto& each : scheduler.streams()) {
            if (each->device != device) continue;
            captures.check_free(*each, "synchronize_device");
            marks.push_back(ordering.mark(each));
        }
        for (const auto& each : marks) ordering.wait(lock, *each);
        memory.share(device).late = 0;
    }
    /// Waits for one stream. `call` names the call for errors.
    void synchronize(SimulationLock& lock, const std::shared_ptr<Stream>& stream,
                     const std::string& call) {
        captures.check_free(*stream, call);
        ordering.wait(lock, *ordering.mark(stream));
        memory.share(stream->device).late = 0;
    }

    /// Records an allocator's note about a block, and paints the block if no queued work uses it.
    void note_block(const BlockNote& note) {
        if (!watch.on || !follow(note)) return;
        // A function in a stream may touch any memory, so blocks are painted only while no work is
        // queued.
        const bool all_idle =
            std::ranges::all_of(scheduler.streams(), [](auto& stream) { return stream->idle(); });
        const std::uintptr_t begin = begin_of(note);
        if (!all_idle || memory.first_gap(begin, note.bytes) != begin + note.bytes) return;
        if (note.kind == BlockNote::Kind::allocated) {
            paint_fresh(options, note.address, note.bytes);
        } else if (options.fill_patterns) {
            std::memset(note.address, freed_byte, std::min(note.bytes, max_painted));
        }
    }

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
    // Returns whether no queued work uses the block, so that it may be painted.
    bool follow(const BlockNote& note) {
        const std::shared_ptr<Stream> found = streams.find(note.device, note.stream);
        // A stream that was destroyed has no clock; what the host has waited for counts instead.
        const StreamName name = found == nullptr ? StreamName::host() : found->name;
        const VectorClock& clock = found == nullptr ? watch.host : ordering.clock_of(*found);
        const Capture* const capture = found == nullptr ? nullptr : found->capture.get();
        switch (note.kind) {
            case BlockNote::Kind::allocated:
                return lifetimes.block_allocated(watch.operation("allocate block", name), note,
                                                 name, clock,
                                                 capture == nullptr ? 0 : capture->id());
            case BlockNote::Kind::used:
                lifetimes.block_used(watch.operation("record_use", name), note, name);
                break;
            case BlockNote::Kind::freed:
                return lifetimes.block_freed(watch.operation("free block", name), note, clock);
            case BlockNote::Kind::reusable:
                lifetimes.block_reusable(watch.operation("block reusable", name), note, clock);
                break;
        }
        return false;
    }
    void admit(SimulatedCall call, int device) {
        if (Scheduler::at_work()) {
            throw DeviceError(DeviceStatus::failed, "called by a function of a stream");
        }
        const DeviceStatus status = book.admit(call);
        if (status != DeviceStatus::ok) throw DeviceError(status, "a fault on demand");
        if (!is_device(device)) refuse("there are " + std::to_string(options.devices) + " devices");
        const Capture* const capture =
            forbidden_in_capture(call) ? captures.by_this_thread() : nullptr;
        if (capture != nullptr) captures.refuse(*capture, to_string(call));
        if (!is_supported(call)) throw DeviceError(DeviceStatus::not_supported, "");
    }
    bool is_supported(SimulatedCall call) const noexcept {
        using enum SimulatedCall;
        const auto is_among = [call](SimulatedCall first, SimulatedCall last) {
            return first <= call && call <= last;
        };
        if (is_among(allocate_async, trim_stream_ordered)) return options.stream_ordered_allocation;
        if (is_among(advise_memory, prefetch_memory)) return options.managed_storage;
        if (is_among(reserve_addresses, unmap_memory)) return options.virtual_memory;
        const bool is_of_graph = is_among(begin_capture, destroy_graph) && call != capture_state;
        return !is_of_graph || options.graph_capture;
    }
    DeviceStatus keep_error(SimulatedCall call, int device, const DeviceError& error) {
        std::string text = "tensorpool: ";
        text += to_string(call);
        text += " on " + to_string(Device{DeviceType::simulated, device}) + ": " +
                to_string(error.status());
        const std::string detail = error.what();
        if (!detail.empty()) text += ": " + detail;
        book.keep_error(std::move(text));
        return error.status();
    }
};

}  // namespace tensorpool::device
