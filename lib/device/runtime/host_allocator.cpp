#include <tensorpool/device/host_allocator.hpp>

#include <map>
#include <unordered_map>

#include "device/caching/failure_report.hpp"
#include "device/owned_device_record.hpp"

namespace tensorpool::device {
namespace {

using Cause = DeviceAllocationFailure::Cause;

Cause cause_of(const DeviceAllocationFailure& failure) {
    if (failure.asked > failure.device_total) return Cause::request;
    // The system has the memory, so the source must have a limit of its own.
    if (failure.asked <= failure.device_free) return Cause::limit;
    return failure.capacity >= failure.other_processes ? Cause::own_use : Cause::other_processes;
}

class SystemMemorySource final : public HostMemorySource {
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept override {
        if (bytes > PTRDIFF_MAX) return nullptr;  // rounded up, SIZE_MAX would be 0
        return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
    }
    void deallocate(void* memory, std::size_t, std::size_t alignment) noexcept override {
        ::operator delete(memory, std::align_val_t(alignment));
    }
};

}  // namespace

using detail::add;

/// The implementation of HostAllocator: the blocks in use, their streams, and the counters. A
/// block's own stream is treated like any other: a freed block is held back until all have passed.
///
/// Order of locks: `waiting`, then `mutex`. The source is called under neither, and no stream is
/// waited for under `mutex`.
struct HostBlocks {
    /// The same as for blocks of CachingAllocator.
    static constexpr std::size_t alignment = 256;

    struct Stream {
        StreamQueue queue;
        statistics::DeviceStreamCounters* counters = nullptr;
        std::uint64_t awaited = 0;  // uses in the queue that the current wait covers
    };
    struct Block : DeferrableBlock {
        Stream* home = nullptr;
        Block* next = nullptr;  // in a list of blocks that return to the source
    };

    HostBlocks(Backend& of_backend, Device of_device, std::shared_ptr<HostMemorySource> of_source)
        : backend(of_backend),
          device(of_device),
          source(std::move(of_source)),
          record("host", DeviceStatistics::Kind::host, of_device),
          events(of_backend, of_device.index),
          deferred(of_backend, of_device.index, events, record.totals()) {}
    ~HostBlocks() {
        backend.synchronize_device(device.index);
        Block* passed = nullptr;
        for (auto& [handle, stream] : streams) {
            while (DeferrableBlock* const block = deferred.next_of_all(stream.queue)) {
                pass(*block, passed);
            }
        }
        give(passed);
        for (const auto& [memory, block] : in_use) {
            source->deallocate(block->address, block->bytes, alignment);
        }
    }

    /// Returns nullptr if the source has no memory, even after waiting for all blocks held back.
    /// Throws std::bad_alloc if there is no memory for the record.
    void* allocate(std::size_t bytes, StreamHandle stream) {
        events::look_for_recorder();
        if (!deferred.is_empty()) complete_and_give();
        void* const memory = take(bytes);
        if (memory == nullptr) return nullptr;
        try {
            enter(memory, bytes, stream);
        } catch (...) {
            source->deallocate(memory, bytes, alignment);
            throw;
        }
        return memory;
    }
    [[noreturn]] void fail(std::size_t bytes) {
        {
            const std::lock_guard guard(mutex);
            detail::add(record.totals().failures, 1);
        }
        DeviceAllocationFailure failure;
        FailureReport report(failure, "host", device, record.statistics(), 0);
        report.add_device(platform::available_memory(), platform::total_memory());
        failure.asked = bytes;
        failure.cause = cause_of(failure);
        failure.missing = bytes > failure.device_free ? bytes - failure.device_free : bytes;
        throw DeviceAllocationError(failure);
    }
    void* take(std::size_t bytes) noexcept {
        void* const memory = source->allocate(bytes, alignment);
        if (memory != nullptr || deferred.is_empty()) return memory;
        wait_and_give();
        return source->allocate(bytes, alignment);
    }
    void enter(void* memory, std::size_t bytes, StreamHandle stream) {
        const std::lock_guard guard(mutex);
        Stream& home = stream_of(stream);
        deferred.reserve(in_use.size() + 1);
        Block& block = records.take();
        try {
            in_use.emplace(memory, &block);
        } catch (...) {
            records.give(block);
            throw;
        }
        block.address = static_cast<std::byte*>(memory);
        block.bytes = bytes;
        block.home = &home;
        record.totals().count_growth(bytes);
        record.totals().hold(bytes);
        count_allocation(*home.counters, bytes, bytes);
        record.note_capacity();
        events::record_device_block(record.id(), stream, memory, bytes);
    }
    Stream& stream_of(StreamHandle stream) {
        const auto [entry, is_new] = streams.try_emplace(stream);
        if (!is_new) return entry->second;
        try {
            entry->second.queue.record = &record.add_stream(stream);
            entry->second.counters = &entry->second.queue.record->counters;
        } catch (...) {
            streams.erase(entry);
            throw;
        }
        entry->second.queue.stream = stream;
        return entry->second;
    }
    Block& remove(void* memory) noexcept {
        const auto found = in_use.find(memory);
        if (found == in_use.end()) {
            events::stop_at_misuse(
                {.kind = events::MisuseKind::foreign_free, .pointer = memory, .owner = "host"},
                "deallocate: no block in use of the host allocator of %s begins at %p",
                to_string(device).c_str(), memory);
        }
        Block& block = *found->second;
        in_use.erase(found);
        count_free(*block.home->counters, block.bytes, block.bytes);
        return block;
    }
    void count_give_back(const Block& block) noexcept {
        events::record(TraceAction::deallocate, record.id(), block.address, block.bytes);
        record.totals().count_give_back(block.bytes);
        record.note_capacity();
    }

    // Blocks that all streams have passed are put into a list under the lock; they return to the
    // source without it.
    void pass(DeferrableBlock& block, Block*& passed) noexcept {
        auto& own = static_cast<Block&>(block);
        count_give_back(own);
        own.next = std::exchange(passed, &own);
    }
    void complete(Block*& passed) noexcept {
        deferred.begin();
        for (auto& [handle, stream] : streams) {
            while (DeferrableBlock* const block = deferred.next(stream.queue)) pass(*block, passed);
        }
    }
    void complete_up_to(Stream& stream, std::uint64_t added, Block*& passed) noexcept {
        while (DeferrableBlock* const block = deferred.next_up_to(stream.queue, added)) {
            pass(*block, passed);
        }
    }
    /// Returns the blocks of the list to the source, and their records to the pool. Returns their
    /// bytes.
    std::size_t give(Block* passed) noexcept {
        if (passed == nullptr) return 0;
        std::size_t bytes = 0;
        for (const Block* block = passed; block != nullptr; block = block->next) {
            source->deallocate(block->address, block->bytes, alignment);
            bytes += block->bytes;
        }
        const std::lock_guard guard(mutex);
        while (passed != nullptr) records.give(*std::exchange(passed, passed->next));
        return bytes;
    }
    std::size_t complete_and_give() noexcept {
        Block* passed = nullptr;
        {
            const std::lock_guard guard(mutex);
            complete(passed);
        }
        return give(passed);
    }
    /// Waits for the streams that hold back blocks. If one of them cannot be waited for, it may
    /// have been destroyed before end_stream was called, so this waits for the whole device
    /// instead.
    void wait_and_give() noexcept {
        const std::lock_guard only_one(waiting);
        Block* passed = nullptr;
        {
            const std::lock_guard guard(mutex);
            add(record.totals().pressures, 1);
            bool have_ended = true;
            // Other threads may add streams during the waits; the map never moves its nodes.
            for (auto& [handle, stream] : streams) {
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
    bool wait_for(const Stream& stream) noexcept {
        add(record.totals().synchronizations, 1);
        const Unlocked unlocked(mutex);
        return is_done(backend.synchronize_stream(device.index, stream.queue.stream));
    }
    void wait_for_device(Block*& passed) noexcept {
        for (auto& [handle, stream] : streams) stream.awaited = stream.queue.added;
        add(record.totals().synchronizations, 1);
        {
            const Unlocked unlocked(mutex);
            if (!is_done(backend.synchronize_device(device.index))) return;
        }
        for (auto& [handle, stream] : streams) complete_up_to(stream, stream.awaited, passed);
    }
    void wait_for_end_of(StreamHandle stream) {
        check_status(backend.synchronize_stream(device.index, stream), "end_stream", device,
                     backend);
    }

    Backend& backend;
    const Device device;
    const std::shared_ptr<HostMemorySource> source;

    std::mutex waiting;        // held while waiting for streams or ending one, so that none ends
    mutable std::mutex mutex;  // guards what follows
    OwnedDeviceRecord record;
    EventPool events;
    DeferredFrees deferred;  // with a use reserved for each block in use
    RecordPool<Block> records;
    std::unordered_map<const void*, Block*> in_use;  // by address
    std::map<StreamHandle, Stream> streams;
};

}  // namespace tensorpool::device

namespace tensorpool {

using namespace device;

HostMemorySource::~HostMemorySource() = default;

std::size_t HostMemorySource::trim() noexcept {
    return 0;
}

std::shared_ptr<HostMemorySource> system_memory_source() {
    return std::make_shared<SystemMemorySource>();
}

HostAllocator::HostAllocator(Backend& backend, Device device,
                             std::shared_ptr<HostMemorySource> source)
    : blocks_(std::make_unique<HostBlocks>(backend, device, std::move(source))) {}
HostAllocator::~HostAllocator() = default;

Device HostAllocator::device() const noexcept {
    return blocks_->device;
}

void* HostAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    if (bytes == 0) return nullptr;
    void* const block = blocks_->allocate(bytes, stream);
    if (block == nullptr) [[unlikely]]
        blocks_->fail(bytes);
    return block;
}

void HostAllocator::deallocate(void* memory) noexcept {
    if (memory == nullptr) return;
    if (!blocks_->deferred.is_empty()) blocks_->complete_and_give();
    std::size_t bytes = 0;
    {
        const std::lock_guard guard(blocks_->mutex);
        HostBlocks::Block& block = blocks_->remove(memory);
        bytes = block.bytes;
        blocks_->deferred.forget_idle_uses(block);
        if (blocks_->deferred.is_busy(block.home->queue.stream)) {
            blocks_->deferred.add_reserved_use(block, block.home->queue);
        }
        if (block.uses != nullptr) {
            events::record(TraceAction::defer, blocks_->record.id(), memory, bytes);
            return blocks_->deferred.defer(block);
        }
        blocks_->record.totals().let_go(bytes);
        blocks_->count_give_back(block);
        blocks_->records.give(block);
    }
    blocks_->source->deallocate(memory, bytes, HostBlocks::alignment);
}

void HostAllocator::record_use(void* memory, StreamHandle stream) {
    const std::lock_guard guard(blocks_->mutex);
    const auto found = blocks_->in_use.find(memory);
    if (found == blocks_->in_use.end()) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: record_use: no block in use of the host allocator of " +
                              to_string(blocks_->device) + " begins at the given address");
    }
    HostBlocks::Block& block = *found->second;
    if (stream == block.home->queue.stream) return;
    blocks_->deferred.reserve(blocks_->in_use.size() + 1);
    if (!blocks_->deferred.add_use(block, blocks_->stream_of(stream).queue)) return;
    add(blocks_->record.totals().cross_stream_uses, 1);
}

void* HostAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice HostAllocator::memory_device() const noexcept {
    return {};
}

std::size_t HostAllocator::usable_size(const void* memory) const noexcept {
    const std::lock_guard guard(blocks_->mutex);
    const auto found = blocks_->in_use.find(memory);
    return found == blocks_->in_use.end() ? 0 : found->second->bytes;
}

bool HostAllocator::is_used_on(const void* memory, StreamHandle stream) const noexcept {
    const std::lock_guard guard(blocks_->mutex);
    const auto found = blocks_->in_use.find(memory);
    if (found == blocks_->in_use.end()) return false;
    const HostBlocks::Block& block = *found->second;
    return block.home->queue.stream == stream || DeferredFrees::has_use(block, stream);
}

DeviceStatistics HostAllocator::statistics() const {
    return blocks_->record.statistics();
}

std::size_t HostAllocator::trim() noexcept {
    return blocks_->complete_and_give() + blocks_->source->trim();
}

void HostAllocator::end_stream(StreamHandle stream) {
    if (stream == nullptr) return;
    blocks_->wait_for_end_of(stream);
    const std::lock_guard only_one(blocks_->waiting);
    std::unique_lock lock(blocks_->mutex);
    const auto found = blocks_->streams.find(stream);
    if (found == blocks_->streams.end()) return;
    HostBlocks::Stream& ending = found->second;
    HostBlocks::Stream& heir = blocks_->stream_of(nullptr);
    for (auto& [memory, block] : blocks_->in_use) {
        if (block->home == &ending) block->home = &heir;
        blocks_->deferred.forget_uses(*block, ending.queue);
    }
    HostBlocks::Block* passed = nullptr;
    blocks_->complete(passed);
    try {
        blocks_->deferred.end(
            ending.queue, blocks_->mutex, [&] { blocks_->wait_for_end_of(stream); },
            [&](DeferrableBlock& block) { blocks_->pass(block, passed); });
        blocks_->record.end_stream(*ending.queue.record);
        blocks_->streams.erase(found);
    } catch (...) {
        lock.unlock();
        blocks_->give(passed);
        throw;
    }
    lock.unlock();
    blocks_->give(passed);
}

}  // namespace tensorpool
