#include <tensorpool/device/simulation_faults.hpp>

#include <gtest/gtest.h>

#include <string>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::small_device;
using Simulated = test::Device;

constexpr std::size_t page = 4096;
constexpr StorageKind storage = StorageKind::private_storage;

TEST(SimulationFaults, NamedCallsFailWithoutSideEffects) {
    Simulated device;
    device.set_faults({.failing = {{SimulatedCall::allocate, 2, 2}}});
    void* memory = nullptr;
    EXPECT_EQ(device.allocate(0, page, storage, &memory), DeviceStatus::ok);
    void* const first = memory;
    EXPECT_EQ(device.allocate(0, page, storage, &memory), DeviceStatus::out_of_memory);
    EXPECT_EQ(device.allocate(0, page, storage, &memory), DeviceStatus::out_of_memory);
    EXPECT_EQ(memory, first);
    EXPECT_NE(device.last_error().find("a fault on demand"), std::string::npos);
    EXPECT_EQ(device.allocate(0, page, storage, &memory), DeviceStatus::ok);
}

TEST(SimulationFaults, RequestsAboveASizeAreOutOfMemory) {
    Simulated device;
    device.set_faults({.largest_request = page});
    void* memory = nullptr;
    MemoryHandle physical = nullptr;
    const std::size_t granule = device.abilities(0).granularity;
    EXPECT_EQ(device.allocate(0, page, storage, &memory), DeviceStatus::ok);
    EXPECT_EQ(device.allocate(0, page + 1, storage, &memory), DeviceStatus::out_of_memory);
    EXPECT_EQ(device.allocate_async(0, page + 1, nullptr, &memory), DeviceStatus::out_of_memory);
    EXPECT_EQ(device.create_memory(0, granule, &physical), DeviceStatus::out_of_memory);
    device.set_faults({});
    EXPECT_EQ(device.create_memory(0, granule, &physical), DeviceStatus::ok);
    EXPECT_EQ(device.destroy_memory(0, physical), DeviceStatus::ok);
}

TEST(SimulationFaults, MappingFailsHalfway) {
    Simulated device;
    const std::size_t granule = device.abilities(0).granularity;
    void* addresses = nullptr;
    ASSERT_EQ(device.reserve_addresses(0, 2 * granule, &addresses), DeviceStatus::ok);
    device.set_faults({.failing = {{SimulatedCall::map_memory, 2, 1}}});
    char* const begin = static_cast<char*>(addresses);
    MemoryHandle memory[2] = {};
    for (MemoryHandle& each : memory) {
        ASSERT_EQ(device.create_memory(0, granule, &each), DeviceStatus::ok);
    }
    EXPECT_EQ(device.map_memory(0, begin, granule, memory[0]), DeviceStatus::ok);
    EXPECT_EQ(device.map_memory(0, begin + granule, granule, memory[1]),
              DeviceStatus::out_of_memory);
    EXPECT_EQ(device.map_memory(0, begin + granule, granule, memory[1]), DeviceStatus::ok);
}

TEST(SimulationFaults, PinnedMemoryFails) {
    Simulated device;
    device.set_faults({.refuses_pinned = true});
    void* memory = nullptr;
    alignas(page) static char own[page];
    EXPECT_EQ(device.allocate_pinned(0, page, &memory), DeviceStatus::out_of_memory);
    EXPECT_EQ(device.register_pinned(0, own, page), DeviceStatus::out_of_memory);
    EXPECT_EQ(memory, nullptr);
}

TEST(SimulationFaults, EventQueriesAnswerLate) {
    Simulated device;
    device.set_faults({.slow_event_queries = 2});
    const EventHandle event = device.recorded(nullptr);
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(device.query_event(0, event), DeviceStatus::not_ready);
        EXPECT_EQ(device.query_event(0, event), DeviceStatus::not_ready);
        EXPECT_EQ(device.query_event(0, event), DeviceStatus::ok);
        EXPECT_EQ(device.query_event(0, event), DeviceStatus::ok);
        EXPECT_EQ(device.query_stream(0, nullptr), DeviceStatus::ok);
        EXPECT_EQ(device.record_event(0, event, nullptr), DeviceStatus::ok);
    }
}

TEST(SimulationFaults, LostDeviceFailsAllCalls) {
    Simulated device;
    device.set_faults({.lost_from = 3});
    void* const memory = device.memory();
    const EventHandle event = device.event();
    EXPECT_EQ(device.query_event(0, event), DeviceStatus::device_lost);
    EXPECT_EQ(device.synchronize_device(0), DeviceStatus::device_lost);
    EXPECT_EQ(device.deallocate(0, memory, page, storage), DeviceStatus::device_lost);
    DeviceMemoryInfo info;
    EXPECT_EQ(device.memory_info(0, info), DeviceStatus::device_lost);
}

TEST(SimulationFaults, CreatingStreamsAndEventsFails) {
    Simulated device;
    device.set_faults({.failing = {{SimulatedCall::create_stream}, {SimulatedCall::create_event}}});
    StreamHandle stream = nullptr;
    EventHandle event = nullptr;
    EXPECT_EQ(device.create_stream(0, &stream), DeviceStatus::failed);
    EXPECT_EQ(device.create_event(0, EventFlags::none, &event), DeviceStatus::failed);
    EXPECT_EQ(stream, nullptr);
    EXPECT_EQ(event, nullptr);
    EXPECT_EQ(device.create_stream(0, &stream), DeviceStatus::ok);
}

}  // namespace
}  // namespace tensorpool
