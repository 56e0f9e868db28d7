#include "device/pinned/pinned_core.hpp"

#include <thread>

#include "device/caching/failure_report.hpp"
#include "device/dlpack_devices.hpp"

namespace tensorpool::device {
namespace {

/// More lanes do not help: a lane's lock is held for some ten instructions.
constexpr unsigned max_lanes = 16;

int validated(Backend& backend, int device, const PinnedOptions& options) {
    const std::string prefix = "tensorpool: pinned allocator '" + options.name + "': ";
    const int count = backend.device_count();
    if (device < 0 || device >= count) {
        throw std::invalid_argument(prefix + "device is " + std::to_string(device) +
                                    "; there are " + std::to_string(count) + " of type " +
                                    to_string(backend.type()));
    }
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

void wait_for(Backend& backend, Device device, StreamHandle stream, const std::string& name) {
    const DeviceStatus status = backend.synchronize_stream(device.index, stream);
    if (status == DeviceStatus::ok) return;
    throw DeviceError(status, "tensorpool: " + name + " on " + to_string(device) +
                                  ": end_stream: the wait for the stream failed: " +
                                  to_string(status) + ": " + backend.last_error());
}

}  // namespace

PinnedCore::PinnedCore(Backend& backend, int device, const PinnedOptions& options)
    : backend_(backend),
      device_(validated(backend, device, options)),
      options_(options),
      record_(options.name, DeviceStatistics::Kind::pinned, {backend.type(), device}),
      totals_(record_.totals()),
      budget_(options.budget),
      heap_(totals_),
      events_(backend, device),
      deferred_(backend, device, events_, totals_),
      slabs_(nullptr, 0),
      limit_(options.max_bytes) {
    detail::add(totals_.limit_bytes, limit_);
    const unsigned count =
        std::clamp(std::bit_ceil(std::thread::hardware_concurrency()), 1U, max_lanes);
    for (unsigned i = 0; i < count; ++i) {
        lanes_.push_back(std::make_unique<StreamCache>(nullptr, 0));
        lanes_.back()->set_record(&record_.add_stream(nullptr));
    }
    detail::add(totals_.streams, 0 - std::uint64_t{count});  // lanes are not streams
}

PinnedCore::~PinnedCore() {
    (void)backend_.synchronize_device(device_);
    for (FreeSet& set : slabs_.memory.free) set.clear();
    while (!slabs_.memory.slabs.empty()) {
        Slab& slab = slabs_.memory.slabs.front();
        slabs_.memory.slabs.pop_front();
        (void)backend_.deallocate_pinned(device_, slab.base, slab.bytes);
        delete &slab;
    }
    budget_.refund(
        static_cast<std::size_t>(totals_.capacity_bytes.load(std::memory_order_relaxed)));
}

StreamCache& PinnedCore::lane_of_thread() noexcept {
    return *lanes_[number_of_thread() & (lanes_.size() - 1)];
}

StreamCache& PinnedCore::queue_of(StreamHandle stream) {
    if (StreamCache* const known = streams_.find(stream)) return *known;
    queues_.reserve(queues_.size() + 1);
    auto made = std::make_unique<StreamCache>(stream, 0);
    streams_.add(stream, *made);
    queues_.push_back(std::move(made));
    detail::add(totals_.streams, 1);
    return *queues_.back();
}

// Allocation -------------------------------------------------------------------------------------

void* PinnedCore::allocate(std::size_t bytes, StreamHandle stream,
                           DeviceAllocationFailure& failure) {
    events::look_for_recorder();
    if (bytes == 0) return nullptr;
    void* address = nullptr;
    {
        const std::lock_guard guard(mutex_);
        StreamCache& lane = lane_of_thread();
        const Request request = pinned_request(bytes);
        Block* const block = take(lane, request, stream, failure);
        if (block == nullptr) return nullptr;
        address = block->address;
    }
    events::record(TraceAction::allocate, record_.id(), address, bytes);
    return address;
}

/// Returns a block that belongs to the caller. Throws std::bad_alloc after freeing it again.
Block* PinnedCore::take(StreamCache& lane, const Request& request, StreamHandle stream,
                        DeviceAllocationFailure& failure) {
    if (stream != nullptr) (void)queue_of(stream);
    Block* block = lane.take(request.rounded, request.bytes);
    if (block == nullptr) {
        limits::BudgetRequest budget;
        Request charged = request;
        charged.budget = &budget;
        Outcome outcome;
        do {
            outcome = request.bytes > max_bytes
                          ? Outcome{nullptr, DeviceStatus::out_of_memory, Cause::request}
                          : obtain(charged);
        } while (ask_holders(outcome, budget));
        if (outcome.block == nullptr) {
            explain(outcome, charged, failure);
            return nullptr;
        }
        block = outcome.block;
        block->home.store(&lane, std::memory_order_relaxed);
        const std::lock_guard guard(lane);
        lane.count_new(*block, request.bytes);
    }
    if (stream == nullptr) return block;
    try {
        add_use(*block, stream);
    } catch (...) {
        (void)lane.put(*block);
        throw;
    }
    return block;
}

void PinnedCore::add_use(Block& block, StreamHandle stream) {
    (void)deferred_.add_use(block, queue_of(stream).memory.queue);
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    const std::lock_guard guard(home);
    block.set(BlockState::shared);
}

// Deallocation -----------------------------------------------------------------------------------

void PinnedCore::deallocate(void* address) noexcept {
    if (address == nullptr) return;
    events::look_for_recorder();
    Block* const block = heap_.find(address);
    if (block == nullptr || block->address != address)
        fail_free(options_.name, device(), address, block);
    events::record(TraceAction::deallocate, record_.id(), address, block->bytes);
    const std::lock_guard guard(mutex_);
    StreamCache& home = *block->home.load(std::memory_order_relaxed);
    {
        const std::lock_guard of_home(home);
        if (!is_in_use(block, address)) fail_free(options_.name, device(), address, block);
        home.count_free(block->requested, block->bytes);
        if (block->uses == nullptr) return home.park(*block);
        block->set(BlockState::leaving);
    }
    deferred_.defer(*block);
}

/// Inserts blocks whose streams have passed into the sets.
void PinnedCore::complete() noexcept {
    if (deferred_.is_empty()) return;
    deferred_.begin();
    for (const auto& queue : queues_) {
        while (DeferrableBlock* const block = deferred_.next(queue->memory.queue)) {
            heap_.put_back(static_cast<Block&>(*block), idle_stamp);
        }
    }
}

/// Inserts all blocks that lanes have parked into the sets, where they merge with neighbours.
void PinnedCore::flush() noexcept {
    for (const auto& lane : lanes_) {
        for (Block* next = lane->take_all(); next != nullptr;) {
            Block& block = *next;
            next = block.link;
            totals_.let_go(block.bytes);
            heap_.put_back(block, idle_stamp);
        }
    }
}

}  // namespace tensorpool::device

namespace tensorpool {

using namespace device;

PinnedAllocator::PinnedAllocator(Backend& backend, int device, const PinnedOptions& options)
    : core_(std::make_unique<device::PinnedCore>(backend, device, options)) {}

PinnedAllocator::~PinnedAllocator() = default;

Device PinnedAllocator::device() const noexcept {
    return core_->device();
}

void* PinnedAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    if (stream == nullptr) [[likely]] {
        if (void* const block = core_->take_parked(bytes)) [[likely]]
            return block;
    }
    DeviceAllocationFailure failure;
    void* const block = core_->allocate(bytes, stream, failure);
    if (block == nullptr && bytes != 0) throw_failure(failure, core_->backend_);
    return block;
}

void* PinnedAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept {
    if (stream == nullptr) [[likely]] {
        if (void* const block = core_->take_parked(bytes)) [[likely]]
            return block;
    }
    try {
        DeviceAllocationFailure failure;
        return core_->allocate(bytes, stream, failure);
    } catch (...) {
        return nullptr;  // no memory for records
    }
}

void PinnedAllocator::deallocate(void* block) noexcept {
    if (!core_->park(block)) [[unlikely]]
        core_->deallocate(block);
}

void PinnedAllocator::record_use(void* block, StreamHandle stream) {
    if (block == nullptr) return;
    const std::lock_guard guard(core_->mutex_);
    Block* const found = core_->heap_.find(block);
    if (!is_in_use(found, block))
        throw_not_in_use(core_->options_.name, core_->device(), "record_use", block);
    core_->add_use(*found, stream);
    detail::add(core_->totals_.cross_stream_uses, 1);
}

void* PinnedAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice PinnedAllocator::memory_device() const noexcept {
    if (device().type != DeviceType::cuda) return {};
    return {device::DlpackDeviceType::cuda_host, device().index};
}

std::size_t PinnedAllocator::usable_size(const void* block) const noexcept {
    const Block* const found = core_->heap_.find(block);
    return is_in_use(found, block) ? found->bytes : 0;
}

bool PinnedAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    const std::lock_guard guard(core_->mutex_);
    const Block* const found = core_->heap_.find(block);
    return is_in_use(found, block) && DeferredFrees::has_use(*found, stream);
}

