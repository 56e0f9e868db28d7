#include "device/caching/caching_core.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "device/caching/failure_report.hpp"
#include "device/caching/pressure.hpp"
#include "device/call_errors.hpp"

namespace tensorpool::device {

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
        const Block& block = block_in_use(address, "share");
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
    limits::BudgetRequest budget = new_budget_request();
    bool is_retry = false;
    Request request;
    Outcome outcome;
    do {
        StreamCache& cache = caches_.of_caller(stream, capture);
        request =
            shareable == Shareable::yes ? shareable_request_of(bytes) : request_of(bytes, cache);
        request.is_retry = std::exchange(is_retry, true);
        request.budget = &budget;
        outcome = find(cache, request);
    } while (may_retry(outcome, budget));
    if (outcome.block == nullptr) {
        DeviceAllocationFailure unwanted;
        explain(outcome, request, failure != nullptr ? *failure : unwanted);
        return nullptr;
    }
    const AllocatorWatch::Seen seen = {outcome.block->address, outcome.block->bytes, bytes, stream};
    lock.unlock();
    if (state_.is_watched()) state_.watch.handed_out(seen, outcome.memory);
    return seen.address;
}

// A callback may run during a growth for which other threads wait, so its requests ask no holder.
limits::BudgetRequest CachingCore::new_budget_request() noexcept {
    return AllocatorWatch::is_in_callback() ? limits::BudgetRequest::beyond_soft()
                                            : limits::BudgetRequest();
}

/// Asks holders, without the lock, if a budget refused the request. Returns whether it may succeed
/// now.
bool CachingCore::may_retry(const Outcome& outcome, limits::BudgetRequest& budget) const noexcept {
    const bool is_refused = outcome.lacks_memory() && outcome.cause == Outcome::Cause::budget;
    if (!is_refused || AllocatorWatch::is_in_callback()) return false;
    const Unlocked unlocked(state_.mutex);
    return budget.may_retry();
}

/// Returns a block that belongs to the caller and is counted.
Outcome CachingCore::find(StreamCache& cache, const Request& request) {
    if (is_too_large(request.bytes)) {
        return Outcome::failed(DeviceStatus::out_of_memory, Outcome::Cause::request);
    }
    Outcome outcome;
    const bool shareable = request.pool == Pool::shareable;
    if (!shareable && !state_.asleep) outcome.block = cache.take(request.rounded, request.bytes);
    if (outcome.block != nullptr) return outcome;
    outcome = obtain(cache, request);
    if (outcome.block == nullptr) return outcome;
    const std::lock_guard guard(cache);
    cache.count_new(*outcome.block, request.bytes);
    if (shareable) outcome.block->set(BlockState::shared);  // its free is no fast one
    return outcome;
}

Request CachingCore::request_of(std::size_t bytes, const StreamCache& cache) const noexcept {
    // At least `slab_step`, so that a block can serve the request its slab was made for.
    const std::size_t slack = std::max(state_.options.oversize_slack_bytes, slab_step);
    Request request = {bytes, round_bytes(bytes), Pool::small, slack, false};
    const bool alone =
        !state_.is_expandable(cache) && request.rounded >= state_.options.oversize_bytes;
    // A capture has one pool, so that memory reserved for it serves all sizes.
    if (bytes > small_limit && cache.capture() == 0)
        request.pool = alone ? Pool::oversize : Pool::large;
    return request;
}

