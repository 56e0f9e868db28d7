#include <tensorpool/device/hazard.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::expect_hazard;
using test::expect_none;
using test::Slab;
using test::small_device;
using Simulated = test::Device;

constexpr std::size_t page = 4096;

// Planted faults. Each must be reported with both operations -------------------------------------

TEST(PlantedHazard, UnorderedWriteAfterReadOnAnotherStream) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    void* const memory = device.memory();
    device.writes(one, memory, "first write");
    device.orders(one, two);
    device.reads(one, memory, "read");
    device.writes(two, memory, "second write");
    expect_hazard(device, HazardKind::unordered_access, "second write", "read");
}

TEST(PlantedHazard, UnorderedReadAfterWriteOnAnotherStream) {
    Simulated device;
    const StreamHandle one = device.stream();
    void* const memory = device.memory();
    device.writes(one, memory, "produce");
    device.reads(nullptr, memory, "consume");
    expect_hazard(device, HazardKind::unordered_access, "consume", "produce");
    const Hazard found = device.hazards().front();
    EXPECT_EQ(found.operation.stream, "default stream of simulated:0");
    EXPECT_EQ(found.other.stream, "stream 1 of simulated:0");
    EXPECT_EQ(found.address, memory);
    EXPECT_EQ(found.bytes, page);
}

TEST(PlantedHazard, EventRecordedBeforeTheWork) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    void* const memory = device.memory();
    const EventHandle early = device.recorded(one);
    device.writes(one, memory, "produce");
    EXPECT_EQ(device.wait_event(0, two, early), DeviceStatus::ok);
    device.reads(two, memory, "consume");
    expect_hazard(device, HazardKind::unordered_access, "consume", "produce");
}

TEST(PlantedHazard, ReadOfUninitializedMemory) {
    Simulated device;
    void* const memory = device.memory();
    device.writes(nullptr, memory, "write half", page / 2);
    device.reads(nullptr, memory, "read all");
    expect_hazard(device, HazardKind::read_of_uninitialised, "read all", "allocate");
    EXPECT_EQ(device.hazards().front().bytes, page / 2);
}

TEST(PlantedHazard, CopyOfUninitializedMemory) {
    Simulated device;
    void* const memory = device.memory();
    std::vector<char> host(page);
    EXPECT_EQ(device.copy(0, CopyKind::device_to_host, host.data(), memory, page),
              DeviceStatus::ok);
    expect_hazard(device, HazardKind::read_of_uninitialised, "copy device to host", "allocate");
}

TEST(PlantedHazard, AccessAfterFree) {
    Simulated device;
    void* const memory = device.memory();
    device.free(memory);
    EXPECT_EQ(device.launch(0, nullptr, {"late", {}, {{memory, 16}}, {}, 0}),
              DeviceStatus::invalid_argument);
    expect_hazard(device, HazardKind::access_after_free, "late", "deallocate");
}

TEST(PlantedHazard, AccessBeyondTheEndOfAnAllocation) {
    Simulated device;
    void* const memory = device.memory();
    EXPECT_EQ(device.launch(0, nullptr, {"too long", {}, {{memory, page + 1}}, {}, 0}),
              DeviceStatus::invalid_argument);
    expect_hazard(device, HazardKind::out_of_allocation, "too long", "allocate");
}

TEST(PlantedHazard, AccessToUnmappedAddresses) {
    Simulated device;
    void* addresses = nullptr;
    const std::size_t granule = device.abilities(0).granularity;
    ASSERT_EQ(device.reserve_addresses(0, granule, &addresses), DeviceStatus::ok);
    EXPECT_EQ(device.fill_async(0, addresses, 1, 16, nullptr), DeviceStatus::invalid_argument);
    expect_hazard(device, HazardKind::out_of_allocation, "fill", "");
}

