// Graph capture: which calls are illegal during it, and which hazards launches of graphs report.

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

using test::expect_hazard;
using test::expect_none;
using test::Slab;
using test::small_device;
using Simulated = test::Device;

constexpr std::size_t page = 4096;

class Captured : public ::testing::Test {
protected:
    void begin() { ASSERT_EQ(device.begin_capture(0, stream), DeviceStatus::ok); }
    GraphHandle end() {
        GraphHandle graph = nullptr;
        EXPECT_EQ(device.end_capture(0, stream, &graph), DeviceStatus::ok) << device.last_error();
        return graph;
    }
    void launch(GraphHandle graph) {
        EXPECT_EQ(device.launch_graph(0, graph, stream), DeviceStatus::ok);
    }
    void expect_illegal(DeviceStatus found, const std::string& call) {
        EXPECT_EQ(found, DeviceStatus::in_capture) << call;
        expect_hazard(device, HazardKind::illegal_in_capture, call, "begin_capture");
        device.clear_hazards();
    }

    Simulated device;
    StreamHandle stream = device.stream();
};

TEST_F(Captured, WaitingAndAllocatingCallsAreIllegal) {
    void* memory = device.memory();
    const EventHandle event = device.recorded(nullptr);
    char byte = 0;
    begin();
    const EventHandle captured = device.recorded(stream);
    expect_illegal(device.synchronize_device(0), "synchronize_device");
    expect_illegal(device.synchronize_stream(0, stream), "synchronize_stream");
    expect_illegal(device.synchronize_stream(0, nullptr), "synchronize_stream");
    expect_illegal(device.synchronize_event(0, event), "synchronize_event");
    expect_illegal(device.query_event(0, captured), "query_event");
    expect_illegal(device.query_stream(0, stream), "query_stream");
    expect_illegal(device.allocate(0, page, StorageKind::private_storage, &memory), "allocate");
    expect_illegal(device.deallocate(0, memory, page, StorageKind::private_storage), "deallocate");
    expect_illegal(device.copy(0, CopyKind::device_to_host, &byte, memory, 1), "copy");
    expect_illegal(device.fill(0, memory, 0, 1), "fill");
    expect_illegal(device.begin_capture(0, stream), "begin_capture");
    expect_illegal(device.destroy_stream(0, stream), "destroy_stream");
    EXPECT_EQ(device.query_event(0, event), DeviceStatus::ok);
    end();
    EXPECT_EQ(device.synchronize_device(0), DeviceStatus::ok);
    expect_none(device);
}

TEST_F(Captured, AnotherThreadMayWaitAndAllocate) {
    begin();
    std::thread([&] {
        device.memory();
        device.synchronize(nullptr);
        EXPECT_EQ(device.synchronize_stream(0, stream), DeviceStatus::in_capture);
    }).join();
    EXPECT_EQ(device.hazard_count(), 1U);
    end();
}

TEST_F(Captured, WaitingForAnEventFromOutsideIsIllegal) {
    const EventHandle outside = device.recorded(nullptr);
    begin();
    expect_illegal(device.wait_event(0, stream, outside), "wait_event for an event from outside");
    end();
}

TEST_F(Captured, UnjoinedStreamInvalidatesTheCapture) {
    const StreamHandle branch = device.stream();
    begin();
    device.orders(stream, branch);
    device.calls_back(branch, [] {});
    GraphHandle graph = nullptr;
    expect_illegal(device.end_capture(0, stream, &graph), "end_capture with streams not joined");
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(device.query_stream(0, branch), DeviceStatus::ok);
}

TEST_F(Captured, CorrectLaunchesReportNoHazard) {
    const StreamHandle branch = device.stream();
    void* const in = device.memory();
    void* const out = device.memory();
    begin();
    device.writes(stream, out, "zero");
    device.orders(stream, branch);
    device.reads(branch, in, "read");
    device.writes(branch, out, "add");
    device.orders(branch, stream);
    device.reads(stream, out, "sum");
    const GraphHandle graph = end();
    EXPECT_EQ(device.fill_async(0, in, 1, page, stream), DeviceStatus::ok);
    for (int round = 0; round < 3; ++round) launch(graph);
    device.synchronize(stream);
    device.free(in);
    device.free(out);
    expect_none(device);
}

