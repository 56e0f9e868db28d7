#include "device/caching/caching_core.hpp"

#include "device/caching/validate_caching.hpp"

namespace tensorpool::device {
namespace {

std::size_t granule_bytes(const DeviceAbilities& abilities, const CachingOptions& options) {
    const bool grows = options.expandable && abilities.virtual_memory && abilities.granularity != 0;
    const bool plain = options.storage == StorageKind::private_storage;
    return grows && plain ? base::align_up(slab_step, abilities.granularity) : 0;
}

}  // namespace

CachingCore::CachingCore(Backend& backend, int device, const CachingOptions& options)
    : backend_(backend),
      device_(validated(backend, device, options)),
      options_(options),
      abilities_(backend.abilities(device)),
      granule_(granule_bytes(abilities_, options)),
      place_(options.name, DeviceStatistics::Kind::caching, {backend.type(), device}),
      totals_(place_.totals()),
      watch_(backend, {backend.type(), device}, options, place_),
      heap_(totals_),
      events_(backend, device),
      deferred_(backend, device, events_, totals_),
      reserved_(nullptr, 0) {
    if (abilities_.late_free_size) (void)backend_.settle_memory(device_);
    DeviceMemoryInfo info;
    if (backend_.memory_info(device_, info) == DeviceStatus::ok) total_bytes_ = info.total_bytes;
    const std::size_t recommended =
        abilities_.recommended_bytes != 0 ? abilities_.recommended_bytes : total_bytes_;
    hard_limit_ = static_cast<std::size_t>(static_cast<double>(recommended) * options.hard_limit);
    soft_limit_ = static_cast<std::size_t>(static_cast<double>(recommended) * options.soft_limit);
    detail::add(totals_.limit_bytes, hard_limit_);
    detail::add(totals_.soft_limit_bytes, soft_limit_);
    (void)cache_of(nullptr, 0);
    set_gate();
}

CachingCore::~CachingCore() {
    (void)backend_.synchronize_device(device_);
    for (const auto& cache : caches_) end_slabs(*cache);
    end_slabs(reserved_);
}

/// Gives back whatever lies in them. Records of blocks go with the heap.
void CachingCore::end_slabs(StreamCache& cache) noexcept {
    for (FreeSet& set : cache.memory.free) set.clear();
    while (!cache.memory.slabs.empty()) {
        Slab& slab = cache.memory.slabs.front();
        cache.memory.slabs.pop_front();
        if (slab.is_expandable()) {
            end_range(slab);
        } else {
            (void)backend_.deallocate(device_, slab.base, slab.bytes, options_.storage);
        }
        delete &slab;
    }
}

void CachingCore::end_range(Slab& slab) noexcept {
    slab.holes.clear();
    const std::size_t count = slab.bytes / slab.granule;
    for (std::size_t i = 0; i < count; ++i) {
        if (slab.granules[i] == nullptr) continue;
        (void)backend_.unmap_memory(device_, slab.base + i * slab.granule, slab.granule);
        (void)backend_.destroy_memory(device_, slab.granules[i]);
    }
    (void)backend_.release_addresses(device_, slab.base, slab.bytes);
}

/// REQUIRES: the lock, or nobody else knows the allocator.
void CachingCore::set_gate() noexcept {
    const bool asks = abilities_.graph_capture &&
                      (options_.captures == CaptureDetection::asked || announced_captures_ != 0);
    const unsigned gate =
        (watch_.wants_all() ? unsigned{watched} : 0U) | (asks ? unsigned{captures} : 0U);
    gate_.store(gate, std::memory_order_relaxed);
}

std::uint64_t CachingCore::add_callback(AllocatorCallback callback) {
    const Lock lock(mutex_);
    const std::uint64_t number = watch_.add(std::move(callback));
    set_gate();
    return number;
}

bool CachingCore::remove_callback(std::uint64_t number) noexcept {
    // Without the lock: what goes with the callback may be a block of this allocator.
    const bool removed = watch_.remove(number);
    const Lock lock(mutex_);
    set_gate();
    return removed;
}

}  // namespace tensorpool::device