TEST(PlantedHazard, UnmapWhileWorkUsesTheMemory) {
    Simulated device(small_device(Schedule::lazy));
    const std::size_t granule = device.abilities(0).granularity;
    void* addresses = nullptr;
    MemoryHandle memory = nullptr;
    ASSERT_EQ(device.reserve_addresses(0, granule, &addresses), DeviceStatus::ok);
    ASSERT_EQ(device.create_memory(0, granule, &memory), DeviceStatus::ok);
    ASSERT_EQ(device.map_memory(0, addresses, granule, memory), DeviceStatus::ok);
    device.writes(nullptr, addresses, "long kernel");
    EXPECT_EQ(device.unmap_memory(0, addresses, granule), DeviceStatus::ok);
    expect_hazard(device, HazardKind::free_in_use, "unmap_memory", "long kernel");
}

TEST(PlantedHazard, DeallocateWhileWorkUsesTheMemory) {
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy, Schedule::random}) {
        Simulated device(small_device(schedule));
        void* const memory = device.memory();
        device.writes(device.stream(), memory, "long kernel");
        device.free(memory);
        expect_hazard(device, HazardKind::free_in_use, "deallocate", "long kernel");
    }
}

TEST(PlantedHazard, AllocationFreedTwice) {
    Simulated device;
    void* const memory = device.memory();
    device.free(memory);
    EXPECT_EQ(device.deallocate(0, memory, page, StorageKind::private_storage),
              DeviceStatus::invalid_argument);
    expect_hazard(device, HazardKind::double_free, "deallocate", "deallocate");
}

TEST(PlantedHazard, StreamOrderedFreeBeforeUseByAnotherStream) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    void* memory = nullptr;
    ASSERT_EQ(device.allocate_async(0, page, one, &memory), DeviceStatus::ok);
    device.orders(one, two);
    device.writes(two, memory, "use");
    ASSERT_EQ(device.deallocate_async(0, memory, page, one), DeviceStatus::ok);
    expect_hazard(device, HazardKind::free_in_use, "deallocate_async", "use");
}

TEST(PlantedHazard, StreamOrderedMemoryUsedByAnUnorderedStream) {
    Simulated device;
    void* memory = nullptr;
    ASSERT_EQ(device.allocate_async(0, page, device.stream(), &memory), DeviceStatus::ok);
    device.writes(device.stream(), memory, "use");
    expect_hazard(device, HazardKind::unordered_access, "use", "allocate_async");
}

TEST(PlantedHazard, HostReadsBeforeTheCopyCompleted) {
    Simulated device;
    void* const memory = device.memory();
    char* const host = static_cast<char*>(device.pinned());
    const StreamHandle stream = device.stream();
    device.writes(stream, memory, "produce");
    EXPECT_EQ(device.copy_async(0, CopyKind::device_to_host, host, memory, page, stream),
              DeviceStatus::ok);
    device.host_read(host, 1, "print result");
    expect_hazard(device, HazardKind::host_access_too_early, "print result", "copy device to host");
}

TEST(PlantedHazard, HostWritesBeforeTheCopyCompleted) {
    Simulated device;
    void* const memory = device.memory();
    void* const host = device.pinned();
    EXPECT_EQ(device.fill(0, memory, 0, page), DeviceStatus::ok);
    EXPECT_EQ(device.copy(0, CopyKind::device_to_host, host, memory, page), DeviceStatus::ok);
    EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, host, page, nullptr),
              DeviceStatus::ok);
    device.host_write(host, page, "next batch");
    expect_hazard(device, HazardKind::host_access_too_early, "next batch", "copy host to device");
}

// Pageable memory is read when the copy is submitted, even in the stream of its writer.
TEST(PlantedHazard, PageableMemoryIsCopiedBeforeItsWriterHasRun) {
    Simulated device;
    void* const memory = device.memory();
    std::vector<char> host(page);
    EXPECT_EQ(device.fill(0, memory, 1, page), DeviceStatus::ok);
    EXPECT_EQ(device.copy_async(0, CopyKind::device_to_host, host.data(), memory, page, nullptr),
              DeviceStatus::ok);
    EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, host.data(), page, nullptr),
              DeviceStatus::ok);
    expect_hazard(device, HazardKind::host_access_too_early, "copy host to device",
                  "copy device to host");
}

