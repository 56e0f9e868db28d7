#include "device/runtime/host_blocks.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "device/runtime/check_status.hpp"
#include "platform/fail.hpp"
#include "statistics/recorder_hooks.hpp"
#include "statistics/segment/failed_checks.hpp"

namespace tensorpool::device {

using detail::add;
using detail::add_release;
using statistics::DeviceStreamCounters;
using statistics::DeviceTotals;

HostBlocks::HostBlocks(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source)
    : backend_(backend),
      device_(device),
      source_(std::move(source)),
      place_("host", DeviceStatistics::Kind::host, device),
      held_(backend, device.index, this, [](void* self, const HeldBlocks::Block& block) noexcept {
          static_cast<HostBlocks*>(self)->give(block);
      }) {}

HostBlocks::~HostBlocks() {
    backend_.synchronize_device(device_.index);
    for (const auto& [memory, block] : blocks_) {
        source_->deallocate(const_cast<void*>(memory), block.bytes, alignment);
    }
}

void* HostBlocks::allocate(std::size_t bytes, StreamHandle stream) {
    statistics::look_for_recorder();
    if (held_.holds_any()) held_.collect();
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
    if (memory != nullptr || !held_.holds_any()) return memory;
    const std::size_t waits = held_.wait_and_collect();
    {
        const std::lock_guard guard(mutex_);
        add(place_.totals().pressures, 1);
        add(place_.totals().synchronizations, waits);
    }
    return source_->allocate(bytes, alignment);
}

void HostBlocks::enter(void* memory, std::size_t bytes, StreamHandle stream) {
    const std::lock_guard guard(mutex_);
    DeviceStreamCounters& counters = *stream_of(stream).counters;
    blocks_.insert_or_assign(memory, Block{bytes, stream, {}});
    place_.totals().count_growth(bytes);
    place_.totals().hold(bytes);
    add(counters.allocations, 1);
    add(counters.requested_bytes, bytes);
    add(counters.allocated_bytes, bytes);
    place_.note_capacity();
    statistics::record_device_block(place_.id(), stream, memory, bytes);
}

HostBlocks::Stream& HostBlocks::stream_of(StreamHandle stream) {
    const auto [place, is_new] = streams_.try_emplace(stream, Stream{nullptr, 0});
    if (!is_new) return place->second;
    try {
        place->second.counters = &place_.add_stream(stream);
    } catch (...) {
        streams_.erase(place);
        throw;
    }
    return place->second;
}

void HostBlocks::deallocate(void* memory) noexcept {
    if (held_.holds_any()) held_.collect();
    Block block = remove(memory);
    const std::span<const StreamHandle> streams = all_streams(block);
    // In the block's own memory: what is busy comes first.
    StreamHandle* const first = const_cast<StreamHandle*>(streams.data());
    StreamHandle* const end = std::partition(first, first + streams.size(),
                                             [this](StreamHandle s) { return held_.is_busy(s); });
    if (end == first) return give_at_once(memory, block);
    hold_back(memory, block, {first, end});
}

HostBlocks::Block HostBlocks::remove(void* memory) noexcept {
    const std::lock_guard guard(mutex_);
    const auto place = blocks_.find(memory);
    if (place == blocks_.end()) {
        statistics::count_failed_check(statistics::CheckKind::misuse, "host");
        platform::fail("deallocate: no block in use of the host allocator of %s begins at %p",
                       to_string(device_).c_str(), memory);
    }
    Block block = std::move(place->second);
    blocks_.erase(place);
    Stream& home = streams_.find(block.stream)->second;
    add_release(home.counters->deallocations, 1);
    add_release(home.counters->deallocated_bytes, block.bytes);
    add_release(home.counters->deallocated_requested_bytes, block.bytes);
    for (const StreamHandle stream : all_streams(block)) ++streams_.find(stream)->second.leaving;
    return block;
}

// Its own stream and the others.
std::span<const StreamHandle> HostBlocks::all_streams(Block& block) noexcept {
    if (block.uses.empty()) return {&block.stream, 1};
    if (std::find(block.uses.begin(), block.uses.end(), block.stream) == block.uses.end()) {
        block.uses.push_back(block.stream);
    }
    return block.uses;
}

void HostBlocks::give_at_once(void* memory, Block& block) noexcept {
    {
        const std::lock_guard guard(mutex_);
        statistics::record(TraceAction::deallocate, place_.id(), memory, block.bytes);
        place_.totals().let_go(block.bytes);
        place_.totals().count_give_back(block.bytes);
        place_.note_capacity();
        leave(block);
    }
    source_->deallocate(memory, block.bytes, alignment);
}

void HostBlocks::hold_back(void* memory, Block& block,
                           std::span<const StreamHandle> busy) noexcept {
    {
        // Before it is held, for then it may be given at any moment.
        const std::lock_guard guard(mutex_);
        statistics::record(TraceAction::defer, place_.id(), memory, block.bytes);
        place_.totals().defer(block.bytes);
    }
    const std::size_t events = held_.hold(memory, block.bytes, busy);
    const std::lock_guard guard(mutex_);
    add(place_.totals().events, events);
    leave(block);
}

void HostBlocks::leave(Block& block) noexcept {
    for (const StreamHandle stream : all_streams(block)) {
        if (--streams_.find(stream)->second.leaving == 0) left_.notify_all();
    }
}

void HostBlocks::give(const HeldBlocks::Block& block) noexcept {
    {
        const std::lock_guard guard(mutex_);
        statistics::record(TraceAction::deallocate, place_.id(), block.memory, block.bytes);
        place_.totals().end_deferral(block.bytes);
        place_.totals().count_give_back(block.bytes);
        place_.note_capacity();
    }
    source_->deallocate(block.memory, block.bytes, alignment);
}

void HostBlocks::record_use(void* memory, StreamHandle stream) {
    const std::lock_guard guard(mutex_);
    const auto place = blocks_.find(memory);
    if (place == blocks_.end()) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: record_use: no block in use of the host allocator of " +
                              to_string(device_) + " begins at the address given");
    }
    Block& block = place->second;
    const auto end = block.uses.end();
    if (stream == block.stream || std::find(block.uses.begin(), end, stream) != end) return;
    stream_of(stream);
    block.uses.reserve(block.uses.size() + 2);
    block.uses.push_back(stream);
    add(place_.totals().cross_stream_uses, 1);
}

