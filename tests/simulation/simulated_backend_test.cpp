#include <tensorpool/device/simulated_backend.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::small_device;
using Simulated = test::Device;

TEST(SimulatedBackend, UntouchedMemoryCostsNothing) {
    Simulated device(SimulationOptions{});
    DeviceMemoryInfo info;
    EXPECT_EQ(device.memory_info(0, info), DeviceStatus::ok);
    EXPECT_EQ(info.total_bytes, std::size_t{16} << 30);
    void* const most = device.memory(info.total_bytes);
    static_cast<char*>(most)[info.total_bytes - 1] = 1;
    EXPECT_EQ(device.memory_info(0, info), DeviceStatus::ok);
    EXPECT_EQ(info.free_bytes, 0U);
    void* more = nullptr;
    EXPECT_EQ(device.allocate(0, 1, StorageKind::private_storage, &more),
              DeviceStatus::out_of_memory);
    EXPECT_NE(device.last_error().find("allocate on simulated:0: out of memory"),
              std::string::npos);
    device.free(most, info.total_bytes);
}

TEST(SimulatedBackend, LazyWorkRunsWhenWaitedFor) {
    Simulated device(small_device(Schedule::lazy));
    const StreamHandle stream = device.stream();
    std::string order;
    device.calls_back(stream, [&] { order += 'a'; });
    const EventHandle event = device.recorded(stream);
    device.calls_back(stream, [&] { order += 'b'; });
    EXPECT_EQ(device.query_event(0, event), DeviceStatus::not_ready);
    EXPECT_EQ(order, "");
    EXPECT_EQ(device.synchronize_event(0, event), DeviceStatus::ok);
    EXPECT_EQ(order, "a");
    device.synchronize(stream);
    EXPECT_EQ(order, "ab");
}

TEST(SimulatedBackend, EagerWorkIsDoneBeforeTheCallReturns) {
    Simulated device;
    bool done = false;
    device.calls_back(nullptr, [&] { done = true; });
    EXPECT_TRUE(done);
}

TEST(SimulatedBackend, StreamWaitsForAnEvent) {
    Simulated device(small_device(Schedule::lazy));
    const StreamHandle first = device.stream();
    const StreamHandle second = device.stream();
    std::string order;
    device.calls_back(first, [&] { order += '1'; });
    device.orders(first, second);
    device.calls_back(second, [&] { order += '2'; });
    device.synchronize(second);
    EXPECT_EQ(order, "12");
}

TEST(SimulatedBackend, CopiesGoThroughTheDevice) {
    Simulated device(small_device(Schedule::lazy));
    const StreamHandle stream = device.stream();
    void* const memory = device.memory();
    std::vector<char> in(4096, 7);
    std::vector<char> out(4096);
    EXPECT_EQ(device.copy_async(0, CopyKind::host_to_device, memory, in.data(), 4096, stream),
              DeviceStatus::ok);
    EXPECT_EQ(device.fill_async(0, memory, 9, 10, stream), DeviceStatus::ok);
    EXPECT_EQ(device.copy_async(0, CopyKind::device_to_host, out.data(), memory, 4096, stream),
              DeviceStatus::ok);
    device.synchronize(stream);
    EXPECT_EQ(out[9], 9);
    EXPECT_EQ(out[10], 7);
}

TEST(SimulatedBackend, ContentMovesWithItsMemory) {
    Simulated device;
    const std::size_t granule = device.abilities(0).granularity;
    void* addresses = nullptr;
    MemoryHandle memory = nullptr;
    ASSERT_EQ(device.reserve_addresses(0, 4 * granule, &addresses), DeviceStatus::ok);
    ASSERT_EQ(device.create_memory(0, granule, &memory), DeviceStatus::ok);
    char* const here = static_cast<char*>(addresses);
    char* const there = here + 2 * granule;
    ASSERT_EQ(device.map_memory(0, here, granule, memory), DeviceStatus::ok);
    EXPECT_EQ(device.map_memory(0, there, granule, memory), DeviceStatus::invalid_argument);
    ASSERT_EQ(device.fill(0, here, 5, granule), DeviceStatus::ok);
    ASSERT_EQ(device.unmap_memory(0, here, granule), DeviceStatus::ok);
    ASSERT_EQ(device.map_memory(0, there, granule, memory), DeviceStatus::ok);
    EXPECT_EQ(there[granule - 1], 5);
    EXPECT_EQ(device.destroy_memory(0, memory), DeviceStatus::invalid_argument);
    EXPECT_EQ(device.release_addresses(0, addresses, 4 * granule), DeviceStatus::invalid_argument);
    EXPECT_EQ(device.unmap_memory(0, there, granule), DeviceStatus::ok);
    EXPECT_EQ(device.destroy_memory(0, memory), DeviceStatus::ok);
    EXPECT_EQ(device.release_addresses(0, addresses, 4 * granule), DeviceStatus::ok);
}

TEST(SimulatedBackend, GraphRunsCapturedWorkAtEachLaunch) {
    Simulated device;
    const StreamHandle stream = device.stream();
    const StreamHandle branch = device.stream();
    std::string order;
    ASSERT_EQ(device.begin_capture(0, stream), DeviceStatus::ok);
    device.calls_back(stream, [&] { order += 'a'; });
    device.orders(stream, branch);
    device.calls_back(branch, [&] { order += 'b'; });
    CaptureState state;
    ASSERT_EQ(device.capture_state(0, branch, state), DeviceStatus::ok);
    EXPECT_TRUE(state.capturing);
    device.orders(branch, stream);
    GraphHandle graph = nullptr;
    ASSERT_EQ(device.end_capture(0, stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(order, "");
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(device.launch_graph(0, graph, stream), DeviceStatus::ok);
    }
    EXPECT_EQ(order, "abab");
    EXPECT_EQ(device.destroy_graph(0, graph), DeviceStatus::ok);
}

TEST(SimulatedBackend, FunctionsMayNotCallTheBackend) {
    Simulated device;
    DeviceStatus inside = DeviceStatus::ok;
    device.calls_back(nullptr, [&] { inside = device.synchronize_device(0); });
    EXPECT_EQ(inside, DeviceStatus::failed);
}

TEST(SimulatedBackend, InvalidOptionsAreRejected) {
    for (const int devices : {0, 65}) {
        SimulationOptions options;
        options.devices = devices;
        EXPECT_THROW(SimulatedBackend{options}, std::invalid_argument);
    }
    SimulationOptions options;
    options.granularity = 3 << 20;
    EXPECT_THROW(SimulatedBackend{options}, std::invalid_argument);
}

}  // namespace
}  // namespace tensorpool
