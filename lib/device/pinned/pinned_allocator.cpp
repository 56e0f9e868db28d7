#include <tensorpool/device/pinned_allocator.hpp>

#include "device/caching/allocator_state.hpp"
#include "device/caching/failure_report.hpp"
#include "device/device_types.hpp"

namespace tensorpool::device {
namespace {

using std::chrono::nanoseconds;

// The time between two looks at copies that hold blocks back. It begins near the time of a short
// copy (4 KiB over PCIe 4 take some 10 us) and doubles up to a thousandth of the default wait.
constexpr nanoseconds shortest_pause = std::chrono::microseconds(10);
constexpr nanoseconds longest_pause = std::chrono::milliseconds(1);

/// Takes out a slab that is one free block, so that it can be released. Returns nullptr if there is
/// none.
Slab* take_free_slab(BlockHeap& heap, StreamCache& slabs) noexcept {
    for (Slab& slab : slabs.memory.slabs) {
        if (!slab.is_all_free()) continue;
        heap.take_out(*slab.first);
        return &slab;
    }
    return nullptr;
}

/// More lanes do not help: a lane's lock is held for some ten instructions.
constexpr unsigned max_lanes = 16;

int validated(Backend& backend, int device, const PinnedOptions& options) {
    const std::string prefix = "tensorpool: pinned allocator '" + options.name + "': ";
    (void)existing_device(backend, device, prefix);
    if (options.largest_slab < slab_step || options.largest_slab % slab_step != 0) {
        throw std::invalid_argument(prefix + "largest_slab is " +
                                    std::to_string(options.largest_slab) +
                                    "; expected a multiple of 2 MiB");
    }
    if (options.pinned_wait.count() < 0) {
        throw std::invalid_argument(prefix + "pinned_wait is " +
                                    std::to_string(options.pinned_wait.count()) +
                                    " ns; expected 0 or more");
    }
    return device;
}

/// Returns the number of the calling thread. Threads are numbered at their first call.
unsigned number_of_thread() noexcept {
    static std::atomic<unsigned> last{0};
    constinit static thread_local unsigned number = 0;
    // Relaxed: the number only has to be unique.
    if (number == 0) [[unlikely]]
        number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return number;
}

/// Blocks above 1 MiB begin and end at multiples of 16 KiB, the granularity of the block map.
constexpr std::size_t round_pinned(std::size_t bytes) noexcept {
    return base::align_up(bytes, bytes <= small_limit ? small_grain : large_grain);
}
static_assert(round_pinned(1) == 512 && round_pinned(513 * mib) == 513 * mib);
static_assert(round_pinned(small_limit + 1) == small_limit + 16 * kib);

Request pinned_request(std::size_t bytes) noexcept {
    return {bytes, round_pinned(std::min(bytes, max_bytes)),
            bytes <= small_limit ? Pool::small : Pool::large, 0};
}

constexpr std::size_t min_slab(const Request& request) noexcept {
    return base::align_up(request.rounded, slab_step);
}
/// The preferred size of a slab: an eighth of what is held already. This keeps slabs few, because
/// the system takes long for each, and at most an eighth of the memory is idle.
constexpr std::size_t preferred_slab(const Request& request, std::size_t held,
                                     std::size_t largest) noexcept {
    if (request.pool == Pool::small) return small_slab_bytes;
    const std::size_t step = std::min(held / 8 / slab_step * slab_step, largest);
    return std::max(min_slab(request), step);
}

}  // namespace

/// The implementation of PinnedAllocator, built from parts of the caching allocator. A freed block
/// that no stream uses is parked in the bins of the *lane* that it was allocated from. There are at
/// most 16 lanes, and each thread uses one. All slabs belong to the heap and serve all lanes. A
/// stream has a queue of blocks that wait for it.
///
/// Order of locks: the allocator's, then a lane's. No lock is taken under a lane's.
class PinnedCore : public SlabAllocator {
public:
    PinnedCore(Backend& of_backend, int of_device, const PinnedOptions& options)
        : SlabAllocator(of_backend, validated(of_backend, of_device, options),
                        DeviceStatistics::Kind::pinned, options),
          options_(options),
          slabs_(nullptr, 0) {
        hard_limit = options.max_bytes;
        detail::add(totals.limit_bytes, hard_limit);
        const unsigned count =
            std::clamp(std::bit_ceil(std::thread::hardware_concurrency()), 1U, max_lanes);
        for (unsigned i = 0; i < count; ++i) {
            lanes_.push_back(std::make_unique<StreamCache>(nullptr, 0));
            lanes_.back()->set_record(&record.add_stream(nullptr));
        }
        detail::add(totals.streams, 0 - std::uint64_t{count});  // lanes are not streams
    }
    ~PinnedCore() {
        (void)backend.synchronize_device(device);
        for (FreeSet& set : slabs_.memory.free) set.clear();
        while (!slabs_.memory.slabs.empty()) {
            Slab& slab = slabs_.memory.slabs.front();
            slabs_.memory.slabs.pop_front();
            (void)backend.deallocate_pinned(device, slab.base, slab.bytes);
            delete &slab;
        }
    }

