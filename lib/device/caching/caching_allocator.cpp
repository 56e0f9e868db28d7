#include <tensorpool/device/caching_allocator.hpp>

#include "device/caching/block_search.hpp"
#include "device/caching/sleep.hpp"
#include "device/device_types.hpp"

namespace tensorpool::device {
namespace {

using Lock = std::unique_lock<std::mutex>;

/// Whether a block has a slab of its own, which other processes can open.
enum class Shareable : bool { no, yes };

}  // namespace

/// The parts of a CachingAllocator: a fast path through a stream's bins, and behind it one lock
/// under which the parts find, make and release blocks. Any thread.
class CachingCore {
public:
    CachingCore(Backend& backend, int device, const CachingOptions& options)
        : state(backend, device, options) {
        (void)caches.of(nullptr, 0);
        captures.set_gate();
    }
    ~CachingCore() {
        (void)state.backend.synchronize_device(state.device);
        for (const auto& cache : state.caches) growth.end_slabs(*cache);
        growth.end_slabs(captures.reserved());
    }

    /// The key of the stream, by which all other functions know it.
    StreamHandle key_of(StreamHandle stream) const noexcept { return state.calls.key_of(stream); }

    /// Returns a block that its stream parked, or nullptr if the slow path is needed.
    [[gnu::always_inline]] void* take_parked(std::size_t bytes, StreamHandle stream) noexcept {
        if (state.is_gated()) [[unlikely]]
            return take_parked_unless_captured(bytes, stream);
        StreamCache* const cache = state.streams.find(stream);
        if (cache == nullptr) [[unlikely]]
            return nullptr;
        Block* const block = cache->take(round_bytes(bytes), bytes);
        return block != nullptr ? block->address : nullptr;
    }
    /// Parks the block. Returns false if the slow path is needed.
    [[gnu::always_inline]] bool park(void* address) noexcept {
        Block* const block = state.heap.find(address);
        if (block == nullptr || block->address != address || state.is_watched()) [[unlikely]] {
            return false;
        }
        // Relaxed: `home` was set before the block's address was returned to the caller. If it has
        // changed since, `put` notices under the stream's lock.
        StreamCache* const home = block->home.load(std::memory_order_relaxed);
        return home->put(*block) == StreamCache::Put::parked;
    }

    // Slow paths ---------------------------------------------------------------------------------