TEST(PlantedHazard, SynchronousCopyWhileAStreamWritesTheMemory) {
    Simulated device;
    void* const memory = device.memory();
    std::vector<char> host(page);
    device.writes(device.stream(), memory, "produce");
    EXPECT_EQ(device.copy(0, CopyKind::device_to_host, host.data(), memory, page),
              DeviceStatus::ok);
    expect_hazard(device, HazardKind::host_access_too_early, "copy device to host", "produce");
}

TEST(PlantedHazard, PinnedMemoryFreedWhileACopyUsesIt) {
    Simulated device;
    void* const memory = device.memory();
    void* const host = device.pinned();
    EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, host, page, nullptr),
              DeviceStatus::ok);
    EXPECT_EQ(device.deallocate_pinned(0, host, page), DeviceStatus::ok);
    expect_hazard(device, HazardKind::free_in_use, "deallocate_pinned", "copy host to device");
}

TEST(PlantedHazard, HostAccessToPrivateMemory) {
    Simulated device;
    void* const memory = device.memory();
    device.host_write(memory, 4, "plain store");
    expect_hazard(device, HazardKind::host_access_to_private, "plain store", "allocate");
}

TEST(PlantedHazard, KernelAccessToAPeerWithoutPermission) {
    SimulationOptions options = small_device();
    options.devices = 2;
    Simulated device(options);
    void* const memory = device.memory(page, 1);
    EXPECT_EQ(device.launch(0, nullptr, {"stray", {}, {{memory, 16}}, {}, 0}),
              DeviceStatus::invalid_argument);
    expect_hazard(device, HazardKind::out_of_allocation, "stray", "allocate");
}

TEST(PlantedHazard, UnorderedAccessByTwoDevices) {
    SimulationOptions options = small_device();
    options.devices = 2;
    Simulated device(options);
    ASSERT_EQ(device.enable_peer_access(1, 0), DeviceStatus::ok);
    void* const from = device.memory(page, 0);
    void* const to = device.memory(page, 1);
    device.writes(nullptr, from, "produce");
    EXPECT_EQ(device.copy_peer_async(1, to, 0, from, page, nullptr), DeviceStatus::ok);
    expect_hazard(device, HazardKind::unordered_access, "copy from peer", "produce");
}

// Blocks of an allocator -------------------------------------------------------------------------

TEST(PlantedHazard, BlockGivenToAnotherStreamBeforeItsLastUse) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    Slab slab(device);
    slab.allocated(0, one);
    device.writes(one, slab.at(0), "old owner's kernel", Slab::block);
    slab.freed(0, one);
    slab.allocated(0, two);
    expect_hazard(device, HazardKind::reuse_before_last_use, "allocate block",
                  "old owner's kernel");
}

TEST(PlantedHazard, BlockReusedBeforeARecordedStreamHasPassed) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    Slab slab(device);
    slab.allocated(0, one);
    device.writes(one, slab.at(0), "produce", Slab::block);
    device.orders(one, two);
    device.reads(two, slab.at(0), "side stream reads", Slab::block);
    slab.used(0, two);
    slab.freed(0, one);
    expect_none(device);
    slab.allocated(0, one);
    expect_hazard(device, HazardKind::reuse_before_last_use, "allocate block", "side stream reads");
}

TEST(PlantedHazard, BlockReportedReusableTooEarly) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    Slab slab(device);
    slab.allocated(0, one);
    device.writes(one, slab.at(0), "produce", Slab::block);
    device.orders(one, two);
    device.reads(two, slab.at(0), "side stream reads", Slab::block);
    slab.used(0, two);
    slab.freed(0, one);
    slab.reusable(0, one);
    expect_hazard(device, HazardKind::reuse_before_last_use, "block reusable", "side stream reads");
}