    /// Returns a parked block for no stream, or nullptr if the slow path is needed.
    void* take_parked(std::size_t bytes) noexcept {
        if (events::is_recording()) [[unlikely]]
            return nullptr;
        Block* const block = lane_of_thread().take(round_pinned(bytes), bytes);
        return block != nullptr ? block->address : nullptr;
    }
    /// Parks the block. Returns false if the slow path is needed.
    bool park(void* address) noexcept {
        Block* const block = heap.find(address);
        if (block == nullptr || block->address != address || events::is_recording()) [[unlikely]] {
            return false;
        }
        // Relaxed: `home` was set before the block's address was returned to the caller.
        StreamCache* const home = block->home.load(std::memory_order_relaxed);
        return home->put(*block) == StreamCache::Put::parked;
    }

    // Slow paths ---------------------------------------------------------------------------------

    void* allocate(std::size_t bytes, StreamHandle stream) {
        events::look_for_recorder();
        if (bytes == 0) return nullptr;
        void* address = nullptr;
        {
            const std::lock_guard guard(mutex);
            StreamCache& lane = lane_of_thread();
            const Request request = pinned_request(bytes);
            address = take(lane, request, stream).address;
        }
        events::record(TraceAction::allocate, record.id(), address, bytes);
        return address;
    }
    void deallocate(void* address) noexcept {
        if (address == nullptr) return;
        events::look_for_recorder();
        Block* const block = heap.find(address);
        if (block == nullptr || block->address != address)
            fail_free(name, name_of_device(), address, block);
        events::record(TraceAction::deallocate, record.id(), address, block->bytes);
        const std::lock_guard guard(mutex);
        StreamCache& home = *block->home.load(std::memory_order_relaxed);
        {
            const std::lock_guard of_home(home);
            if (!is_in_use(block, address)) fail_free(name, name_of_device(), address, block);
            home.count_free(block->requested, block->bytes);
            if (block->uses == nullptr) return home.park(*block);
            block->set(BlockState::leaving);
        }
        deferred.defer(*block);
    }

    StreamCache& lane_of_thread() noexcept {
        return *lanes_[number_of_thread() & (lanes_.size() - 1)];
    }

    // REQUIRES, from here on: the mutex is held. It is released during calls to the system and
    // waits for streams.

