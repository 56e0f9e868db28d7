// Contract: allocators over any backend: a caching one with memory of each kind of storage, and a
// stream-ordered one.

#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/stream_ordered_allocator.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t bytes = std::size_t{64} << 10;

bool is_there(const DeviceAbilities& abilities, StorageKind kind) {
    if (kind == StorageKind::private_storage) return true;
    return kind == StorageKind::shared ? abilities.shared_storage : abilities.managed_storage;
}

/// Calls `body` with an allocator of each kind of storage that the device has.
template <class Body>
void for_each_kind(Backend& backend, int device, Body body) {
    for (const StorageKind kind :
         {StorageKind::private_storage, StorageKind::shared, StorageKind::managed}) {
        if (!is_there(backend.abilities(device), kind)) continue;
        SCOPED_TRACE("storage kind " + std::to_string(static_cast<int>(kind)));
        CachingAllocator allocator(backend, device, {.storage = kind});
        body(allocator, kind);
        EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
        EXPECT_EQ(allocator.statistics().failures, 0U);
    }
}

bool host_accesses(const DeviceAbilities& abilities, StorageKind kind) {
    return kind != StorageKind::private_storage || abilities.unified_memory;
}

}  // namespace

TEST_P(BackendContract, CachingHandlesOwnMemoryOfEachStorageKind) {
    for_each_kind(backend(), device, [&](CachingAllocator& allocator, StorageKind kind) {
        const StreamHandle stream = make_stream();
        PooledAllocation one(allocator, bytes);
        PooledAllocation other(allocator, 3 * mib, stream);
        EXPECT_EQ(one.size(), bytes);
        EXPECT_TRUE(allocator.is_used_on(other.get(), stream));
        EXPECT_EQ(one.device(), allocator.memory_device());
        EXPECT_EQ(one.host_pointer() != nullptr, host_accesses(abilities(), kind));
        write(one.get(), pattern(bytes));
        write(other.get(), pattern(3 * mib, 7));
        EXPECT_TRUE(read(one.get(), bytes) == pattern(bytes));
        EXPECT_TRUE(read(other.get(), 3 * mib) == pattern(3 * mib, 7));
        std::thread([moved = std::move(one)] {}).join();
        EXPECT_EQ(one.get(), nullptr);
    });
}

TEST_P(BackendContract, HostAccessesCachedSharedAndManagedStorage) {
    for_each_kind(backend(), device, [&](CachingAllocator& allocator, StorageKind kind) {
        if (!host_accesses(abilities(), kind)) {
            const PooledAllocation handle(allocator, bytes);
            EXPECT_THROW((void)handle.as<unsigned char>(), std::invalid_argument);
            return;
        }
        const PooledAllocation handle(allocator, bytes);
        const auto on_host = handle.as<unsigned char>();
        ASSERT_EQ(on_host.size(), bytes);
        ASSERT_EQ(backend().fill(device, handle.get(), 0x5a, bytes), DeviceStatus::ok);
        EXPECT_EQ(on_host[bytes - 1], 0x5a);
        on_host[77] = 7;
        EXPECT_EQ(read(static_cast<char*>(handle.get()) + 77, 1), Bytes{7});
    });
}

TEST_P(BackendContract, FreedCachedMemoryOfEachStorageKindServesItsStreamAgain) {
    for_each_kind(backend(), device, [&](CachingAllocator& allocator, StorageKind) {
        const StreamHandle stream = make_stream();
        PooledAllocation first(allocator, bytes, stream);
        void* const address = first.get();
        ASSERT_EQ(backend().fill_async(device, address, 1, bytes, stream), DeviceStatus::ok);
        first.reset();
        const PooledAllocation second(allocator, bytes, stream);
        EXPECT_EQ(second.get(), address);
        ASSERT_EQ(backend().fill_async(device, address, 2, bytes, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
        EXPECT_TRUE(read(address, bytes) == Bytes(bytes, 2));
    });
}

TEST_P(BackendContract, FreeCachedMemoryOfEachStorageKindReturnsToTheDevice) {
    for_each_kind(backend(), device, [&](CachingAllocator& allocator, StorageKind) {
        PooledAllocation(allocator, bytes).reset();
        EXPECT_GT(allocator.statistics().capacity_bytes, 0U);
        EXPECT_GT(allocator.trim(), 0U);
        EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
    });
}

TEST_P(BackendContract, CachingRefusesStorageThatTheDeviceLacks) {
    for (const StorageKind kind : {StorageKind::shared, StorageKind::managed}) {
        if (is_there(abilities(), kind)) continue;
        EXPECT_THROW(CachingAllocator(backend(), device, {.storage = kind}), std::invalid_argument);
    }
}

TEST_P(BackendWithStreamOrder, StreamOrderedHandlesFollowTheirStreams) {
    const StreamHandle stream = make_stream();
    const StreamHandle other = make_stream();
    unsigned char* const host = make_pinned(mib);
    StreamOrderedAllocator allocator(backend(), device, {.release_threshold = 0});
    {
        const PooledAllocation handle(allocator, mib, stream);
        const EventHandle filled = make_event();
        ASSERT_EQ(backend().fill_async(device, handle.get(), 0x33, mib, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().record_event(device, filled, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().wait_event(device, other, filled), DeviceStatus::ok);
        ASSERT_EQ(
            backend().copy_async(device, CopyKind::device_to_host, host, handle.get(), mib, other),
            DeviceStatus::ok);
        allocator.record_use(handle.get(), other);
    }
    EXPECT_EQ(allocator.statistics().in_use_bytes, 0U);
    EXPECT_EQ(allocator.statistics().deferred_bytes, 0U);
    const PooledAllocation next(allocator, mib, stream);
    ASSERT_EQ(backend().fill_async(device, next.get(), 0x44, mib, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
    EXPECT_EQ(Bytes(host, host + mib), Bytes(mib, 0x33));
    EXPECT_TRUE(read(next.get(), mib) == Bytes(mib, 0x44));
}

}  // namespace tensorpool::testing
