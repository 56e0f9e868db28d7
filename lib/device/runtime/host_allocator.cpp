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
/// Order of locks: `waiting_`, then `mutex_`. The source is called under neither, and no stream is
/// waited for under `mutex_`.
class HostBlocks {
public:
    /// The same as for blocks of CachingAllocator.
    static constexpr std::size_t alignment = 256;

    HostBlocks(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source)
        : backend_(backend),
          device_(device),
          source_(std::move(source)),
          record_("host", DeviceStatistics::Kind::host, device),
          events_(backend, device.index),
          deferred_(backend, device.index, events_, record_.totals()) {}
    ~HostBlocks() {
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

    Device device() const noexcept { return device_; }
    /// Returns nullptr if the source has no memory, even after waiting for all blocks held back.
    /// Throws std::bad_alloc if there is no memory for the record.
    void* allocate(std::size_t bytes, StreamHandle stream) {
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
    [[noreturn]] void fail(std::size_t bytes) {
        {
            const std::lock_guard guard(mutex_);
            detail::add(record_.totals().failures, 1);
        }
        DeviceAllocationFailure failure;
        FailureReport report(failure, "host", device_, statistics(), 0);
        report.add_device(platform::available_memory(), platform::total_memory());
        failure.asked = bytes;
        failure.cause = cause_of(failure);
        failure.missing = bytes > failure.device_free ? bytes - failure.device_free : bytes;
        throw DeviceAllocationError(failure);
    }
    void deallocate(void* memory) noexcept {
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
    void record_use(void* memory, StreamHandle stream) {
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
    std::size_t size_of(const void* memory) const noexcept {
        const std::lock_guard guard(mutex_);
        const auto found = blocks_.find(memory);
        return found == blocks_.end() ? 0 : found->second->bytes;
    }
    bool is_used_on(const void* memory, StreamHandle stream) const noexcept {
        const std::lock_guard guard(mutex_);
        const auto found = blocks_.find(memory);
        if (found == blocks_.end()) return false;
        const Block& block = *found->second;
        return block.home->queue.stream == stream || DeferredFrees::has_use(block, stream);
    }
    void end_stream(StreamHandle stream) {
        if (stream == nullptr) return;
        wait_for_end_of(stream);
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
        try {
            deferred_.end(
                ending.queue, mutex_, [&] { wait_for_end_of(stream); },
                [&](DeferrableBlock& block) { pass(block, passed); });
            record_.end_stream(*ending.queue.record);
            streams_.erase(found);
        } catch (...) {
            lock.unlock();
            give(passed);
            throw;
        }
        lock.unlock();
        give(passed);
    }
    DeviceStatistics statistics() const { return record_.statistics(); }
    std::size_t trim() noexcept { return complete_and_give() + source_->trim(); }

private:
    struct Stream {
        StreamQueue queue;
        statistics::DeviceStreamCounters* counters = nullptr;
        std::uint64_t awaited = 0;  // uses in the queue that the current wait covers
    };
    struct Block : DeferrableBlock {
        Stream* home = nullptr;
        Block* next = nullptr;  // in a list of blocks that return to the source
    };

    void* take(std::size_t bytes) noexcept {
        void* const memory = source_->allocate(bytes, alignment);
        if (memory != nullptr || deferred_.is_empty()) return memory;
        wait_and_give();
        return source_->allocate(bytes, alignment);
    }
    void enter(void* memory, std::size_t bytes, StreamHandle stream) {
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
        count_allocation(*home.counters, bytes, bytes);
        record_.note_capacity();
        events::record_device_block(record_.id(), stream, memory, bytes);
    }
    Stream& stream_of(StreamHandle stream) {
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
    Block& remove(void* memory) noexcept {
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
        count_free(*block.home->counters, block.bytes, block.bytes);
        return block;
    }
    void count_give_back(const Block& block) noexcept {
        events::record(TraceAction::deallocate, record_.id(), block.address, block.bytes);
        record_.totals().count_give_back(block.bytes);
        record_.note_capacity();
    }

    // Blocks that all streams have passed are put into a list under the lock; they return to the
    // source without it.
    void pass(DeferrableBlock& block, Block*& passed) noexcept {
        auto& own = static_cast<Block&>(block);
        count_give_back(own);
        own.next = std::exchange(passed, &own);
    }
    void complete(Block*& passed) noexcept {
        deferred_.begin();
        for (auto& [handle, stream] : streams_) {
            while (DeferrableBlock* const block = deferred_.next(stream.queue))
                pass(*block, passed);
        }
    }
    void complete_up_to(Stream& stream, std::uint64_t added, Block*& passed) noexcept {
        while (DeferrableBlock* const block = deferred_.next_up_to(stream.queue, added)) {
            pass(*block, passed);
        }
    }
    /// Returns the blocks of the list to the source, and their records to the pool. Returns their
    /// bytes.
    std::size_t give(Block* passed) noexcept {
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
    std::size_t complete_and_give() noexcept {
        Block* passed = nullptr;
        {
            const std::lock_guard guard(mutex_);
            complete(passed);
        }
        return give(passed);
    }
    /// Waits for the streams that hold back blocks. If one of them cannot be waited for, it may
    /// have been destroyed before end_stream was called, so this waits for the whole device
    /// instead.
    void wait_and_give() noexcept {
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
    bool wait_for(const Stream& stream) noexcept {
        add(record_.totals().synchronizations, 1);
        const Unlocked unlocked(mutex_);
        return is_done(backend_.synchronize_stream(device_.index, stream.queue.stream));
    }
    void wait_for_device(Block*& passed) noexcept {
        for (auto& [handle, stream] : streams_) stream.awaited = stream.queue.added;
        add(record_.totals().synchronizations, 1);
        {
            const Unlocked unlocked(mutex_);
            if (!is_done(backend_.synchronize_device(device_.index))) return;
        }
        for (auto& [handle, stream] : streams_) complete_up_to(stream, stream.awaited, passed);
    }
    void wait_for_end_of(StreamHandle stream) {
        check_status(backend_.synchronize_stream(device_.index, stream), "end_stream", device_,
                     backend_);
    }

    Backend& backend_;
    const Device device_;
    const std::shared_ptr<HostMemorySource> source_;

    std::mutex waiting_;        // held while waiting for streams or ending one, so that none ends
    mutable std::mutex mutex_;  // guards what follows
    OwnedDeviceRecord record_;
    EventPool events_;
    DeferredFrees deferred_;  // with a use reserved for each block in use
    RecordPool<Block> records_;
    std::unordered_map<const void*, Block*> blocks_;  // in use
    std::map<StreamHandle, Stream> streams_;
};

}  // namespace tensorpool::device

namespace tensorpool {

HostMemorySource::~HostMemorySource() = default;

std::size_t HostMemorySource::trim() noexcept {
    return 0;
}

std::shared_ptr<HostMemorySource> system_memory_source() {
    return std::make_shared<device::SystemMemorySource>();
}

HostAllocator::HostAllocator(Backend& backend, Device device,
                             std::shared_ptr<HostMemorySource> source)
    : blocks_(std::make_unique<device::HostBlocks>(backend, device, std::move(source))) {}
HostAllocator::~HostAllocator() = default;

Device HostAllocator::device() const noexcept {
    return blocks_->device();
}

void* HostAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    if (bytes == 0) return nullptr;
    void* const block = blocks_->allocate(bytes, stream);
    if (block == nullptr) [[unlikely]]
        blocks_->fail(bytes);
    return block;
}

void HostAllocator::deallocate(void* block) noexcept {
    if (block != nullptr) blocks_->deallocate(block);
}

void HostAllocator::record_use(void* block, StreamHandle stream) {
    blocks_->record_use(block, stream);
}

void* HostAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice HostAllocator::memory_device() const noexcept {
    return {};
}

std::size_t HostAllocator::usable_size(const void* block) const noexcept {
    return blocks_->size_of(block);
}

bool HostAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    return blocks_->is_used_on(block, stream);
}

DeviceStatistics HostAllocator::statistics() const {
    return blocks_->statistics();
}

std::size_t HostAllocator::trim() noexcept {
    return blocks_->trim();
}

void HostAllocator::end_stream(StreamHandle stream) {
    blocks_->end_stream(stream);
}

}  // namespace tensorpool
