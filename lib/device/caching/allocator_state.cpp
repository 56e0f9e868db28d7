#include "device/caching/allocator_state.hpp"

#include <string>

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

}  // namespace tensorpool::device