    StreamCache& queue_of(StreamHandle stream) {
        if (StreamCache* const known = streams_.find(stream)) return *known;
        queues_.reserve(queues_.size() + 1);
        auto made = std::make_unique<StreamCache>(stream, 0);
        streams_.add(stream, *made);
        queues_.push_back(std::move(made));
        detail::add(totals.streams, 1);
        return *queues_.back();
    }
    /// Returns a block that belongs to the caller. Throws the exception for a failure, and
    /// std::bad_alloc after freeing the block again.
    Block& take(StreamCache& lane, const Request& request, StreamHandle stream) {
        if (stream != nullptr) (void)queue_of(stream);
        Block* block = lane.take(request.rounded, request.bytes);
        if (block == nullptr) {
            limits::BudgetRequest budget_request;
            Request charged = request;
            charged.budget = &budget_request;
            Outcome outcome;
            do {
                outcome = request.bytes > max_bytes ? Outcome::refused(Outcome::Cause::request)
                                                    : obtain(charged);
            } while (ask_holders(outcome, budget_request));
            if (outcome.block == nullptr) refuse(outcome, charged);
            block = outcome.block;
            block->home.store(&lane, std::memory_order_relaxed);
            const std::lock_guard guard(lane);
            lane.count_new(*block, request.bytes);
        }
        if (stream == nullptr) return *block;
        try {
            add_use(*block, stream);
        } catch (...) {
            (void)lane.put(*block);
            throw;
        }
        return *block;
    }
    void add_use(Block& block, StreamHandle stream) {
        (void)deferred.add_use(block, queue_of(stream).memory.queue);
        StreamCache& home = *block.home.load(std::memory_order_relaxed);
        const std::lock_guard guard(home);
        block.set(BlockState::shared);
    }
    /// Inserts blocks whose streams have passed into the sets.
    void complete() noexcept {
        if (deferred.is_empty()) return;
        deferred.begin();
        for (const auto& queue : queues_) {
            while (DeferrableBlock* const block = deferred.next(queue->memory.queue)) {
                heap.put_back(static_cast<Block&>(*block), idle_stamp);
            }
        }
    }
    /// Inserts all blocks that lanes have parked into the sets, where they merge with neighbours.
    void flush() noexcept {
        for (const auto& lane : lanes_) {
            for (Block* next = lane->take_all(); next != nullptr;) {
                Block& block = *next;
                next = block.link;
                totals.let_go(block.bytes);
                heap.put_back(block, idle_stamp);
            }
        }
    }

