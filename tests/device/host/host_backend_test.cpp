#include <tensorpool/device/host_backend.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "contracts/backend_contract.hpp"

namespace tensorpool {
namespace {

using testing::Gate;

constexpr int device = 0;
constexpr auto private_storage = StorageKind::private_storage;

StreamHandle make_stream(HostBackend& backend) {
    StreamHandle stream = nullptr;
    EXPECT_EQ(backend.create_stream(device, &stream), DeviceStatus::ok);
    return stream;
}

EventHandle make_event(HostBackend& backend, EventFlags flags = EventFlags::none) {
    EventHandle event = nullptr;
    EXPECT_EQ(backend.create_event(device, flags, &event), DeviceStatus::ok);
    return event;
}

TEST(HostBackend, HasOneDevice) {
    HostBackend backend;
    EXPECT_EQ(backend.type(), DeviceType::cpu);
    EXPECT_EQ(backend.device_count(), 1);
    EXPECT_TRUE(backend.abilities(0).unified_memory);
    EXPECT_TRUE(backend.abilities(0).graph_capture);
}

TEST(HostBackend, HostPointerIsTheAddress) {
    HostBackend backend;
    int mine = 0;
    EXPECT_EQ(backend.host_pointer(0, &mine), &mine);
}

TEST(HostBackend, RejectsFreeWithWrongSizeOrKind) {
    HostBackend backend;
    void* memory = nullptr;
    ASSERT_EQ(backend.allocate(device, 1000, private_storage, &memory), DeviceStatus::ok);
    EXPECT_EQ(backend.deallocate(device, memory, 999, private_storage),
              DeviceStatus::invalid_argument);
    const std::string text = backend.last_error();
    EXPECT_NE(text.find("1000 B"), std::string::npos) << text;
    EXPECT_NE(text.find("999 B"), std::string::npos) << text;
    EXPECT_EQ(backend.deallocate(device, memory, 1000, StorageKind::shared),
              DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.deallocate_pinned(device, memory, 1000), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.deallocate(device, memory, 1000, private_storage), DeviceStatus::ok);
}

TEST(HostBackend, RejectsPinningOfPinnedMemory) {
    HostBackend backend;
    std::vector<char> memory(10'000);
    char* const begin = memory.data();
    ASSERT_EQ(backend.register_pinned(device, begin + 2000, 4000), DeviceStatus::ok);
    for (const std::size_t offset : {0U, 1999U, 3000U, 5999U}) {
        EXPECT_EQ(backend.register_pinned(device, begin + offset, 2001),
                  DeviceStatus::invalid_argument);
    }
    EXPECT_EQ(backend.register_pinned(device, begin, 2000), DeviceStatus::ok);
    EXPECT_EQ(backend.register_pinned(device, begin + 6000, 2000), DeviceStatus::ok);
    void* pinned = nullptr;
    ASSERT_EQ(backend.allocate_pinned(device, 4096, &pinned), DeviceStatus::ok);
    EXPECT_EQ(backend.register_pinned(device, static_cast<char*>(pinned) + 9, 5),
              DeviceStatus::invalid_argument);
}

TEST(HostBackend, MapsMemoryAtOneAddressOnly) {
    HostBackend backend;
    if (!backend.abilities(0).virtual_memory) GTEST_SKIP() << "no virtual memory";
    const std::size_t granule = backend.abilities(0).granularity;
    void* address = nullptr;
    MemoryHandle memory = nullptr;
    ASSERT_EQ(backend.reserve_addresses(device, 2 * granule, &address), DeviceStatus::ok);
    ASSERT_EQ(backend.create_memory(device, granule, &memory), DeviceStatus::ok);
    ASSERT_EQ(backend.map_memory(device, address, granule, memory), DeviceStatus::ok);
    EXPECT_EQ(backend.map_memory(device, static_cast<char*>(address) + granule, granule, memory),
              DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.destroy_memory(device, memory), DeviceStatus::invalid_argument);
    // The backend's destructor releases the rest.
}

TEST(HostBackend, TwoStreamsRunConcurrently) {
    HostBackend backend;
    std::barrier<> both(2);  // blocks until both streams arrive
    const auto meet = [](void* barrier) {
        static_cast<std::barrier<>*>(barrier)->arrive_and_wait();
    };
    for (const StreamHandle stream : {make_stream(backend), make_stream(backend)}) {
        ASSERT_EQ(backend.launch_host_function(device, stream, meet, &both), DeviceStatus::ok);
    }
    EXPECT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
}

TEST(HostBackend, DestructorCompletesWorkOfDestroyedStreams) {
    std::atomic<int> done{0};
    Gate gate;
    {
        HostBackend backend;
        const StreamHandle stream = make_stream(backend);
        ASSERT_EQ(gate.close(backend, device, stream), DeviceStatus::ok);
        ASSERT_EQ(backend.launch_host_function(
                      device, stream, [](void* count) { ++*static_cast<std::atomic<int>*>(count); },
                      &done),
                  DeviceStatus::ok);
        ASSERT_EQ(backend.destroy_stream(device, stream), DeviceStatus::ok);
        EXPECT_EQ(done, 0);
        gate.open();
    }
    EXPECT_EQ(done, 1);
}

TEST(HostBackend, RejectsHandlesOfReusedSlots) {
    HostBackend backend;
    const EventHandle old = make_event(backend);
    ASSERT_EQ(backend.destroy_event(device, old), DeviceStatus::ok);
    const EventHandle next = make_event(backend);
    EXPECT_NE(next, old);
    EXPECT_EQ(backend.destroy_event(device, old), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.query_event(device, next), DeviceStatus::ok);
}

TEST(HostBackend, StampOfAnEarlierRecordIsIgnored) {
    HostBackend backend;
    const StreamHandle held = make_stream(backend);
    const StreamHandle free = make_stream(backend);
    const EventHandle begin = make_event(backend, EventFlags::timing);
    const EventHandle end = make_event(backend, EventFlags::timing);
    {
        Gate gate;
        ASSERT_EQ(gate.close(backend, device, held), DeviceStatus::ok);
        ASSERT_EQ(backend.record_event(device, begin, held), DeviceStatus::ok);
        ASSERT_EQ(backend.record_event(device, begin, free), DeviceStatus::ok);
        ASSERT_EQ(backend.record_event(device, end, free), DeviceStatus::ok);
    }
    ASSERT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
    float ms = -1;
    ASSERT_EQ(backend.elapsed_ms(device, begin, end, &ms), DeviceStatus::ok);
    EXPECT_GE(ms, 0);  // the stamp of the first record would make it negative
}

TEST(HostBackend, ElapsedTimeIsValidWhileAnEventIsBeingReached) {
    HostBackend backend;
    const StreamHandle stream = make_stream(backend);
    EventHandle begin = make_event(backend, EventFlags::timing);
    EventHandle end = make_event(backend, EventFlags::timing);
    ASSERT_EQ(backend.record_event(device, begin, stream), DeviceStatus::ok);
    for (int round = 0; round < 20000; ++round) {
        ASSERT_EQ(backend.launch_host_function(
                      device, stream, [](void*) {}, nullptr),
                  DeviceStatus::ok);
        ASSERT_EQ(backend.record_event(device, end, stream), DeviceStatus::ok);
        float ms = -1;
        DeviceStatus status = DeviceStatus::not_ready;
        while (status == DeviceStatus::not_ready)
            status = backend.elapsed_ms(device, begin, end, &ms);
        ASSERT_EQ(status, DeviceStatus::ok);
        ASSERT_GE(ms, 0) << "in round " << round;
        std::swap(begin, end);
    }
}

TEST(HostBackend, RejectsDestroyingTheDefaultStream) {
    HostBackend backend;
    EXPECT_EQ(backend.destroy_stream(device, nullptr), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.last_error(),
              "destroy_stream: stream nullptr: expected one that was created and not destroyed");
}

TEST(HostBackend, RejectsStreamOrderedAllocationInACapturedStream) {
    HostBackend backend;
    const StreamHandle stream = make_stream(backend);
    void* memory = nullptr;
    ASSERT_EQ(backend.allocate_async(device, 256, stream, &memory), DeviceStatus::ok);
    ASSERT_EQ(backend.begin_capture(device, stream), DeviceStatus::ok);
    void* other = nullptr;
    EXPECT_EQ(backend.allocate_async(device, 256, stream, &other), DeviceStatus::in_capture);
    EXPECT_EQ(backend.deallocate_async(device, memory, 256, stream), DeviceStatus::in_capture);
    EXPECT_EQ(other, nullptr);
    GraphHandle graph = nullptr;
    ASSERT_EQ(backend.end_capture(device, stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(backend.deallocate_async(device, memory, 256, stream), DeviceStatus::ok);
}

TEST(HostBackend, CaptureEndsWithItsOriginStream) {
    HostBackend backend;
    const StreamHandle stream = make_stream(backend);
    ASSERT_EQ(backend.begin_capture(device, stream), DeviceStatus::ok);
    ASSERT_EQ(backend.destroy_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
    CaptureState state = {true, 1};
    ASSERT_EQ(backend.capture_state(device, make_stream(backend), state), DeviceStatus::ok);
    EXPECT_FALSE(state.capturing);
}

TEST(HostBackend, CapturesOfTwoThreadsDoNotMix) {
    HostBackend backend;
    const StreamHandle mine = make_stream(backend);
    const EventHandle event = make_event(backend);
    ASSERT_EQ(backend.begin_capture(device, mine), DeviceStatus::ok);
    ASSERT_EQ(backend.record_event(device, event, mine), DeviceStatus::ok);
    std::thread([&] {
        const StreamHandle theirs = make_stream(backend);
        ASSERT_EQ(backend.begin_capture(device, theirs), DeviceStatus::ok);
        EXPECT_EQ(backend.wait_event(device, theirs, event), DeviceStatus::in_capture);
        GraphHandle graph = nullptr;
        EXPECT_EQ(backend.end_capture(device, theirs, &graph), DeviceStatus::ok);
        EXPECT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
    }).join();
    GraphHandle graph = nullptr;
    EXPECT_EQ(backend.end_capture(device, mine, &graph), DeviceStatus::ok);
    EXPECT_EQ(backend.wait_event(device, make_stream(backend), event),
              DeviceStatus::invalid_argument);  // the event's capture has ended
}

TEST(HostBackend, EventOfACaptureCannotBeQueried) {
    HostBackend backend;
    const StreamHandle stream = make_stream(backend);
    const EventHandle event = make_event(backend);
    ASSERT_EQ(backend.begin_capture(device, stream), DeviceStatus::ok);
    ASSERT_EQ(backend.record_event(device, event, stream), DeviceStatus::ok);
    EXPECT_EQ(backend.query_event(device, event), DeviceStatus::in_capture);
    EXPECT_EQ(backend.query_stream(device, stream), DeviceStatus::in_capture);
    EXPECT_EQ(backend.begin_capture(device, stream), DeviceStatus::in_capture);
    GraphHandle graph = nullptr;
    ASSERT_EQ(backend.end_capture(device, stream, &graph), DeviceStatus::ok);
    // After it was recorded in a stream again, the event works as any other.
    ASSERT_EQ(backend.record_event(device, event, stream), DeviceStatus::ok);
    EXPECT_EQ(backend.query_event(device, event), DeviceStatus::ok);
}

// Four threads create and destroy their own streams and events, and pass data along a ring of
// shared streams. Only work of a stream modifies that stream's cell.
TEST(HostBackend, ManyThreadsUseManyStreamsAndEvents) {
    constexpr std::size_t threads = 4;
    constexpr int rounds = 200;
    HostBackend backend;
    struct Cell {
        StreamHandle stream;
        EventHandle event;
        std::uint64_t sum = 0;  // accessed by work of the stream only
    };
    std::vector<Cell> cells(threads);
    for (Cell& cell : cells) cell = {make_stream(backend), make_event(backend)};
    const auto add = [](void* cell) { ++static_cast<Cell*>(cell)->sum; };
    const auto run = [&](std::size_t self) {
        std::minstd_rand random(static_cast<unsigned>(self) + 1);
        for (int round = 0; round < rounds; ++round) {
            Cell& cell = cells[random() % threads];
            Cell& next = cells[random() % threads];
            EXPECT_EQ(backend.launch_host_function(device, cell.stream, add, &cell),
                      DeviceStatus::ok);
            EXPECT_EQ(backend.record_event(device, cell.event, cell.stream), DeviceStatus::ok);
            EXPECT_EQ(backend.wait_event(device, next.stream, cell.event), DeviceStatus::ok);
            const StreamHandle own = make_stream(backend);
            const EventHandle passed = make_event(backend, EventFlags::timing);
            EXPECT_EQ(backend.wait_event(device, own, cell.event), DeviceStatus::ok);
            EXPECT_EQ(backend.record_event(device, passed, own), DeviceStatus::ok);
            if (round % 8 == 0) {
                EXPECT_EQ(backend.synchronize_event(device, passed), DeviceStatus::ok);
            }
            EXPECT_EQ(backend.destroy_stream(device, own), DeviceStatus::ok);
            EXPECT_EQ(backend.destroy_event(device, passed), DeviceStatus::ok);
        }
    };
    std::vector<std::thread> workers;
    for (std::size_t self = 0; self < threads; ++self) workers.emplace_back(run, self);
    for (std::thread& worker : workers) worker.join();
    ASSERT_EQ(backend.synchronize_device(device), DeviceStatus::ok);
    std::uint64_t sum = 0;
    for (const Cell& cell : cells) sum += cell.sum;
    EXPECT_EQ(sum, threads * rounds);
}

}  // namespace
}  // namespace tensorpool