std::size_t HostBlocks::size_of(const void* memory) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto place = blocks_.find(memory);
    return place == blocks_.end() ? 0 : place->second.bytes;
}

bool HostBlocks::is_used_on(const void* memory, StreamHandle stream) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto place = blocks_.find(memory);
    if (place == blocks_.end()) return false;
    const Block& block = place->second;
    return block.stream == stream ||
           std::find(block.uses.begin(), block.uses.end(), stream) != block.uses.end();
}

void HostBlocks::end_stream(StreamHandle stream) {
    if (stream == nullptr) return;
    check_status(backend_.synchronize_stream(device_.index, stream), "end_stream", device_,
                 backend_);
    std::unique_lock lock(mutex_);
    const auto place = streams_.find(stream);
    if (place == streams_.end()) return;
    Stream& ending = place->second;
    stream_of(nullptr);
    for (auto& [memory, block] : blocks_) {
        if (block.stream == stream) block.stream = nullptr;
        std::erase(block.uses, stream);
    }
    left_.wait(lock, [&] { return ending.leaving == 0; });
    place_.end_stream(*ending.counters);
    streams_.erase(stream);
    lock.unlock();
    check_status(held_.end_stream(stream), "end_stream", device_, backend_);
}

std::size_t HostBlocks::trim() noexcept {
    return held_.collect() + source_->trim();
}

}  // namespace tensorpool::device