    /// Waits before a request fails by the limit, as long as copies may free enough for it. Other
    /// threads may allocate and free in the meantime, and take what the copies free.
    Outcome obtain(const Request& request) {
        using Clock = std::chrono::steady_clock;
        Outcome outcome = obtain_now(request);
        if (outcome.block != nullptr || outcome.cause != Outcome::Cause::limit) return outcome;
        Clock::time_point last = Clock::now();
        nanoseconds pause = shortest_pause;
        nanoseconds waited{0};
        while (outcome.block == nullptr && outcome.cause == Outcome::Cause::limit &&
               waited < options_.pinned_wait && copies_may_free(request)) {
            {
                const Unlocked unlocked(mutex);
                std::this_thread::sleep_for(pause);
            }
            outcome = obtain_now(request);
            // At least the pause has passed, even if the clock went back.
            const Clock::time_point now = Clock::now();
            waited += std::max<nanoseconds>(now - last, pause);
            last = now;
            pause = std::min(2 * pause, longest_pause);
        }
        outcome.waited = waited;
        return outcome;
    }
    /// Asks holders, without the lock, if a budget refused the request. Returns whether it may
    /// succeed now.
    bool ask_holders(const Outcome& outcome, limits::BudgetRequest& budget_request) noexcept {
        if (outcome.block != nullptr || outcome.cause != Outcome::Cause::budget) return false;
        const Unlocked unlocked(mutex);
        return budget_request.may_retry();
    }
    /// Whether the memory that callers do not hold is enough for the request, and copies under way
    /// hold some of it back.
    bool copies_may_free(const Request& request) const noexcept {
        const auto held =
            static_cast<std::size_t>(totals.held_bytes.load(std::memory_order_relaxed));
        return held <= hard_limit && request.rounded <= hard_limit - held &&
               std::any_of(queues_.begin(), queues_.end(), [this](const auto& queue) {
                   return deferred.will_free(queue->memory.queue);
               });
    }
    Outcome obtain_now(const Request& request) {
        bool& growing = growing_[static_cast<std::size_t>(request.pool)];
        while (true) {
            if (Block* const block = take_free(request)) return {block};
            if (!growing) break;
            wait_unlocked(grown, mutex);  // another thread's new slab may serve both requests
        }
        const Growing ends(growing, grown);
        const Outcome outcome = grow(request);
        return outcome.block != nullptr ? outcome : under_pressure(request, outcome);
    }
    Block* take_free(const Request& request) {
        complete();
        Block* block = heap.take_best(slabs_, request);
        if (block == nullptr) {
            flush();
            block = heap.take_best(slabs_, request);
        }
        if (block != nullptr) detail::add(totals.free_hits, 1);
        return block;
    }
    Outcome grow(const Request& request) {
        const std::size_t least = min_slab(request);
        const std::size_t preferred = preferred_slab(request, capacity(), options_.largest_slab);
        const Outcome outcome = grow_by(request, preferred);
        const bool may_do = outcome.status == DeviceStatus::out_of_memory && least < preferred;
        if (outcome.block != nullptr || !may_do) return outcome;
        return grow_by(request, least);
    }
    Outcome grow_by(const Request& request, std::size_t bytes) {
        Outcome::Cause limit = Outcome::Cause::limit;
        if (!begin_growth(bytes, *request.budget, limit)) return Outcome::refused(limit);
        void* memory = nullptr;
        DeviceStatus status = DeviceStatus::ok;
        {
            const Unlocked unlocked(mutex);
            status = backend.allocate_pinned(device, bytes, &memory);
        }
        if (status != DeviceStatus::ok) {
            end_growth(bytes, 0);
            return Outcome::failed(status, Outcome::cause_of(status));
        }
        try {
            heap.add_slab(slabs_, request.pool, static_cast<std::byte*>(memory), bytes);
        } catch (...) {
            (void)backend.deallocate_pinned(device, memory, bytes);
            end_growth(bytes, 0);
            throw;
        }
        end_growth(bytes, bytes);
        events::record(TraceAction::slab, record.id(), memory, bytes);
        return {heap.take_best(slabs_, request)};
    }
    /// Releases free slabs to make room. If that fails, cuts a small block from a slab of large
    /// ones.
    Outcome under_pressure(const Request& request, Outcome refused) {
        if (refused.status != DeviceStatus::out_of_memory) return refused;
        Outcome outcome = refused;
        (void)give_back();
        if (Block* const block = take_free(request)) {
            outcome = {block};
        } else {
            outcome = grow_by(request, min_slab(request));
        }
        if (outcome.block == nullptr && request.pool == Pool::small) {
            const Request other = {request.bytes, base::align_up(request.rounded, large_grain),
                                   Pool::large, 0};
            outcome.block = take_free(other);
        }
        if (outcome.block == nullptr) return outcome;
        detail::add(totals.pressures, 1);
        events::write_entry(EntryKind::pressure, LimitKind::none, request.bytes, name);
        return outcome;
    }
    /// Releases all free slabs, without the lock during the calls to the system.
    std::size_t give_back() noexcept {
        std::size_t given = 0;
        while (Slab* const slab = take_free_slab(heap, slabs_)) {
            DeviceStatus status = DeviceStatus::ok;
            {
                const Unlocked unlocked(mutex);
                events::record(TraceAction::slab_end, record.id(), slab->base, slab->bytes);
                status = backend.deallocate_pinned(device, slab->base, slab->bytes);
            }
            if (status != DeviceStatus::ok) {
                events::record(TraceAction::slab, record.id(), slab->base, slab->bytes);
                heap.put_back(*slab->first, idle_stamp);
                break;
            }
            given += slab->bytes;
            count_give_back(slab->bytes);
            heap.remove_slab(*slab);
        }
        if (given != 0) end_give_back(given);
        return given;
    }
    /// Throws the exception for a failure, after all parked blocks were put into the sets. Reports
    /// the machine's memory instead of the device's, because pinned memory is part of it.
    [[noreturn]] void refuse(const Outcome& outcome, const Request& request) {
        DeviceAllocationFailure failure;
        FailureReport report(failure, name, name_of_device(), record.statistics(), hard_limit);
        report.add_free(slabs_);
        for (const auto& queue : queues_) report.add_holder(*queue);
        failure.device_total = platform::total_memory();
        failure.device_free = platform::available_memory();
        failure.waited_ns = static_cast<std::uint64_t>(outcome.waited.count());
        if (outcome.cause == Outcome::Cause::budget) report.add_budgets(*request.budget);
        report.judge(request.bytes, outcome.status, outcome.cause, FailureReport::Room::unknown);
        detail::add(totals.failures, 1);
        events::write_entry(report.entry(), report.limit(), request.bytes, name);
        throw_failure(failure, backend);
    }
    void wait_for(StreamHandle stream) const {
        const DeviceStatus status = backend.synchronize_stream(device, stream);
        if (status != DeviceStatus::ok)
            throw_error(status, "end_stream", "the wait for the stream failed");
    }