    /// Returns the block in use at the address. Throws DeviceError if there is none.
    Block& block_in_use(void* address, const char* call) const {
        Block* const block = state.heap.find(address);
        if (block != nullptr && block->is(BlockState::scalars) && Scalars::has(*block, address)) {
            return *block;
        }
        if (!is_in_use(block, address))
            throw_not_in_use(state.name, state.name_of_device(), call, address);
        return *block;
    }
    [[gnu::noinline]] void* allocate(std::size_t bytes, StreamHandle stream, Shareable shareable) {
        events::look_for_recorder();
        if (bytes == 0) return nullptr;
        const std::uint64_t capture = captures.look(stream);
        Lock lock(state.mutex);
        captures.remember(stream, capture);
        limits::BudgetRequest budget = BlockSearch::new_budget_request();
        bool is_retry = false;
        Request request;
        Outcome outcome;
        do {
            StreamCache& cache = caches.of_caller(stream, capture);
            request = shareable == Shareable::yes ? search.shareable_request_of(bytes)
                                                  : search.request_of(bytes, cache);
            request.is_retry = std::exchange(is_retry, true);
            request.budget = &budget;
            outcome = search.find(cache, request);
        } while (search.may_retry(outcome, budget));
        if (outcome.block == nullptr) search.refuse(outcome, request);
        const AllocatorWatch::Seen seen = {outcome.block->address, outcome.block->bytes, bytes,
                                           stream};
        lock.unlock();
        if (state.is_watched()) state.watch.handed_out(seen, outcome.memory);
        return seen.address;
    }
    void* allocate_scalar(std::size_t bytes, StreamHandle stream) {
        const std::uint64_t capture = captures.look(stream);
        Lock lock(state.mutex);
        captures.remember(stream, capture);
        StreamCache* cache = &caches.of_caller(stream, capture);
        if (state.asleep) {
            search.refuse(Outcome::refused(Outcome::Cause::asleep),
                          search.request_of(small_grain, *cache));
        }
        limits::BudgetRequest budget = BlockSearch::new_budget_request();
        for (bool is_retry = false; cache->memory.pages == nullptr; is_retry = true) {
            Request request = search.request_of(small_grain, *cache);
            request.is_retry = is_retry;
            request.budget = &budget;
            Outcome outcome;
            open_page(*cache, outcome, request);
            if (outcome.block != nullptr) break;
            if (!search.may_retry(outcome, budget)) search.refuse(outcome, request);
            cache = &caches.of_caller(stream, capture);
        }
        void* const address = scalars.take(*cache, bytes);
        lock.unlock();
        if (state.is_watched()) {
            state.watch.handed_out({address, ScalarPage::scalar_bytes, bytes, stream},
                                   AllocatorWatch::Memory::recycled);
        }
        return address;
    }
    /// Submits fills that write the value to the stream. Throws DeviceError.
    void write(void* address, std::span<const std::byte> value, StreamHandle stream) {
        auto* to = static_cast<std::byte*>(address);
        for (auto from = value.begin(); from != value.end();) {
            const auto end =
                std::find_if(from, value.end(), [&](std::byte b) { return b != *from; });
            const auto bytes = static_cast<std::size_t>(end - from);
            const DeviceStatus status = state.backend.fill_async(
                state.device, to, std::to_integer<std::uint8_t>(*from), bytes, stream);
            if (status != DeviceStatus::ok) {
                state.throw_error(status, "allocate_scalar", "the value was not written");
            }
            from = end;
            to += bytes;
        }
    }
    [[gnu::noinline]] void deallocate(void* address) noexcept {
        if (address == nullptr) return;
        events::look_for_recorder();
        Lock lock(state.mutex);
        Block* const block = end_use(address, lock);
        if (block == nullptr) return;
        if (!state.deferred.is_empty()) free.complete();
        if (block->slab->pool == Pool::shareable) return put_back_shareable(*block);
        if (block->uses != nullptr) return state.deferred.defer(*block);
        // Under the allocator's lock the block's home does not change.
        StreamCache& home = *block->home.load(std::memory_order_relaxed);
        const std::lock_guard guard(home);
        home.park(*block);
    }
    /// Gives back up to this many bytes of free memory, without waiting for the device.
    std::size_t give_back(std::size_t bytes) noexcept try {
        if (state.asleep) return 0;
        free.complete();
        free.flush_all();
        return captures.is_any_active() ? 0 : reclaim.give_back(Reclaim::Which::all, bytes);
    } catch (...) {
        return 0;  // no memory for the list of blocks to release
    }

