#include "device/caching/allocator_state.hpp"

#include "events/timeline.hpp"

namespace tensorpool::device {
namespace {

std::size_t granule_bytes(const DeviceAbilities& abilities, const CachingOptions& options) {
    const bool grows = options.expandable && abilities.virtual_memory && abilities.granularity != 0;
    const bool plain = options.storage == StorageKind::private_storage;
    return grows && plain ? base::align_up(slab_step, abilities.granularity) : 0;
}

}  // namespace

AllocatorState::AllocatorState(Backend& of_backend, int of_device, const CachingOptions& with)
    : backend(of_backend),
      device(validated(of_backend, of_device, with)),
      options(with),
      abilities(of_backend.abilities(of_device)),
      calls(of_backend, of_device),
      captures_under_way(of_backend.captures_under_way()),
      granule(granule_bytes(abilities, with)),
      record(with.name, DeviceStatistics::Kind::caching, {of_backend.type(), of_device}),
      totals(record.totals()),
      budget(with.budget),
      watch(of_backend, {of_backend.type(), of_device}, with, record),
      heap(totals),
      events(of_backend, of_device),
      deferred(of_backend, of_device, events, totals) {
    if (abilities.late_free_size) (void)backend.settle_memory(device);
    DeviceMemoryInfo info;
    if (backend.memory_info(device, info) == DeviceStatus::ok) total_bytes = info.total_bytes;
    const bool in_large_steps = !options.keep_near_peak && total_bytes >= large_device_bytes;
    large_granule =
        in_large_steps && granule != 0 ? std::max(large_granule_bytes, granule) : granule;
    if (in_large_steps) {
        xlarge_bytes = abilities.unified_memory ? xlarge_unified_slab_bytes : xlarge_slab_bytes;
    }
    recommended_bytes =
        abilities.recommended_bytes != 0 ? abilities.recommended_bytes : total_bytes;
    set_limit(hard_limit, totals.limit_bytes, options.hard_limit);
    set_limit(soft_limit, totals.soft_limit_bytes, options.soft_limit);
}

void AllocatorState::set_limit(std::size_t& limit, detail::Counter& counter, double part) noexcept {
    const auto bytes = static_cast<std::size_t>(static_cast<double>(recommended_bytes) * part);
    detail::add(counter, bytes - limit);
    limit = bytes;
}

void AllocatorState::throw_error(DeviceStatus status, const char* call, const char* what) const {
    throw DeviceError(status, "tensorpool: " + options.name + " on " + to_string(name_of_device()) +
                                  ": " + call + ": " + what + ": " + to_string(status) + ": " +
                                  backend.last_error());
}

std::size_t AllocatorState::goal(const Request& request, unsigned sixteenths) const noexcept {
    const std::uint64_t held = totals.held_bytes.load(std::memory_order_relaxed) + request.rounded;
    const std::uint64_t most =
        std::max(held, totals.peak_held_bytes.load(std::memory_order_relaxed));
    return static_cast<std::size_t>(most + most / 16 * sixteenths);
}

namespace {

constinit thread_local unsigned callbacks_under_way = 0;

[[noreturn]] void refuse_callback(const std::string& name, const char* why) {
    throw std::invalid_argument("tensorpool: add_callback: \"" + name + "\": " + why);
}

}  // namespace

bool AllocatorWatch::is_in_callback() noexcept {
    return callbacks_under_way != 0;
}

AllocatorWatch::AllocatorWatch(Backend& backend, Device device, const CachingOptions& options,
                               OwnedDeviceRecord& record)
    : backend_(backend),
      device_(device),
      timeline_(options.timeline),
      watches_blocks_(backend.abilities(device.index).watches_blocks),
      name_(options.name),
      record_(record) {}

void AllocatorWatch::add(std::string name, AllocatorCallback callback) {
    if (name.empty() || !callback) {
        refuse_callback(name, name.empty() ? "it has no name; expected one"
                                           : "it has no function; expected one");
    }
    const std::lock_guard guard(mutex_);
    auto next =
        callbacks_ ? std::make_shared<Callbacks>(*callbacks_) : std::make_shared<Callbacks>();
    const auto has_name = [&](const auto& entry) { return entry.first == name; };
    if (std::any_of(next->begin(), next->end(), has_name)) {
        refuse_callback(name, "the name is taken; expected another one");
    }
    next->emplace_back(std::move(name), std::move(callback));
    callbacks_ = std::move(next);
}

bool AllocatorWatch::remove(std::string_view name) noexcept try {
    std::shared_ptr<const Callbacks> former;  // destroyed after the lock is released: its
                                              // destructor may call this allocator
    const std::lock_guard guard(mutex_);
    if (!callbacks_) return false;
    auto next = std::make_shared<Callbacks>(*callbacks_);
    const auto is_it = [&](const auto& entry) { return entry.first == name; };
    if (std::erase_if(*next, is_it) == 0) return false;
    former = std::move(callbacks_);
    if (!next->empty()) callbacks_ = std::move(next);
    return true;
} catch (...) {
    return false;  // no memory for the new list
}

void AllocatorWatch::add_callback_names(DeviceAllocationFailure& failure) const noexcept {
    const std::shared_ptr<const Callbacks> all = callbacks();
    if (!all) return;
    base::FixedText text(failure.callbacks, sizeof failure.callbacks);
    const char* between = "";
    for (const auto& [name, callback] : *all) {
        text.add("%s%s", between, name.c_str());
        between = ", ";
    }
}

bool AllocatorWatch::wants_all() const noexcept {
    const std::lock_guard guard(mutex_);
    return callbacks_ != nullptr || timeline_ != TimelineSet::none || watches_blocks_;
}

std::shared_ptr<const AllocatorWatch::Callbacks> AllocatorWatch::callbacks() const noexcept {
    const std::lock_guard guard(mutex_);
    return callbacks_;
}

void AllocatorWatch::notify(AllocatorEvent::Kind kind, const Seen& block) noexcept {
    const std::shared_ptr<const Callbacks> all = callbacks();
    if (!all) return;
    const AllocatorEvent event = {kind, device_, block.address, block.bytes, block.stream};
    ++callbacks_under_way;
    for (const auto& [name, callback] : *all) callback(event);
    --callbacks_under_way;
}

void AllocatorWatch::note(BlockNote::Kind kind, const Seen& block) noexcept {
    if (!watches_blocks_) return;
    backend_.note_block({kind, device_.index, block.address, block.bytes, block.stream});
}

void AllocatorWatch::write(EntryKind kind, std::size_t bytes, LimitKind limit) const noexcept {
    events::write_entry(kind, limit, bytes, name_);
}

void AllocatorWatch::keep(TimelineSet part, EntryKind kind, std::size_t bytes) noexcept {
    if (!contains(timeline_, part)) return;
    if (contains(timeline_, TimelineSet::large_only) && bytes <= small_limit) return;
    write(kind, bytes);
}

void AllocatorWatch::keep_profile() noexcept {
    if (!contains(timeline_, TimelineSet::profile)) return;
    const std::uint64_t in_use = record_.statistics().in_use_bytes;
    // Relaxed: the thread that raises the value writes the entry; no other data depends on it.
    std::uint64_t last = profiled_.load(std::memory_order_relaxed);
    while (in_use > last + last / 16) {
        if (profiled_.compare_exchange_weak(last, in_use, std::memory_order_relaxed)) {
            return write(EntryKind::profile, in_use);
        }
    }
}

void AllocatorWatch::handed_out(const Seen& block, Memory memory) noexcept {
    const bool fresh = memory == Memory::fresh;
    note(BlockNote::Kind::allocated, block);
    events::record_device_block(record_.id(), block.stream, block.address, block.requested);
    keep(fresh ? TimelineSet::allocations : TimelineSet::recycles,
         fresh ? EntryKind::allocation : EntryKind::recycle, block.bytes);
    keep_profile();
    notify(fresh ? AllocatorEvent::Kind::allocated : AllocatorEvent::Kind::recycled, block);
}

void AllocatorWatch::freed(const Seen& block) noexcept {
    events::record(block.deferred ? TraceAction::defer : TraceAction::deallocate, record_.id(),
                   block.address, block.bytes);
    note(BlockNote::Kind::freed, block);
    keep(TimelineSet::releases, EntryKind::release, block.bytes);
    notify(AllocatorEvent::Kind::freed, block);
}

void AllocatorWatch::used(const Seen& block) noexcept {
    note(BlockNote::Kind::used, block);
}

void AllocatorWatch::reusable(const Seen& block) noexcept {
    if (block.requested != 0) {
        events::record(TraceAction::deallocate, record_.id(), block.address, block.bytes);
    }
    note(BlockNote::Kind::reusable, block);
}

void AllocatorWatch::gained(const void* address, std::size_t bytes) const noexcept {
    events::record(TraceAction::slab, record_.id(), address, bytes);
}

void AllocatorWatch::losing(const void* address, std::size_t bytes) const noexcept {
    events::record(TraceAction::slab_end, record_.id(), address, bytes);
}

void AllocatorWatch::refused(std::size_t bytes) const noexcept {
    events::record(TraceAction::refuse, record_.id(), nullptr, bytes);
}

void AllocatorWatch::released(void* address, std::size_t bytes, StreamHandle stream) noexcept {
    notify(AllocatorEvent::Kind::released, {address, bytes, bytes, stream});
}

void AllocatorWatch::failing(std::size_t bytes, StreamHandle stream) noexcept {
    notify(AllocatorEvent::Kind::allocation_failed, {nullptr, bytes, bytes, stream});
}

namespace {

constexpr double largest_part = 2;

[[noreturn]] void refuse(const CachingOptions& options, const std::string& what) {
    throw std::invalid_argument("tensorpool: caching allocator '" + options.name + "': " + what);
}

bool has_storage(const DeviceAbilities& abilities, StorageKind kind) {
    if (kind == StorageKind::shared) return abilities.shared_storage;
    return kind == StorageKind::private_storage || abilities.managed_storage;
}

void check_exportable(const CachingOptions& options, const DeviceAbilities& abilities) {
    if (!options.expandable || options.storage != StorageKind::private_storage) {
        refuse(options, "exportable is set; expected expandable slabs of private storage with it");
    }
    if (abilities.exportable_memory) return;
    refuse(options,
           "exportable is set; expected a device with exportable memory, found one without");
}

}  // namespace

void check_limit(const CachingOptions& options, const char* name, double part) {
    if (part >= 0 && part <= largest_part) return;  // false for NaN
    refuse(options, std::string(name) + " is " + std::to_string(part) +
                        "; expected 0 for no limit, or up to 2 times what the device recommends");
}

int validated(Backend& backend, int device, const CachingOptions& options) {
    const int count = backend.device_count();
    if (device < 0 || device >= count) {
        refuse(options, "device is " + std::to_string(device) + "; there are " +
                            std::to_string(count) + " of type " + to_string(backend.type()));
    }
    check_limit(options, "hard_limit", options.hard_limit);
    check_limit(options, "soft_limit", options.soft_limit);
    if (options.hard_limit != 0 && options.soft_limit > options.hard_limit) {
        refuse(options, "soft_limit is " + std::to_string(options.soft_limit) +
                            "; expected at most the hard_limit, " +
                            std::to_string(options.hard_limit));
    }
    if (options.oversize_bytes <= small_limit) {
        refuse(options, "oversize_bytes is " + std::to_string(options.oversize_bytes) +
                            "; expected more than 1 MiB, the largest size of small blocks");
    }
    if (!has_storage(backend.abilities(device), options.storage)) {
        refuse(options, "the device does not have storage of the requested kind");
    }
    if (options.exportable) check_exportable(options, backend.abilities(device));
    return device;
}

}  // namespace tensorpool::device