TEST(PlantedHazard, MissingRecordUse) {
    Simulated device;
    const StreamHandle one = device.stream();
    const StreamHandle two = device.stream();
    Slab slab(device);
    slab.allocated(0, one);
    device.writes(one, slab.at(0), "produce", Slab::block);
    device.orders(one, two);
    device.reads(two, slab.at(0), "side stream reads", Slab::block);
    slab.freed(0, one);
    expect_hazard(device, HazardKind::missing_record_use, "free block", "side stream reads");
}

TEST(PlantedHazard, AccessToAFreedBlockOfALiveSlab) {
    Simulated device;
    const StreamHandle one = device.stream();
    Slab slab(device);
    slab.allocated(0, one);
    slab.freed(0, one);
    device.writes(one, slab.at(0), "late", 16);
    expect_hazard(device, HazardKind::access_after_free, "late", "free block");
}

TEST(PlantedHazard, AccessToASlabOutsideOfBlocks) {
    Simulated device;
    Slab slab(device);
    slab.allocated(0, nullptr);
    device.writes(nullptr, slab.at(0), "too long", Slab::block + 1);
    expect_hazard(device, HazardKind::out_of_allocation, "too long", "allocate");
}

TEST(PlantedHazard, ReadOfUninitializedReusedBlock) {
    Simulated device;
    Slab slab(device);
    slab.allocated(0, nullptr);
    device.writes(nullptr, slab.at(0), "old content", Slab::block);
    slab.freed(0, nullptr);
    slab.allocated(0, nullptr);
    device.reads(nullptr, slab.at(0), "stale read", 8);
    expect_hazard(device, HazardKind::read_of_uninitialised, "stale read", "allocate block");
}

TEST(PlantedHazard, BlockFreedTwice) {
    Simulated device;
    Slab slab(device);
    slab.allocated(0, nullptr);
    slab.freed(0, nullptr);
    slab.freed(0, nullptr);
    expect_hazard(device, HazardKind::double_free, "free block", "free block");
}

TEST(PlantedHazard, OverlappingBlocks) {
    Simulated device;
    Slab slab(device);
    slab.allocated(0, nullptr);
    slab.allocated(0, nullptr);
    expect_hazard(device, HazardKind::overlapping_blocks, "allocate block", "allocate block");
}

TEST(PlantedHazard, SlabDeallocatedWithABlockInUse) {
    Simulated device;
    Slab slab(device);
    slab.allocated(1, nullptr);
    device.free(slab.at(0), Slab::bytes);
    expect_hazard(device, HazardKind::free_in_use, "deallocate", "allocate block");
}

TEST(Blocks, MaySpanSeveralMappings) {
    Simulated device;
    const std::size_t granule = device.abilities(0).granularity;
    void* address = nullptr;
    ASSERT_EQ(device.reserve_addresses(0, 2 * granule, &address), DeviceStatus::ok);
    auto* const begin = static_cast<char*>(address);
    for (char* at = begin; at != begin + 2 * granule; at += granule) {
        MemoryHandle memory = nullptr;
        ASSERT_EQ(device.create_memory(0, granule, &memory), DeviceStatus::ok);
        ASSERT_EQ(device.map_memory(0, at, granule, memory), DeviceStatus::ok);
    }
    using Kind = BlockNote::Kind;
    device.note_block({Kind::allocated, 0, begin, granule + page, nullptr});
    device.note_block({Kind::allocated, 0, begin + granule + page, page, nullptr});
    device.writes(nullptr, begin, "write", granule + 2 * page);
    expect_none(device);
    device.writes(nullptr, begin + granule, "write too far", 3 * page);
    EXPECT_EQ(device.hazard_count(), 1U) << device.hazard_report();
}

}  // namespace
}  // namespace tensorpool
