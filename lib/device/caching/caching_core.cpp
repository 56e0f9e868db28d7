#include "device/caching/caching_core.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/caching/failure_report.hpp"
#include "device/call_errors.hpp"

namespace tensorpool::device {
namespace {

/// Makes a page of scalars of a block that the search returns.
void open_page(Scalars& scalars, BlockSearch& search, StreamCache& cache, Outcome& outcome,
               const Request& request) {
    ScalarPage& page = scalars.take_record();
    try {
        outcome = search.obtain(cache, request);
    } catch (...) {
        scalars.give_record(page);
        throw;
    }
    if (outcome.block == nullptr) return scalars.give_record(page);
    scalars.open(cache, *outcome.block, page);
}

/// Returns the block in use at the address. Throws DeviceError if there is none.
Block& block_in_use(const AllocatorState& state, void* address, const char* call) {
    Block* const block = state.heap.find(address);
    if (block != nullptr && block->is(BlockState::scalars) && Scalars::has(*block, address)) {
        return *block;
    }
    if (!is_in_use(block, address))
        throw_not_in_use(state.options.name, state.name_of_device(), call, address);
    return *block;
}

void free_scalar(AllocatorState& state, Scalars& scalars, Block& block, void* address) noexcept {
    if (!Scalars::has(block, address))
        fail_free(state.options.name, state.name_of_device(), address, &block);
    if (state.is_watched()) {
        const StreamHandle stream = block.home.load(std::memory_order_relaxed)->stream();
        const Unlocked unlocked(state.mutex);
        state.watch.freed({address, ScalarPage::scalar_bytes, ScalarPage::scalar_bytes, stream});
    }
    scalars.free(block, address);
}

/// Ends the use of a block and notifies all observers. Returns nullptr for a scalar, which is
/// freed.
Block* end_use(AllocatorState& state, Scalars& scalars, void* address,
               std::unique_lock<std::mutex>& lock) noexcept {
    Block* const block = state.heap.find(address);
    if (block != nullptr && block->is(BlockState::scalars)) {
        free_scalar(state, scalars, *block, address);
        return nullptr;
    }
    if (block == nullptr || block->address != address)
        fail_free(state.options.name, state.name_of_device(), address, block);
    {
        StreamCache& home = *block->home.load(std::memory_order_relaxed);
        const std::lock_guard guard(home);
        if (!block->is(BlockState::in_use) && !block->is(BlockState::shared)) {
            fail_free(state.options.name, state.name_of_device(), address, block);
        }
        block->set(BlockState::leaving);
        home.count_free(block->requested, block->bytes);
    }
    if (state.is_watched()) {
        const StreamHandle stream = block->home.load(std::memory_order_relaxed)->stream();
        const bool deferred = block->uses != nullptr;
        lock.unlock();
        state.watch.freed({block->address, block->bytes, block->requested, stream, deferred});
        lock.lock();
    }
    return block;
}

/// Gives the memory of a freed block back to the device, or leaves that to a later call while
/// work uses it.
void put_back_shareable(AllocatorState& state, FreeBlocks& free, Reclaim& reclaim,
                        Block& block) noexcept {
    if (block.uses != nullptr) {
        state.deferred.defer(block);
        free.complete();
    } else {
        const StreamCache& home = *block.home.load(std::memory_order_relaxed);
        state.totals.let_go(block.bytes);
        state.heap.put_back(block, home.memory.marks.stamp());
    }
    reclaim.give_back_shareable();
}

}  // namespace

CachingCore::CachingCore(Backend& backend, int device, const CachingOptions& options)
    : state_(backend, device, options) {
    (void)caches_.of(nullptr, 0);
    captures_.set_gate();
}

CachingCore::~CachingCore() {
    (void)state_.backend.synchronize_device(state_.device);
    for (const auto& cache : state_.caches) growth_.end_slabs(*cache);
    growth_.end_slabs(captures_.reserved());
}

// Allocation -------------------------------------------------------------------------------------

void* CachingCore::take_parked_unless_captured(std::size_t bytes, StreamHandle stream) noexcept {
    const bool sleeps =
        (state_.gate.load(std::memory_order_relaxed) & AllocatorState::sleeping) != 0;
    if (sleeps || state_.is_watched() || captures_.of(stream) != 0) return nullptr;
    StreamCache* const cache = state_.streams.find(stream);
    Block* const block = cache != nullptr ? cache->take(round_bytes(bytes), bytes) : nullptr;
    return block != nullptr ? block->address : nullptr;
}

void* CachingCore::allocate_or_throw(std::size_t bytes, StreamHandle stream, Shareable shareable) {
    DeviceAllocationFailure failure;
    void* const block = allocate(bytes, stream, &failure, shareable);
    if (block == nullptr && bytes != 0) refuse(failure);
    return block;
}

void* CachingCore::allocate_shareable(std::size_t bytes, StreamHandle stream) {
    if (state_.options.exportable) return allocate_or_throw(bytes, stream, Shareable::yes);
    throw DeviceError(DeviceStatus::not_supported,
                      "tensorpool: " + state_.options.name +
                          ": allocate_shareable: found an allocator without, expected one with "
                          "the option exportable");
}

SharedBlock CachingCore::share(void* address) const {
    MemoryHandle memory = nullptr;
    std::size_t bytes = 0;
    {
        const Lock lock(state_.mutex);
        const Block& block = block_in_use(state_, address, "share");
        if (block.slab->pool != Pool::shareable) {
            throw DeviceError(DeviceStatus::invalid_argument,
                              "tensorpool: " + state_.options.name +
                                  ": share: " + to_text(address) +
                                  " is a block in a slab with others, expected "
                                  "one of allocate_shareable");
        }
        memory = block.slab->granules[0];
        bytes = block.bytes;
    }
    int file = -1;
    const DeviceStatus status = state_.backend.export_memory(state_.device, memory, &file);
    if (status == DeviceStatus::ok) return SharedBlock(device(), bytes, file);
    state_.throw_error(status, "share", "the memory was not exported");
}

void* CachingCore::allocate(std::size_t bytes, StreamHandle stream,
                            DeviceAllocationFailure* failure, Shareable shareable) {
    events::look_for_recorder();
    if (bytes == 0) return nullptr;
    const std::uint64_t capture = captures_.look(stream);
    Lock lock(state_.mutex);
    captures_.remember(stream, capture);
    limits::BudgetRequest budget = BlockSearch::new_budget_request();
    bool is_retry = false;
    Request request;
    Outcome outcome;
    do {
        StreamCache& cache = caches_.of_caller(stream, capture);
        request = shareable == Shareable::yes ? search_.shareable_request_of(bytes)
                                              : search_.request_of(bytes, cache);
        request.is_retry = std::exchange(is_retry, true);
        request.budget = &budget;
        outcome = search_.find(cache, request);
    } while (search_.may_retry(outcome, budget));
    if (outcome.block == nullptr) {
        DeviceAllocationFailure unwanted;
        search_.explain(outcome, request, failure != nullptr ? *failure : unwanted);
        return nullptr;
    }
    const AllocatorWatch::Seen seen = {outcome.block->address, outcome.block->bytes, bytes, stream};
    lock.unlock();
    if (state_.is_watched()) state_.watch.handed_out(seen, outcome.memory);
    return seen.address;
}

std::size_t CachingCore::sleep(SleepContent content) {
    const Lock lock(state_.mutex);
    return sleep_.begin(content);
}

void CachingCore::wake() {
    const Lock lock(state_.mutex);
    limits::BudgetRequest budget;
    while (!sleep_.charge(budget)) {
        bool may_retry = false;
        {
            const Unlocked unlocked(state_.mutex);
            may_retry = budget.may_retry();
        }
        if (!may_retry) sleep_.refuse(budget);
    }
    sleep_.end();
}

void* CachingCore::allocate_scalar(std::size_t bytes, StreamHandle stream,
                                   DeviceAllocationFailure* failure) {
    const std::uint64_t capture = captures_.look(stream);
    Lock lock(state_.mutex);
    captures_.remember(stream, capture);
    StreamCache* cache = &caches_.of_caller(stream, capture);
    if (state_.asleep) {
        search_.explain(Outcome::refused(Outcome::Cause::asleep),
                        search_.request_of(small_grain, *cache), *failure);
        return nullptr;
    }
    limits::BudgetRequest budget = BlockSearch::new_budget_request();
    for (bool is_retry = false; cache->memory.pages == nullptr; is_retry = true) {
        Request request = search_.request_of(small_grain, *cache);
        request.is_retry = is_retry;
        request.budget = &budget;
        Outcome outcome;
        open_page(scalars_, search_, *cache, outcome, request);
        if (outcome.block != nullptr) break;
        if (!search_.may_retry(outcome, budget)) {
            search_.explain(outcome, request, *failure);
            return nullptr;
        }
        cache = &caches_.of_caller(stream, capture);
    }
    void* const address = scalars_.take(*cache, bytes);
    lock.unlock();
    if (state_.is_watched()) {
        state_.watch.handed_out({address, ScalarPage::scalar_bytes, bytes, stream},
                                AllocatorWatch::Memory::recycled);
    }
    return address;
}

void CachingCore::write(void* address, std::span<const std::byte> value, StreamHandle stream) {
    auto* to = static_cast<std::byte*>(address);
    for (auto from = value.begin(); from != value.end();) {
        const auto end = std::find_if(from, value.end(), [&](std::byte b) { return b != *from; });
        const auto bytes = static_cast<std::size_t>(end - from);
        const DeviceStatus status = state_.backend.fill_async(
            state_.device, to, std::to_integer<std::uint8_t>(*from), bytes, stream);
        if (status != DeviceStatus::ok) {
            state_.throw_error(status, "allocate_scalar", "the value was not written");
        }
        from = end;
        to += bytes;
    }
}

void CachingCore::refuse(const DeviceAllocationFailure& failure) {
    throw_failure(failure, state_.backend);
}

// Deallocation, and uses by other streams --------------------------------------------------------

void CachingCore::deallocate(void* address) noexcept {
    if (address == nullptr) return;
    events::look_for_recorder();
    Lock lock(state_.mutex);
    Block* const block = end_use(state_, scalars_, address, lock);
    if (block == nullptr) return;
    if (!state_.deferred.is_empty()) free_.complete();
    if (block->slab->pool == Pool::shareable)
        return put_back_shareable(state_, free_, reclaim_, *block);
    if (block->uses != nullptr) return state_.deferred.defer(*block);
    // Under the allocator's lock the block's home does not change.
    StreamCache& home = *block->home.load(std::memory_order_relaxed);
    const std::lock_guard guard(home);
    home.park(*block);
}

void CachingCore::record_use(void* address, StreamHandle stream) {
    Lock lock(state_.mutex);
    Block& block = block_in_use(state_, address, "record_use");
    StreamQueue& queue = caches_.of_caller(stream, 0).memory.queue;
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    if (home.stream() == stream && !home.memory.dead) return;
    const bool is_new = state_.deferred.add_use(block, queue);
    detail::add(state_.totals.cross_stream_uses, 1);
    if (block.is(BlockState::scalars)) {
        scalars_.close(block);
        lock.unlock();
        return state_.watch.used(
            {address, ScalarPage::scalar_bytes, ScalarPage::scalar_bytes, stream});
    }
    {
        const std::lock_guard guard(home);
        block.set(BlockState::shared);
    }
    const AllocatorWatch::Seen seen = {block.address, block.bytes, block.requested, stream};
    lock.unlock();
    if (is_new) state_.watch.used(seen);
}

std::size_t CachingCore::usable_size(const void* address) const noexcept {
    const Block* const block = state_.heap.find(address);
    if (block == nullptr) return 0;
    if (block->is(BlockState::scalars)) {
        const Lock lock(state_.mutex);
        return Scalars::has(*block, address) ? ScalarPage::scalar_bytes : 0;
    }
    return is_in_use(block, address) ? block->bytes : 0;
}

bool CachingCore::is_used_on(const void* address, StreamHandle stream) const noexcept {
    if (usable_size(address) == 0) return false;
    const Lock lock(state_.mutex);
    const Block& block = *state_.heap.find(address);
    return block.home.load(std::memory_order_relaxed)->stream() == stream ||
           DeferredFrees::has_use(block, stream);
}

BlockIdentity CachingCore::identify(const void* address) const noexcept {
    if (usable_size(address) == 0) return {};
    const Lock lock(state_.mutex);
    const Block& block = *state_.heap.find(address);
    const std::lock_guard guard(*block.home.load(std::memory_order_relaxed));
    return {block.number, block.use_count};
}

// Streams, callbacks -----------------------------------------------------------------------------

std::size_t CachingCore::trim() noexcept {
    const Lock lock(state_.mutex);
    return give_back(max_bytes);
}

/// Gives back up to this many bytes of free memory, without waiting for the device.
std::size_t CachingCore::give_back(std::size_t bytes) noexcept try {
    if (state_.asleep) return 0;
    free_.complete();
    free_.flush_all();
    return captures_.is_any_active() ? 0 : reclaim_.give_back(Reclaim::Which::all, bytes);
} catch (...) {
    return 0;  // no memory for the list of blocks to release
}

void CachingCore::set_hard_limit(double part) {
    check_limit(state_.options, "hard_limit", part);
    const Lock lock(state_.mutex);
    state_.set_limit(state_.hard_limit, state_.totals.limit_bytes, part);
    if (!state_.may_grow(0)) (void)give_back(state_.capacity() - state_.hard_limit);
}

void CachingCore::set_soft_limit(double part) {
    check_limit(state_.options, "soft_limit", part);
    const Lock lock(state_.mutex);
    state_.set_limit(state_.soft_limit, state_.totals.soft_limit_bytes, part);
}

void CachingCore::end_stream(StreamHandle stream) {
    if (stream == nullptr) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: " + state_.options.name +
                              ": end_stream: the default stream ends with its device");
    }
    const Lock lock(state_.mutex);
    captures_.forget(stream);
    caches_.end_stream(stream);
}

void CachingCore::add_callback(std::string name, AllocatorCallback callback) {
    const Lock lock(state_.mutex);
    state_.watch.add(std::move(name), std::move(callback));
    captures_.set_gate();
}

bool CachingCore::remove_callback(std::string_view name) noexcept {
    // Without the lock: destroying the callback may free a block of this allocator.
    const bool removed = state_.watch.remove(name);
    const Lock lock(state_.mutex);
    captures_.set_gate();
    return removed;
}

}  // namespace tensorpool::device
