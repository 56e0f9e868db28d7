#include "device/runtime/host_blocks.hpp"

#include <string>
#include <utility>

#include "device/deferral/stream_progress.hpp"
#include "device/device_table.hpp"
#include "device/runtime/check_status.hpp"
#include "device/unlocked.hpp"
#include "events/misuse.hpp"
#include "events/recorder_hooks.hpp"

namespace tensorpool::device {

using detail::add;
using detail::add_release;

HostBlocks::HostBlocks(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source)
    : backend_(backend),
      device_(device),
      source_(std::move(source)),
      record_("host", DeviceStatistics::Kind::host, device),
      events_(backend, device.index),
      deferred_(backend, device.index, events_, record_.totals()) {}

HostBlocks::~HostBlocks() {
    backend_.synchronize_device(device_.index);
    Block* passed = nullptr;
    for (auto& [handle, stream] : streams_) {
        while (DeferrableBlock* const block = deferred_.next_of_all(stream.queue)) {
            pass(*block, passed);
        }
    }
    give(passed);
    for (const auto& [memory, block] : blocks_) {
        source_->deallocate(block->address, block->bytes, alignment);
    }
}

// Allocation -------------------------------------------------------------------------------------

void* HostBlocks::allocate(std::size_t bytes, StreamHandle stream) {
    events::look_for_recorder();
    if (!deferred_.is_empty()) complete_and_give();
    void* const memory = take(bytes);
    if (memory == nullptr) return nullptr;
    try {
        enter(memory, bytes, stream);
    } catch (...) {
        source_->deallocate(memory, bytes, alignment);
        throw;
    }
    return memory;
}

void* HostBlocks::take(std::size_t bytes) noexcept {
    void* const memory = source_->allocate(bytes, alignment);
    if (memory != nullptr || deferred_.is_empty()) return memory;
    wait_and_give();
    return source_->allocate(bytes, alignment);
}

void HostBlocks::enter(void* memory, std::size_t bytes, StreamHandle stream) {
    const std::lock_guard guard(mutex_);
    Stream& home = stream_of(stream);
    deferred_.reserve(blocks_.size() + 1);
    Block& block = records_.take();
    try {
        blocks_.emplace(memory, &block);
    } catch (...) {
        records_.give(block);
        throw;
    }
    block.address = static_cast<std::byte*>(memory);
    block.bytes = bytes;
    block.home = &home;
    record_.totals().count_growth(bytes);
    record_.totals().hold(bytes);
    add(home.counters->allocations, 1);
    add(home.counters->requested_bytes, bytes);
    add(home.counters->allocated_bytes, bytes);
    record_.note_capacity();
    events::record_device_block(record_.id(), stream, memory, bytes);
}

HostBlocks::Stream& HostBlocks::stream_of(StreamHandle stream) {
    const auto [entry, is_new] = streams_.try_emplace(stream);
    if (!is_new) return entry->second;
    try {
        entry->second.queue.record = &record_.add_stream(stream);
        entry->second.counters = &entry->second.queue.record->counters;
    } catch (...) {
        streams_.erase(entry);
        throw;
    }
    entry->second.queue.stream = stream;
    return entry->second;
}

void HostBlocks::record_use(void* memory, StreamHandle stream) {
    const std::lock_guard guard(mutex_);
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: record_use: no block in use of the host allocator of " +
                              to_string(device_) + " begins at the given address");
    }
    Block& block = *found->second;
    if (stream == block.home->queue.stream) return;
    deferred_.reserve(blocks_.size() + 1);
    if (!deferred_.add_use(block, stream_of(stream).queue)) return;
    add(record_.totals().cross_stream_uses, 1);
}

std::size_t HostBlocks::size_of(const void* memory) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = blocks_.find(memory);
    return found == blocks_.end() ? 0 : found->second->bytes;
}

bool HostBlocks::is_used_on(const void* memory, StreamHandle stream) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) return false;
    const Block& block = *found->second;
    return block.home->queue.stream == stream || DeferredFrees::has_use(block, stream);
}

// Deallocation -----------------------------------------------------------------------------------

void HostBlocks::deallocate(void* memory) noexcept {
    if (!deferred_.is_empty()) complete_and_give();
    std::size_t bytes = 0;
    {
        const std::lock_guard guard(mutex_);
        Block& block = remove(memory);
        bytes = block.bytes;
        deferred_.forget_idle_uses(block);
        if (deferred_.is_busy(block.home->queue.stream)) {
            deferred_.add_reserved_use(block, block.home->queue);
        }
        if (block.uses != nullptr) {
            events::record(TraceAction::defer, record_.id(), memory, bytes);
            return deferred_.defer(block);
        }
        record_.totals().let_go(bytes);
        count_give_back(block);
        records_.give(block);
    }
    source_->deallocate(memory, bytes, alignment);
}