/// True also for sizes that the device can never have, so that no tables of granules are made for
/// them. Managed storage may exceed the device: the excess is in host memory.
bool CachingCore::is_too_large(std::size_t bytes) const noexcept {
    const auto exceeds = [&](std::size_t limit) { return limit != 0 && bytes > limit; };
    return bytes > max_bytes || exceeds(state_.options.max_allocation) ||
           exceeds(state_.abilities.largest_allocation) ||
           (state_.options.storage != StorageKind::managed && exceeds(state_.total_bytes));
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

/// Returns a block from the sets, from the device, or after memory pressure was relieved.
Outcome CachingCore::obtain(StreamCache& cache, const Request& request) {
    const auto pool = static_cast<std::size_t>(request.pool);
    while (true) {
        if (state_.asleep) return asleep();
        Outcome outcome;
        outcome.block = free_.take(cache, request);
        if (outcome.block != nullptr) return outcome;
        if (take_over_dead(cache)) continue;
        // A callback may run during that very growth, so it must not wait for it.
        if (!cache.memory.growing[pool] || AllocatorWatch::is_in_callback()) break;
        // The slab that another thread is allocating may serve both.
        wait_unlocked(state_.grown, state_.mutex);
    }
    reclaim_.give_back_shareable();
    reclaim_.mark_caller(cache);
    Request growth = request;
    growth.repeats = cache.memory.growths.repeats(request.rounded);
    const Outcome outcome = growth_.grow(cache, growth);
    if (!outcome.lacks_memory()) return outcome;
    return Pressure(state_, free_, growth_, reclaim_, cache, request).relieve(outcome);
}

/// Moves the memory of dead streams to the cache, and that of released pools to their streams,
/// after one wait for the device. Returns whether there may be some.
bool CachingCore::take_over_dead(StreamCache& cache) {
    if (!caches_.has_dead() || captures_.is_any_active()) return false;
    StreamCache& to = cache.capture() == 0 ? cache : caches_.of(nullptr, 0);
    caches_.prepare_end_of_dead();
    StreamCache* const dead = caches_.take_dead();
    if (!reclaim_.wait_for_device()) {
        caches_.put_back_dead(dead);
        return false;
    }
    caches_.end_dead(dead, to);
    return true;
}

void* CachingCore::allocate_scalar(std::size_t bytes, StreamHandle stream,
                                   DeviceAllocationFailure* failure) {
    const std::uint64_t capture = captures_.look(stream);
    Lock lock(state_.mutex);
    captures_.remember(stream, capture);
    StreamCache* cache = &caches_.of_caller(stream, capture);
    if (state_.asleep) {
        explain(asleep(), request_of(small_grain, *cache), *failure);
        return nullptr;
    }
    limits::BudgetRequest budget = new_budget_request();
    for (bool is_retry = false; cache->memory.pages == nullptr; is_retry = true) {
        Request request = request_of(small_grain, *cache);
        request.is_retry = is_retry;
        request.budget = &budget;
        Outcome outcome;
        open_page(*cache, outcome, request);
        if (outcome.block != nullptr) break;
        if (!may_retry(outcome, budget)) {
            explain(outcome, request, *failure);
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

void CachingCore::open_page(StreamCache& cache, Outcome& outcome, const Request& request) {
    ScalarPage& page = scalars_.take_record();
    try {
        outcome = obtain(cache, request);
    } catch (...) {
        scalars_.give_record(page);
        throw;
    }
    if (outcome.block == nullptr) return scalars_.give_record(page);
    scalars_.open(cache, *outcome.block, page);
}

/// Fills in the failure. Memory counts as free if it is in the sets or parked by a stream.
void CachingCore::explain(const Outcome& outcome, const Request& request,
                          DeviceAllocationFailure& failure) {
    FailureReport report(failure, state_.options.name, device(), state_.record.statistics(),
                         state_.hard_limit);
    for (const auto& cache : state_.caches) {
        report.add_free(*cache);
        report.add_holder(*cache);
    }
    state_.watch.add_callback_names(failure);
    DeviceMemoryInfo info;
    if (state_.backend.memory_info(state_.device, info) == DeviceStatus::ok) {
        failure.device_free = info.free_bytes;
        failure.device_total = info.total_bytes;
        const std::size_t known = info.free_bytes + failure.capacity;
        failure.other_processes = info.total_bytes - std::min(info.total_bytes, known);
    }
    if (outcome.cause == Outcome::Cause::budget) report.add_budgets(*request.budget);
    report.judge(request.bytes, outcome.status, outcome.cause, FailureReport::Room::certain);
    detail::add(state_.totals.failures, 1);
    state_.watch.refused(request.bytes);
    state_.watch.write(report.entry(), request.bytes, report.limit());
}

void CachingCore::refuse(const DeviceAllocationFailure& failure) {
    throw_failure(failure, state_.backend);
}

// Deallocation, and uses by other streams --------------------------------------------------------

void CachingCore::deallocate(void* address) noexcept {
    if (address == nullptr) return;
    events::look_for_recorder();
    Lock lock(state_.mutex);
    Block* const block = end_use(address, lock);
    if (block == nullptr) return;
    if (!state_.deferred.is_empty()) free_.complete();
    if (block->slab->pool == Pool::shareable) return put_back_shareable(*block);
    if (block->uses != nullptr) return state_.deferred.defer(*block);
    // Under the allocator's lock the block's home does not change.
    StreamCache& home = *block->home.load(std::memory_order_relaxed);
    const std::lock_guard guard(home);
    home.park(*block);
}

/// Gives the memory of a freed block back to the device, or leaves that to a later call while
/// work uses it.
void CachingCore::put_back_shareable(Block& block) noexcept {
    if (block.uses != nullptr) {
        state_.deferred.defer(block);
        free_.complete();
    } else {
        const StreamCache& home = *block.home.load(std::memory_order_relaxed);
        state_.totals.let_go(block.bytes);
        state_.heap.put_back(block, home.memory.marks.stamp());
    }
    reclaim_.give_back_shareable();
}

/// Ends the use of a block and notifies all observers. Returns nullptr for a scalar, which is
/// freed.
Block* CachingCore::end_use(void* address, Lock& lock) noexcept {
    Block* const block = state_.heap.find(address);
    if (block != nullptr && block->is(BlockState::scalars)) {
        free_scalar(*block, address);
        return nullptr;
    }
    if (block == nullptr || block->address != address)
        fail_free(state_.options.name, device(), address, block);
    {
        StreamCache& home = *block->home.load(std::memory_order_relaxed);
        const std::lock_guard guard(home);
        if (!block->is(BlockState::in_use) && !block->is(BlockState::shared)) {
            fail_free(state_.options.name, device(), address, block);
        }
        block->set(BlockState::leaving);
        home.count_free(block->requested, block->bytes);
    }
    if (state_.is_watched()) {
        const StreamHandle stream = block->home.load(std::memory_order_relaxed)->stream();
        const bool deferred = block->uses != nullptr;
        lock.unlock();
        state_.watch.freed({block->address, block->bytes, block->requested, stream, deferred});
        lock.lock();
    }
    return block;
}

void CachingCore::free_scalar(Block& block, void* address) noexcept {
    if (!Scalars::has(block, address)) fail_free(state_.options.name, device(), address, &block);
    if (state_.is_watched()) {
        const StreamHandle stream = block.home.load(std::memory_order_relaxed)->stream();
        const Unlocked unlocked(state_.mutex);
        state_.watch.freed({address, ScalarPage::scalar_bytes, ScalarPage::scalar_bytes, stream});
    }
    scalars_.free(block, address);
}

/// Returns the block in use at the address. Throws DeviceError if there is none.
Block& CachingCore::block_in_use(void* address, const char* call) const {
    Block* const block = state_.heap.find(address);
    if (block != nullptr && block->is(BlockState::scalars) && Scalars::has(*block, address)) {
        return *block;
    }
    const bool in_use = block != nullptr && block->address == address &&
                        (block->is(BlockState::in_use) || block->is(BlockState::shared));
    if (!in_use) throw_not_in_use(state_.options.name, device(), call, address);
    return *block;
}

void CachingCore::record_use(void* address, StreamHandle stream) {
    Lock lock(state_.mutex);
    Block& block = block_in_use(address, "record_use");
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
    const bool in_use = block->address == address &&
                        (block->is(BlockState::in_use) || block->is(BlockState::shared));
    return in_use ? block->bytes : 0;
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

// Streams, captures, callbacks -------------------------------------------------------------------

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

void CachingCore::begin_capture() noexcept {
    const Lock lock(state_.mutex);
    captures_.begin();
}

void CachingCore::end_capture() noexcept {
    const Lock lock(state_.mutex);
    captures_.end();
}

bool CachingCore::reserve_for_capture(std::size_t bytes, DeviceAllocationFailure& failure) {
    const Lock lock(state_.mutex);
    limits::BudgetRequest budget = new_budget_request();
    const Request request = {.bytes = bytes,
                             .rounded = base::align_up(bytes, slab_step),
                             .pool = Pool::small,
                             .budget = &budget};
    Outcome outcome;
    do {
        outcome =
            is_too_large(bytes) ? Outcome::refused(Outcome::Cause::request) : reserve(request);
    } while (may_retry(outcome, budget));
    if (outcome.status == DeviceStatus::ok) return true;
    explain(outcome, request, failure);
    return false;
}

Outcome CachingCore::reserve(const Request& request) {
    if (state_.asleep) return asleep();
    Outcome outcome = growth_.reserve(request);
    if (outcome.lacks_memory()) {
        free_.complete();
        free_.flush_all();
        (void)reclaim_.give_back(Reclaim::Which::all, max_bytes);
        reclaim_.settle_memory();
        outcome = growth_.reserve(request);
    }
    if (outcome.lacks_memory()) {
        (void)reclaim_.synchronize();
        outcome = growth_.reserve(request);
    }
    return outcome;
}

void CachingCore::release_capture(std::uint64_t id) {
    if (Captures::is_pool(id)) return;
    {
        const Lock lock(state_.mutex);
        captures_.forget_capture(id);
        if (!caches_.has_capture(id)) return;
    }
    const DeviceStatus status = state_.backend.synchronize_device(state_.device);
    if (status != DeviceStatus::ok)
        state_.throw_error(status, "release_capture", "the wait for the device failed");
    const Lock lock(state_.mutex);
    detail::add(state_.totals.synchronizations, 1);
    free_.complete();
    caches_.end_capture(id);
}

void CachingCore::begin_capture_pool(CapturePool pool, CaptureFilter takes_part) {
    const Lock lock(state_.mutex);
    captures_.begin_pool(pool, std::move(takes_part));
}

void CachingCore::end_capture_pool(CapturePool pool) {
    const Lock lock(state_.mutex);
    if (const std::uint64_t number = captures_.end_pool(pool)) {
        // It may have been released before, and have been used since.
        if (!captures_.knows(number)) caches_.release_pool(number);
        return;
    }
    throw std::invalid_argument("tensorpool: " + state_.options.name +
                                ": end_capture_pool: found the pool (" +
                                std::to_string(pool.first) + ", " + std::to_string(pool.second) +
                                "), expected one that begin_capture_pool began");
}

void CachingCore::release_capture_pool(CapturePool pool) noexcept {
    const Lock lock(state_.mutex);
    const std::uint64_t number = captures_.give_up_pool(pool);
    if (number != 0) caches_.release_pool(number);
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