DeviceStatistics PinnedAllocator::statistics() const {
    return core_->record_.statistics();
}

std::size_t PinnedAllocator::trim() noexcept {
    const std::lock_guard guard(core_->mutex_);
    core_->complete();
    core_->flush();
    return core_->give_back();
}

void PinnedAllocator::set_limit(std::size_t bytes) noexcept {
    const std::lock_guard guard(core_->mutex_);
    detail::add(core_->totals_.limit_bytes, bytes - core_->limit_);
    core_->limit_ = bytes;
    if (core_->may_grow(0)) return;
    core_->complete();
    core_->flush();
    (void)core_->give_back();
}

void PinnedAllocator::end_stream(StreamHandle stream) {
    wait_for(core_->backend_, core_->device(), stream, core_->options_.name);
    const std::lock_guard guard(core_->mutex_);
    StreamCache* const known = core_->streams_.find(stream);
    if (known == nullptr) return;
    StreamQueue& queue = known->memory.queue;
    forget_uses(core_->deferred_, core_->slabs_, queue);
    core_->complete();
    core_->deferred_.end(
        queue, core_->mutex_,
        [&] { wait_for(core_->backend_, core_->device(), stream, core_->options_.name); },
        [&](DeferrableBlock& block) {
            core_->heap_.put_back(static_cast<Block&>(block), idle_stamp);
        });
}

}  // namespace tensorpool
