#include <tensorpool/device/stream_ordered_allocator.hpp>

#include <unordered_map>

#include "device/caching/failure_report.hpp"
#include "device/owned_device_record.hpp"

namespace tensorpool {

using detail::add;
using device::FailureReport;

namespace {

int validated(Backend& backend, int device, const StreamOrderedOptions& options) {
    const std::string prefix = "tensorpool: stream-ordered allocator '" + options.name + "': ";
    (void)device::existing_device(backend, device, prefix);
    if (!backend.abilities(device).stream_ordered_allocation) {
        throw std::invalid_argument(prefix + to_string(Device{backend.type(), device}) +
                                    " has no stream-ordered allocation; expected a device with it");
    }
    return device;
}

}  // namespace

struct StreamOrderedAllocator::State {
    /// A stream that uses a block of another one. The event is reserved for the free.
    struct Use {
        StreamHandle stream;
        EventHandle event;
    };
    struct Block {
        std::size_t bytes = 0;
        StreamHandle stream = nullptr;
        std::vector<Use> uses = {};
        bool freed = false;  // by its owner; the device has not taken it back yet

        bool is_used_on(StreamHandle one) const noexcept {
            return stream == one || std::ranges::find(uses, one, &Use::stream) != uses.end();
        }
    };
    using Blocks = std::unordered_map<const void*, Block>;

    State(Backend& of_backend, int index, const StreamOrderedOptions& options)
        : backend(of_backend),
          device{backend.type(), validated(backend, index, options)},
          name(options.name),
          record(name, DeviceStatistics::Kind::caching, device),
          counters(record.add_stream(nullptr).counters),
          events(backend, index) {
        const DeviceStatus status = backend.set_release_threshold(index, options.release_threshold);
        device::check_status(status, "set_release_threshold", device, backend);
    }
    ~State() {
        (void)backend.synchronize_device(device.index);
        // In the default stream, which is there whatever became of the others; their work is done.
        for (const auto& [memory, block] : blocks) {
            (void)backend.deallocate_async(device.index, const_cast<void*>(memory), block.bytes,
                                           nullptr);
        }
    }

    void* allocate(std::size_t bytes, StreamHandle stream) {
        events::look_for_recorder();
        {
            const std::lock_guard guard(mutex);
            give_back_late();
        }
        if (is_captured(stream)) refuse(bytes, DeviceStatus::in_capture);
        void* memory = nullptr;
        const DeviceStatus status = backend.allocate_async(device.index, bytes, stream, &memory);
        if (status != DeviceStatus::ok) refuse(bytes, status);
        try {
            enter(memory, bytes, stream);
        } catch (...) {
            (void)backend.deallocate_async(device.index, memory, bytes, stream);
            throw;
        }
        return memory;
    }
    void enter(void* memory, std::size_t bytes, StreamHandle stream) {
        const std::lock_guard guard(mutex);
        blocks.try_emplace(memory, Block{bytes, stream});
        record.totals().count_growth(bytes);
        record.totals().hold(bytes);
        device::count_allocation(counters, bytes, bytes);
        record.note_capacity();
        events::record_device_block(record.id(), stream, memory, bytes);
    }
    [[noreturn]] void refuse(std::size_t bytes, DeviceStatus status) {
        DeviceAllocationFailure failure;
        FailureReport report(failure, name, device, record.statistics(), 0);
        report.add_device(backend);
        report.judge(bytes, status, FailureReport::Cause::own_use, FailureReport::Room::certain);
        {
            const std::lock_guard guard(mutex);
            add(record.totals().failures, 1);
        }
        events::write_entry(report.entry(), report.limit(), bytes, name);
        if (status == DeviceStatus::in_capture) {
            throw DeviceError(status, "tensorpool: " + name + " on " + to_string(device) +
                                          ": allocate: " + std::to_string(bytes) +
                                          " B: the stream is captured; expected one that is not");
        }
        device::throw_failure(failure, backend);
    }
    void deallocate(void* memory) noexcept {
        const std::lock_guard guard(mutex);
        give_back_late();
        Block& block = end_use(memory);
        const std::size_t bytes = block.bytes;
        if (!give_back(memory, block)) {
            events::record(TraceAction::defer, record.id(), memory, bytes);
            record.totals().defer(bytes);
            ++late;
            return;
        }
        record.totals().let_go(bytes);
        blocks.erase(memory);
    }
    Block& end_use(void* memory) noexcept {
        const auto found = blocks.find(memory);
        if (found == blocks.end() || found->second.freed) {
            events::stop_at_misuse(
                {.kind = events::MisuseKind::foreign_free, .pointer = memory, .owner = name},
                "%s on %s: deallocate: no block in use begins at %p", name.c_str(),
                to_string(device).c_str(), memory);
        }
        Block& block = found->second;
        block.freed = true;
        device::count_free(counters, block.bytes, block.bytes);
        return block;
    }
    /// Also true if the backend does not answer, because nothing is known about the stream then.
    bool is_captured(StreamHandle stream) const noexcept {
        CaptureState state;
        const DeviceStatus status = backend.capture_state(device.index, stream, state);
        return status != DeviceStatus::ok || state.capturing;
    }
    /// Frees the block in the order of its stream, which waits for the others. Returns false if
    /// that is not possible now. Nothing is submitted to a captured stream: it would become part of
    /// the graph.
    bool give_back(const void* memory, Block& block) noexcept {
        const auto captured = [&](const Use& use) { return is_captured(use.stream); };
        if (is_captured(block.stream) || std::ranges::any_of(block.uses, captured)) {
            return false;
        }
        for (const Use& use : block.uses) {
            const bool ordered =
                backend.record_event(device.index, use.event, use.stream) == DeviceStatus::ok &&
                backend.wait_event(device.index, block.stream, use.event) == DeviceStatus::ok;
            if (!ordered) return false;
            add(record.totals().events, 1);
        }
        const DeviceStatus status = backend.deallocate_async(
            device.index, const_cast<void*>(memory), block.bytes, block.stream);
        if (status != DeviceStatus::ok) return false;
        for (const Use& use : block.uses) events.give(use.event);
        events::record(TraceAction::deallocate, record.id(), memory, block.bytes);
        record.totals().count_give_back(block.bytes);
        record.note_capacity();
        return true;
    }
    void give_back_late() noexcept {
        if (late == 0) return;
        for (auto entry = blocks.begin(); entry != blocks.end();) {
            Block& block = entry->second;
            if (!block.freed || !give_back(entry->first, block)) {
                ++entry;
                continue;
            }
            record.totals().end_deferral(block.bytes);
            entry = blocks.erase(entry);
            --late;
        }
    }
    void record_use(void* memory, StreamHandle stream) {
        const std::lock_guard guard(mutex);
        const auto found = blocks.find(memory);
        if (found == blocks.end() || found->second.freed) {
            device::throw_not_in_use(name, device, "record_use", memory);
        }
        Block& block = found->second;
        if (block.is_used_on(stream)) return;
        block.uses.reserve(block.uses.size() + 1);
        const EventHandle event = events.take();
        if (event == nullptr) {
            device::throw_status(DeviceStatus::failed, "record_use: create_event", device, backend);
        }
        block.uses.push_back({stream, event});
        add(record.totals().cross_stream_uses, 1);
    }
    void end_stream(StreamHandle stream) {
        if (stream == nullptr) return;
        device::check_status(backend.synchronize_stream(device.index, stream), "end_stream", device,
                             backend);
        const std::lock_guard guard(mutex);
        add(record.totals().synchronizations, 1);
        for (auto& [memory, block] : blocks) {
            if (block.stream == stream) block.stream = nullptr;
            forget_use(block, stream);
        }
        give_back_late();
    }
    void forget_use(Block& block, StreamHandle stream) noexcept {
        std::erase_if(block.uses, [&](const Use& use) {
            if (use.stream != stream) return false;
            events.give(use.event);
            return true;
        });
    }
    /// Returns the block in use at the address, or nullptr.
    const Block* find(const void* memory) const noexcept {
        const auto found = blocks.find(memory);
        return found != blocks.end() && !found->second.freed ? &found->second : nullptr;
    }