    AllocatorState state;
    Scalars scalars{state};
    FreeBlocks free{state, scalars};
    Captures captures{state};
    StreamCaches caches{state, free, scalars};
    Reclaim reclaim{state, free, captures};
    Growth growth{state, reclaim, captures};
    Sleep sleep{state, free, captures, reclaim};
    BlockSearch search{state, free, captures, caches, reclaim, growth};

private:
    /// Makes a page of scalars of a block that the search returns.
    void open_page(StreamCache& cache, Outcome& outcome, const Request& request) {
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
    void free_scalar(Block& block, void* address) noexcept {
        if (!Scalars::has(block, address))
            fail_free(state.name, state.name_of_device(), address, &block);
        if (state.is_watched()) {
            const StreamHandle stream = block.home.load(std::memory_order_relaxed)->stream();
            const Unlocked unlocked(state.mutex);
            state.watch.freed(
                {address, ScalarPage::scalar_bytes, ScalarPage::scalar_bytes, stream});
        }
        scalars.free(block, address);
    }
    /// Ends the use of a block and notifies all observers. Returns nullptr for a scalar, which is
    /// freed.
    Block* end_use(void* address, Lock& lock) noexcept {
        Block* const block = state.heap.find(address);
        if (block != nullptr && block->is(BlockState::scalars)) {
            free_scalar(*block, address);
            return nullptr;
        }
        if (block == nullptr || block->address != address)
            fail_free(state.name, state.name_of_device(), address, block);
        {
            StreamCache& home = *block->home.load(std::memory_order_relaxed);
            const std::lock_guard guard(home);
            if (!block->is(BlockState::in_use) && !block->is(BlockState::shared)) {
                fail_free(state.name, state.name_of_device(), address, block);
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
    void put_back_shareable(Block& block) noexcept {
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
    [[gnu::noinline]] void* take_parked_unless_captured(std::size_t bytes,
                                                        StreamHandle stream) noexcept {
        const bool sleeps =
            (state.gate.load(std::memory_order_relaxed) & AllocatorState::sleeping) != 0;
        if (sleeps || state.is_watched() || captures.of(stream) != 0) return nullptr;
        StreamCache* const cache = state.streams.find(stream);
        Block* const block = cache != nullptr ? cache->take(round_bytes(bytes), bytes) : nullptr;
        return block != nullptr ? block->address : nullptr;
    }
};

}  // namespace tensorpool::device

namespace tensorpool {

using namespace device;

CachingAllocator::CachingAllocator(Backend& backend, int device, const CachingOptions& options)
    : core_(std::make_unique<device::CachingCore>(backend, device, options)) {}

CachingAllocator::~CachingAllocator() = default;

Device CachingAllocator::device() const noexcept {
    return core_->state.name_of_device();
}

// Allocation -------------------------------------------------------------------------------------

void* CachingAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    stream = core_->key_of(stream);
    if (void* const block = core_->take_parked(bytes, stream)) [[likely]]
        return block;
    return core_->allocate(bytes, stream, Shareable::no);
}

void* CachingAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept try {
    return CachingAllocator::allocate(bytes, stream);
} catch (...) {
    return nullptr;
}

void* CachingAllocator::allocate_shareable(std::size_t bytes, StreamHandle stream) {
    if (core_->state.options.exportable)
        return core_->allocate(bytes, core_->key_of(stream), Shareable::yes);
    throw DeviceError(DeviceStatus::not_supported,
                      "tensorpool: " + core_->state.name +
                          ": allocate_shareable: found an allocator without, expected one with "
                          "the option exportable");
}

SharedBlock CachingAllocator::share(void* address) const {
    MemoryHandle memory = nullptr;
    std::size_t bytes = 0;
    {
        const Lock lock(core_->state.mutex);
        const Block& block = core_->block_in_use(address, "share");
        if (block.slab->pool != Pool::shareable) {
            throw DeviceError(DeviceStatus::invalid_argument,
                              "tensorpool: " + core_->state.name + ": share: " + to_text(address) +
                                  " is a block in a slab with others, expected "
                                  "one of allocate_shareable");
        }
        memory = block.slab->granules[0];
        bytes = block.bytes;
    }
    int file = -1;
    const DeviceStatus status =
        core_->state.backend.export_memory(core_->state.device, memory, &file);
    if (status == DeviceStatus::ok) return SharedBlock(device(), bytes, file);
    core_->state.throw_error(status, "share", "the memory was not exported");
}

void* CachingAllocator::allocate_scalar(std::size_t bytes, StreamHandle stream) {
    if (bytes == 0 || bytes > ScalarPage::scalar_bytes) {
        throw std::invalid_argument("tensorpool: allocate_scalar: bytes is " +
                                    std::to_string(bytes) + "; expected 1 to 8");
    }
    return core_->allocate_scalar(bytes, core_->key_of(stream));
}

void* CachingAllocator::allocate_scalar(std::span<const std::byte> value, StreamHandle stream) {
    void* const scalar = allocate_scalar(value.size(), stream);
    try {
        core_->write(scalar, value, core_->key_of(stream));
    } catch (...) {
        deallocate(scalar);
        throw;
    }
    return scalar;
}

// Deallocation, and uses by other streams --------------------------------------------------------

void CachingAllocator::deallocate(void* block) noexcept {
    if (!core_->park(block)) [[unlikely]]
        core_->deallocate(block);
}

void CachingAllocator::record_use(void* address, StreamHandle stream) {
    if (address == nullptr) return;
    stream = core_->key_of(stream);
    Lock lock(core_->state.mutex);
    Block& block = core_->block_in_use(address, "record_use");
    StreamQueue& queue = core_->caches.of_caller(stream, 0).memory.queue;
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    if (home.stream() == stream && !home.memory.dead) return;
    const bool is_new = core_->state.deferred.add_use(block, queue);
    detail::add(core_->state.totals.cross_stream_uses, 1);
    if (block.is(BlockState::scalars)) {
        core_->scalars.close(block);
        lock.unlock();
        return core_->state.watch.used(
            {address, ScalarPage::scalar_bytes, ScalarPage::scalar_bytes, stream});
    }
    {
        const std::lock_guard guard(home);
        block.set(BlockState::shared);
    }
    const AllocatorWatch::Seen seen = {block.address, block.bytes, block.requested, stream};
    lock.unlock();
    if (is_new) core_->state.watch.used(seen);
}

void* CachingAllocator::host_pointer(void* block) const noexcept {
    return core_->state.backend.host_pointer(core_->state.device, block);
}

SourceDevice CachingAllocator::memory_device() const noexcept {
    SourceDevice device = device::dlpack_device(core_->state.name_of_device());
    const bool is_managed = core_->state.options.storage == StorageKind::managed;
    if (device.type == device::DlpackDeviceType::cuda && is_managed) {
        device.type = device::DlpackDeviceType::cuda_managed;
    }
    return device;
}

std::size_t CachingAllocator::usable_size(const void* address) const noexcept {
    const Block* const block = core_->state.heap.find(address);
    if (block == nullptr) return 0;
    if (block->is(BlockState::scalars)) {
        const Lock lock(core_->state.mutex);
        return Scalars::has(*block, address) ? ScalarPage::scalar_bytes : 0;
    }
    return is_in_use(block, address) ? block->bytes : 0;
}

bool CachingAllocator::is_used_on(const void* address, StreamHandle stream) const noexcept {
    stream = core_->key_of(stream);
    if (usable_size(address) == 0) return false;
    const Lock lock(core_->state.mutex);
    const Block& block = *core_->state.heap.find(address);
    return block.home.load(std::memory_order_relaxed)->stream() == stream ||
           DeferredFrees::has_use(block, stream);
}

BlockIdentity CachingAllocator::identify(const void* address) const noexcept {
    if (usable_size(address) == 0) return {};
    const Lock lock(core_->state.mutex);
    const Block& block = *core_->state.heap.find(address);
    const std::lock_guard guard(*block.home.load(std::memory_order_relaxed));
    return {block.number, block.use_count};
}

DeviceStatistics CachingAllocator::statistics() const {
    return core_->state.record.statistics();
}

// Limits, streams, callbacks ---------------------------------------------------------------------

std::size_t CachingAllocator::trim() noexcept {
    const Lock lock(core_->state.mutex);
    return core_->give_back(max_bytes);
}

void CachingAllocator::set_hard_limit(double part) {
    check_limit(core_->state.options, "hard_limit", part);
    const Lock lock(core_->state.mutex);
    core_->state.set_limit(core_->state.hard_limit, core_->state.totals.limit_bytes, part);
    if (!core_->state.may_grow(0))
        (void)core_->give_back(core_->state.capacity() - core_->state.hard_limit);
}

void CachingAllocator::set_soft_limit(double part) {
    check_limit(core_->state.options, "soft_limit", part);
    const Lock lock(core_->state.mutex);
    core_->state.set_limit(core_->state.soft_limit, core_->state.totals.soft_limit_bytes, part);
}

void CachingAllocator::end_stream(StreamHandle stream) {
    stream = core_->key_of(stream);
    if (stream == nullptr) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: " + core_->state.name +
                              ": end_stream: the default stream ends with its device");
    }
    const Lock lock(core_->state.mutex);
    core_->captures.forget(stream);
    core_->caches.end_stream(stream);
}

void CachingAllocator::add_callback(std::string name, AllocatorCallback callback) {
    const Lock lock(core_->state.mutex);
    core_->state.watch.add(std::move(name), std::move(callback));
    core_->captures.set_gate();
}

bool CachingAllocator::remove_callback(std::string_view name) noexcept {
    // Without the lock: destroying the callback may free a block of this allocator.
    const bool removed = core_->state.watch.remove(name);
    const Lock lock(core_->state.mutex);
    core_->captures.set_gate();
    return removed;
}

std::size_t CachingAllocator::sleep(SleepContent content) {
    const Lock lock(core_->state.mutex);
    return core_->sleep.begin(content);
}

void CachingAllocator::wake() {
    const Lock lock(core_->state.mutex);
    limits::BudgetRequest budget;
    while (!core_->sleep.charge(budget)) {
        bool may_retry = false;
        {
            const Unlocked unlocked(core_->state.mutex);
            may_retry = budget.may_retry();
        }
        if (!may_retry) core_->sleep.refuse(budget);
    }
    core_->sleep.end();
}

// Captures ---------------------------------------------------------------------------------------

void CachingAllocator::reserve_for_capture(std::size_t bytes) {
    if (bytes == 0) return;
    const Lock lock(core_->state.mutex);
    limits::BudgetRequest budget = BlockSearch::new_budget_request();
    const Request request = {.bytes = bytes,
                             .rounded = base::align_up(bytes, slab_step),
                             .pool = Pool::small,
                             .budget = &budget};
    Outcome outcome;
    do {
        outcome = core_->search.reserve(request);
    } while (core_->search.may_retry(outcome, budget));
    if (outcome.status != DeviceStatus::ok) core_->search.refuse(outcome, request);
}

void CachingAllocator::begin_capture() noexcept {
    const Lock lock(core_->state.mutex);
    core_->captures.begin();
}

void CachingAllocator::end_capture() noexcept {
    const Lock lock(core_->state.mutex);
    core_->captures.end();
}

void CachingAllocator::release_capture(std::uint64_t id) {
    if (Captures::is_pool(id)) return;
    {
        const Lock lock(core_->state.mutex);
        core_->captures.forget_capture(id);
        if (!core_->caches.has_capture(id)) return;
    }
    const DeviceStatus status = core_->state.backend.synchronize_device(core_->state.device);
    if (status != DeviceStatus::ok)
        core_->state.throw_error(status, "release_capture", "the wait for the device failed");
    const Lock lock(core_->state.mutex);
    detail::add(core_->state.totals.synchronizations, 1);
    core_->free.complete();
    core_->caches.end_capture(id);
}

void CachingAllocator::begin_capture_pool(CapturePool pool,
                                          std::function<bool(StreamHandle)> takes_part) {
    const Lock lock(core_->state.mutex);
    core_->captures.begin_pool(pool, std::move(takes_part));
}

void CachingAllocator::end_capture_pool(CapturePool pool) {
    const Lock lock(core_->state.mutex);
    if (const std::uint64_t number = core_->captures.end_pool(pool)) {
        // It may have been released before, and have been used since.
        if (!core_->captures.knows(number)) core_->caches.release_pool(number);
        return;
    }
    throw std::invalid_argument("tensorpool: " + core_->state.name +
                                ": end_capture_pool: found the pool (" +
                                std::to_string(pool.first) + ", " + std::to_string(pool.second) +
                                "), expected one that begin_capture_pool began");
}

void CachingAllocator::release_capture_pool(CapturePool pool) noexcept {
    const Lock lock(core_->state.mutex);
    const std::uint64_t number = core_->captures.give_up_pool(pool);
    if (number != 0) core_->caches.release_pool(number);
}

}  // namespace tensorpool
