#include <tensorpool/device/host_backend.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace tensorpool {
namespace {

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

TEST(HostBackend, DoesWorkInTheCallThatSubmitsIt) {
    HostBackend backend;
    const StreamHandle stream = make_stream(backend);
    std::thread::id worker;
    ASSERT_EQ(backend.launch_host_function(
                  device, stream,
                  [](void* id) { *static_cast<std::thread::id*>(id) = std::this_thread::get_id(); },
                  &worker),
              DeviceStatus::ok);
    EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(HostBackend, WorkOfAnotherThreadIsPendingUntilItIsDone) {
    HostBackend backend;
    const StreamHandle stream = make_stream(backend);
    std::barrier<> inside(2);
    std::barrier<> leave(2);
    std::pair<std::barrier<>*, std::barrier<>*> both(&inside, &leave);
    const auto meet = [](void* barriers) {
        auto& [first, second] =
            *static_cast<std::pair<std::barrier<>*, std::barrier<>*>*>(barriers);
        first->arrive_and_wait();
        second->arrive_and_wait();
    };
    std::thread other([&] {
        EXPECT_EQ(backend.launch_host_function(device, stream, meet, &both), DeviceStatus::ok);
    });
    inside.arrive_and_wait();
    EXPECT_EQ(backend.query_stream(device, stream), DeviceStatus::not_ready);
    EXPECT_EQ(backend.query_stream(device, make_stream(backend)), DeviceStatus::ok);
    leave.arrive_and_wait();
    EXPECT_EQ(backend.synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend.query_stream(device, stream), DeviceStatus::ok);
    other.join();
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

TEST(HostBackend, RejectsDestroyingTheDefaultStream) {
    HostBackend backend;
    EXPECT_EQ(backend.destroy_stream(device, nullptr), DeviceStatus::invalid_argument);
    EXPECT_EQ(backend.last_error(),
              "destroy_stream: stream nullptr: expected one that was created and not destroyed");
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