TEST_F(Captured, UnorderedBranchesAreReportedAtLaunch) {
    const StreamHandle branch = device.stream();
    void* const memory = device.memory();
    begin();
    device.orders(stream, branch);
    device.writes(stream, memory, "left");
    device.writes(branch, memory, "right");
    device.orders(branch, stream);
    const GraphHandle graph = end();
    expect_none(device);
    launch(graph);
    expect_hazard(device, HazardKind::unordered_access, "right", "left");
}

TEST_F(Captured, LaunchIsNotOrderedAfterOtherStreams) {
    void* const memory = device.memory();
    begin();
    device.writes(stream, memory, "node");
    const GraphHandle graph = end();
    device.writes(nullptr, memory, "outside");
    launch(graph);
    expect_hazard(device, HazardKind::unordered_access, "node", "outside");
}

TEST_F(Captured, LaunchAccessesABlockFreedSinceCapture) {
    Slab slab(device);
    slab.allocated(0, stream);
    begin();
    device.writes(stream, slab.at(0), "node", Slab::block);
    const GraphHandle graph = end();
    slab.freed(0, stream);
    launch(graph);
    expect_hazard(device, HazardKind::access_after_free, "node", "free block");
}

TEST_F(Captured, LaunchAccessesABlockReusedSinceCapture) {
    Slab slab(device);
    slab.allocated(0, stream);
    begin();
    device.writes(stream, slab.at(0), "node", Slab::block);
    const GraphHandle graph = end();
    slab.freed(0, stream);
    slab.allocated(0, stream);
    launch(graph);
    expect_hazard(device, HazardKind::access_after_free, "node", "allocate block");
}

TEST_F(Captured, LaunchAccessesADeallocatedSlab) {
    void* const memory = device.memory();
    begin();
    device.writes(stream, memory, "node");
    const GraphHandle graph = end();
    device.free(memory);
    EXPECT_EQ(device.launch_graph(0, graph, stream), DeviceStatus::invalid_argument);
    expect_hazard(device, HazardKind::access_after_free, "node", "deallocate");
}

TEST_F(Captured, BlocksOfTheCaptureStayReserved) {
    Slab slab(device);
    begin();
    slab.allocated(0, stream);
    device.writes(stream, slab.at(0), "first", Slab::block);
    device.reads(stream, slab.at(0), "second", Slab::block);
    slab.freed(0, stream);
    slab.allocated(0, stream);
    device.writes(stream, slab.at(0), "third", Slab::block);
    const GraphHandle graph = end();
    slab.freed(0, stream);
    for (int round = 0; round < 2; ++round) launch(graph);
    expect_none(device);
    slab.allocated(0, nullptr);  // wrong: the graph may be launched again
    device.clear_hazards();
    launch(graph);
    ASSERT_EQ(device.hazard_count(), 3U) << device.hazard_report();
    EXPECT_EQ(device.hazards()[0].kind, HazardKind::access_after_free);
    EXPECT_EQ(device.hazards()[0].operation.label, "first");
    EXPECT_EQ(device.hazards()[0].other.label, "allocate block");
}

TEST_F(Captured, LaunchesOnTwoStreamsAreOrdered) {
    void* const memory = device.memory();
    begin();
    device.writes(stream, memory, "node");
    const GraphHandle graph = end();
    launch(graph);
    EXPECT_EQ(device.launch_graph(0, graph, device.stream()), DeviceStatus::ok);
    expect_none(device);
    EXPECT_EQ(device.destroy_graph(0, graph), DeviceStatus::ok);
}

}  // namespace
}  // namespace tensorpool
