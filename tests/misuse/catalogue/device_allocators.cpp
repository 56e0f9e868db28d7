// Misuse of allocators for devices, here for the processor as a device. They check all frees, and
// have no modes.

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/host_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/stream_ordered_allocator.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

constexpr Outcome device_error = "throws runtime_error";

HostBackend& backend() {
    static HostBackend& made = *new HostBackend;
    return made;
}
template <class Allocator>
Allocator& allocator() {
    static Allocator& made = *new Allocator(backend(), 0);
    return made;
}
template <>
HostAllocator& allocator<HostAllocator>() {
    static HostAllocator& made =
        *new HostAllocator(backend(), {DeviceType::cpu, 0}, system_memory_source());
    return made;
}

template <class Allocator>
void free_foreign() {
    alignas(64) char mine[128];
    allocator<Allocator>().deallocate(hidden(mine));
}
template <class Allocator>
void free_interior() {
    allocator<Allocator>().deallocate(plus(allocator<Allocator>().allocate(4096), 8));
}
template <class Allocator>
void free_twice() {
    void* const p = allocator<Allocator>().allocate(4096);
    allocator<Allocator>().deallocate(p);
    allocator<Allocator>().deallocate(hidden(p));
}
template <class Allocator>
void use_foreign() {
    int mine = 0;
    allocator<Allocator>().record_use(hidden(&mine), nullptr);
}
void free_in_wrong_allocator() {
    allocator<PinnedAllocator>().deallocate(hidden(allocator<CachingAllocator>().allocate(4096)));
}
void free_part_of_a_scalar() {
    CachingAllocator& caching = allocator<CachingAllocator>();
    caching.deallocate(plus(caching.allocate_scalar(8), 4));
}
void free_scalar_twice() {
    CachingAllocator& caching = allocator<CachingAllocator>();
    void* const p = caching.allocate_scalar(8);
    (void)caching.allocate_scalar(8);
    caching.deallocate(p);
    caching.deallocate(hidden(p));
}
void free_block_of_a_handle() {
    CachingAllocator& caching = allocator<CachingAllocator>();
    const PooledAllocation handle(caching, 4096, StreamHandle());
    caching.deallocate(hidden(handle.get()));
}
void use_freed() {
    CachingAllocator& caching = allocator<CachingAllocator>();
    void* const p = caching.allocate(4096);
    caching.deallocate(p);
    caching.record_use(hidden(p), nullptr);
}
void query_size_of_interior() {
    CachingAllocator& caching = allocator<CachingAllocator>();
    expect_harmless(caching.usable_size(plus(caching.allocate(4096), 8)) == 0);
}
void share_ordinary_block() {
    CachingAllocator& caching = allocator<CachingAllocator>();
    (void)caching.share(caching.allocate(4096));
}
void allocate_too_large_scalar() {
    (void)allocator<CachingAllocator>().allocate_scalar(9);
}
void make_for_missing_device() {
    const CachingAllocator impossible(backend(), 7);
}
void write_beyond_allocation() {
    DeviceAllocation allocation(16);
    const std::byte bytes[17] = {};
    allocation.set(0, bytes);
}

constexpr Case cases[] = {
    {"caching_free_foreign", free_foreign<CachingAllocator>, always(foreign_free)},
    {"caching_free_interior", free_interior<CachingAllocator>, always(interior_free)},
    {"caching_double_free", free_twice<CachingAllocator>, always(double_free)},
    {"caching_free_of_a_handles_block", free_block_of_a_handle, always(double_free)},
    {"caching_free_part_of_a_scalar", free_part_of_a_scalar, always(interior_free)},
    {"caching_double_free_of_a_scalar", free_scalar_twice, always(double_free)},
    {"caching_record_use_of_foreign", use_foreign<CachingAllocator>, always(device_error)},
    {"caching_record_use_of_freed", use_freed, always(device_error)},
    {"caching_usable_size_of_interior", query_size_of_interior, always(harmless)},
    {"caching_share_of_ordinary_block", share_ordinary_block, always(device_error)},
    {"caching_scalar_of_9_B", allocate_too_large_scalar, always(invalid_argument)},
    {"caching_for_missing_device", make_for_missing_device, always(invalid_argument)},
    {"pinned_free_foreign", free_foreign<PinnedAllocator>, always(foreign_free)},
    {"pinned_free_interior", free_interior<PinnedAllocator>, always(interior_free)},
    {"pinned_double_free", free_twice<PinnedAllocator>, always(double_free)},
    {"pinned_free_of_other_allocators_block", free_in_wrong_allocator, always(foreign_free)},
    {"pinned_record_use_of_foreign", use_foreign<PinnedAllocator>, always(device_error)},
    {"host_free_foreign", free_foreign<HostAllocator>, always(foreign_free)},
    {"host_free_interior", free_interior<HostAllocator>, always(foreign_free)},
    {"host_double_free", free_twice<HostAllocator>, always(foreign_free)},
    {"host_record_use_of_foreign", use_foreign<HostAllocator>, always(device_error)},
    {"stream_ordered_free_foreign", free_foreign<StreamOrderedAllocator>, always(foreign_free)},
    {"stream_ordered_double_free", free_twice<StreamOrderedAllocator>, always(foreign_free)},
    {"stream_ordered_record_use_of_foreign", use_foreign<StreamOrderedAllocator>,
     always(device_error)},
    {"device_allocation_written_beyond_its_end", write_beyond_allocation,
     always("throws out_of_range")},
};

}  // namespace

std::span<const Case> device_allocators() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