HostBlocks::Block& HostBlocks::remove(void* memory) noexcept {
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) {
        events::stop_at_misuse(
            {.kind = events::MisuseKind::foreign_free, .pointer = memory, .owner = "host"},
            "deallocate: no block in use of the host allocator of %s begins "
            "at %p",
            to_string(device_).c_str(), memory);
    }
    Block& block = *found->second;
    blocks_.erase(found);
    statistics::DeviceStreamCounters& counters = *block.home->counters;
    add_release(counters.deallocations, 1);
    add_release(counters.deallocated_bytes, block.bytes);
    add_release(counters.deallocated_requested_bytes, block.bytes);
    return block;
}

void HostBlocks::count_give_back(const Block& block) noexcept {
    events::record(TraceAction::deallocate, record_.id(), block.address, block.bytes);
    record_.totals().count_give_back(block.bytes);
    record_.note_capacity();
}

void HostBlocks::pass(DeferrableBlock& block, Block*& passed) noexcept {
    auto& own = static_cast<Block&>(block);
    count_give_back(own);
    own.next = std::exchange(passed, &own);
}

void HostBlocks::complete(Block*& passed) noexcept {
    deferred_.begin();
    for (auto& [handle, stream] : streams_) {
        while (DeferrableBlock* const block = deferred_.next(stream.queue)) pass(*block, passed);
    }
}

void HostBlocks::complete_up_to(Stream& stream, std::uint64_t added, Block*& passed) noexcept {
    while (DeferrableBlock* const block = deferred_.next_up_to(stream.queue, added)) {
        pass(*block, passed);
    }
}

/// Returns the blocks of the list to the source, and their records to the pool. Returns their
/// bytes.
std::size_t HostBlocks::give(Block* passed) noexcept {
    if (passed == nullptr) return 0;
    std::size_t bytes = 0;
    for (const Block* block = passed; block != nullptr; block = block->next) {
        source_->deallocate(block->address, block->bytes, alignment);
        bytes += block->bytes;
    }
    const std::lock_guard guard(mutex_);
    while (passed != nullptr) records_.give(*std::exchange(passed, passed->next));
    return bytes;
}

std::size_t HostBlocks::complete_and_give() noexcept {
    Block* passed = nullptr;
    {
        const std::lock_guard guard(mutex_);
        complete(passed);
    }
    return give(passed);
}

/// Waits for the streams that hold back blocks. If one of them cannot be waited for, it may have
/// been destroyed before end_stream was called, so this waits for the whole device instead.
void HostBlocks::wait_and_give() noexcept {
    const std::lock_guard only_one(waiting_);
    Block* passed = nullptr;
    {
        const std::lock_guard guard(mutex_);
        add(record_.totals().pressures, 1);
        bool have_ended = true;
        // Other threads may add streams during the waits; the map never moves its nodes.
        for (auto& [handle, stream] : streams_) {
            if (stream.queue.first == nullptr) continue;
            stream.awaited = stream.queue.added;
            if (wait_for(stream)) complete_up_to(stream, stream.awaited, passed);
            have_ended &= stream.queue.first == nullptr;
        }
        complete(passed);
        if (!have_ended) wait_for_device(passed);
    }
    give(passed);
}

bool HostBlocks::wait_for(const Stream& stream) noexcept {
    add(record_.totals().synchronizations, 1);
    const Unlocked unlocked(mutex_);
    return is_done(backend_.synchronize_stream(device_.index, stream.queue.stream));
}

void HostBlocks::wait_for_device(Block*& passed) noexcept {
    for (auto& [handle, stream] : streams_) stream.awaited = stream.queue.added;
    add(record_.totals().synchronizations, 1);
    {
        const Unlocked unlocked(mutex_);
        if (!is_done(backend_.synchronize_device(device_.index))) return;
    }
    for (auto& [handle, stream] : streams_) complete_up_to(stream, stream.awaited, passed);
}

void HostBlocks::end_stream(StreamHandle stream) {
    if (stream == nullptr) return;
    DeviceStatus status = backend_.synchronize_stream(device_.index, stream);
    check_status(status, "end_stream", device_, backend_);
    const std::lock_guard only_one(waiting_);
    std::unique_lock lock(mutex_);
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    Stream& ending = found->second;
    Stream& heir = stream_of(nullptr);
    for (auto& [memory, block] : blocks_) {
        if (block->home == &ending) block->home = &heir;
        deferred_.forget_uses(*block, ending.queue);
    }
    Block* passed = nullptr;
    complete(passed);
    // A block was freed since, or an event is late.
    while (ending.queue.bytes != 0 && status == DeviceStatus::ok) {
        const std::uint64_t added = ending.queue.added;
        lock.unlock();
        status = backend_.synchronize_stream(device_.index, stream);
        lock.lock();
        if (status == DeviceStatus::ok) complete_up_to(ending, added, passed);
        deferred_.begin();
    }
    if (status == DeviceStatus::ok) {
        record_.end_stream(*ending.queue.record);
        streams_.erase(found);
    }
    lock.unlock();
    give(passed);
    check_status(status, "end_stream", device_, backend_);
}

std::size_t HostBlocks::trim() noexcept {
    return complete_and_give() + source_->trim();
}

}  // namespace tensorpool::device