    const PinnedOptions options_;
    std::vector<std::unique_ptr<StreamCache>> lanes_;  // their number is a power of two
    // Guarded by the lock:
    StreamTable streams_;
    std::vector<std::unique_ptr<StreamCache>> queues_;  // one for each stream; nothing is parked
    StreamCache slabs_;                                 // home of all slabs and their free blocks
    bool growing_[pool_count] = {};
};

}  // namespace tensorpool::device

namespace tensorpool {

using namespace device;

PinnedAllocator::PinnedAllocator(Backend& backend, int device, const PinnedOptions& options)
    : core_(std::make_unique<device::PinnedCore>(backend, device, options)) {}

PinnedAllocator::~PinnedAllocator() = default;

Device PinnedAllocator::device() const noexcept {
    return core_->name_of_device();
}

void* PinnedAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    if (stream == nullptr) [[likely]] {
        if (void* const block = core_->take_parked(bytes)) [[likely]]
            return block;
    }
    return core_->allocate(bytes, stream);
}

void* PinnedAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept try {
    return PinnedAllocator::allocate(bytes, stream);
} catch (...) {
    return nullptr;
}

void PinnedAllocator::deallocate(void* block) noexcept {
    if (!core_->park(block)) [[unlikely]]
        core_->deallocate(block);
}

void PinnedAllocator::record_use(void* block, StreamHandle stream) {
    if (block == nullptr) return;
    const std::lock_guard guard(core_->mutex);
    Block* const found = core_->heap.find(block);
    if (!is_in_use(found, block))
        throw_not_in_use(core_->name, core_->name_of_device(), "record_use", block);
    core_->add_use(*found, stream);
    detail::add(core_->totals.cross_stream_uses, 1);
}

void* PinnedAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice PinnedAllocator::memory_device() const noexcept {
    if (device().type != DeviceType::cuda) return {};
    return {device::DlpackDeviceType::cuda_host, device().index};
}

std::size_t PinnedAllocator::usable_size(const void* block) const noexcept {
    const Block* const found = core_->heap.find(block);
    return is_in_use(found, block) ? found->bytes : 0;
}

bool PinnedAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    const std::lock_guard guard(core_->mutex);
    const Block* const found = core_->heap.find(block);
    return is_in_use(found, block) && DeferredFrees::has_use(*found, stream);
}

DeviceStatistics PinnedAllocator::statistics() const {
    return core_->record.statistics();
}

std::size_t PinnedAllocator::trim() noexcept {
    const std::lock_guard guard(core_->mutex);
    core_->complete();
    core_->flush();
    return core_->give_back();
}

void PinnedAllocator::set_limit(std::size_t bytes) noexcept {
    const std::lock_guard guard(core_->mutex);
    detail::add(core_->totals.limit_bytes, bytes - core_->hard_limit);
    core_->hard_limit = bytes;
    if (core_->may_grow(0)) return;
    core_->complete();
    core_->flush();
    (void)core_->give_back();
}

void PinnedAllocator::end_stream(StreamHandle stream) {
    core_->wait_for(stream);
    const std::lock_guard guard(core_->mutex);
    StreamCache* const known = core_->streams_.find(stream);
    if (known == nullptr) return;
    StreamQueue& queue = known->memory.queue;
    forget_uses(core_->deferred, core_->slabs_, queue);
    core_->complete();
    core_->deferred.end(
        queue, core_->mutex, [&] { core_->wait_for(stream); },
        [&](DeferrableBlock& block) {
            core_->heap.put_back(static_cast<Block&>(block), idle_stamp);
        });
}

}  // namespace tensorpool