    Backend& backend;
    const Device device;
    const std::string name;
    std::mutex mutex;  // guards what follows
    device::OwnedDeviceRecord record;
    statistics::DeviceStreamCounters& counters;  // of all streams
    device::EventPool events;
    Blocks blocks;
    std::size_t late = 0;  // blocks that are freed and still in `blocks`
};

StreamOrderedAllocator::StreamOrderedAllocator(Backend& backend, int device,
                                               const StreamOrderedOptions& options)
    : state_(std::make_unique<State>(backend, device, options)) {}

StreamOrderedAllocator::~StreamOrderedAllocator() = default;

Device StreamOrderedAllocator::device() const noexcept {
    return state_->device;
}

void* StreamOrderedAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    return bytes != 0 ? state_->allocate(bytes, stream) : nullptr;
}

void StreamOrderedAllocator::deallocate(void* block) noexcept {
    if (block != nullptr) state_->deallocate(block);
}

void StreamOrderedAllocator::record_use(void* block, StreamHandle stream) {
    if (block != nullptr) state_->record_use(block, stream);
}

void* StreamOrderedAllocator::host_pointer(void* block) const noexcept {
    return state_->backend.host_pointer(state_->device.index, block);
}

std::size_t StreamOrderedAllocator::usable_size(const void* block) const noexcept {
    const std::lock_guard guard(state_->mutex);
    const State::Block* const found = state_->find(block);
    return found != nullptr ? found->bytes : 0;
}

bool StreamOrderedAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    const std::lock_guard guard(state_->mutex);
    const State::Block* const found = state_->find(block);
    return found != nullptr && found->is_used_on(stream);
}

DeviceStatistics StreamOrderedAllocator::statistics() const {
    return state_->record.statistics();
}

std::size_t StreamOrderedAllocator::trim() noexcept {
    {
        const std::lock_guard guard(state_->mutex);
        state_->give_back_late();
    }
    std::size_t bytes = 0;
    (void)state_->backend.trim_stream_ordered(state_->device.index, bytes);
    return bytes;
}

void StreamOrderedAllocator::end_stream(StreamHandle stream) {
    state_->end_stream(stream);
}

}  // namespace tensorpool
