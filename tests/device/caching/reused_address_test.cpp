#include <gtest/gtest.h>

#include "device/caching/caching_device.hpp"

namespace tensorpool {
namespace {

/// Returns the same address for a new slab while the call that released it is still running.
struct Reusing : test::Device {
    using test::Device::Device;

    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override {
        if (allocator == nullptr) return test::Device::deallocate(device, memory, bytes, kind);
        CachingAllocator& next = *allocator;
        allocator = nullptr;
        again = memory;
        block = next.allocate(4096, stream());
        return DeviceStatus::ok;
    }
    DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                          void** memory) noexcept override {
        if (again == nullptr) return test::Device::allocate(device, bytes, kind, memory);
        *memory = again;
        again = nullptr;
        return DeviceStatus::ok;
    }

    CachingAllocator* allocator = nullptr;
    void* again = nullptr;
    void* block = nullptr;
};

TEST(ReusedAddress, OfAReleasedSlabMapsToTheNewSlab) {
    Reusing backend(test::unwatched(test::device_with(test::Slabs::plain)));
    CachingAllocator allocator(backend, 0);
    void* const first = allocator.allocate(4096);
    allocator.deallocate(first);
    backend.allocator = &allocator;
    EXPECT_EQ(allocator.trim(), 2 * test::mib);
    ASSERT_EQ(backend.block, first);
    EXPECT_EQ(allocator.usable_size(first), 4096U);
    allocator.deallocate(first);
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool
