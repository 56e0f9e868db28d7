// Contract: the order of work in streams, and what they wait for.

#include <thread>
#include <vector>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {

TEST_P(BackendContract, WorkOfAStreamRunsInOrderOfSubmission) {
    std::vector<int> expected;
    for (const StreamHandle stream : {make_stream(), StreamHandle(nullptr)}) {
        for (int number = 0; number < 50; ++number) {
            ASSERT_EQ(note(stream, number), DeviceStatus::ok) << backend().last_error();
            expected.push_back(number);
        }
        ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
        EXPECT_EQ(noted(), expected);
        EXPECT_EQ(backend().query_stream(device, stream), DeviceStatus::ok);
    }
}

TEST_P(BackendContract, IdleStreamsAreDone) {
    const StreamHandle stream = make_stream();
    EXPECT_NE(stream, make_stream());
    EXPECT_EQ(backend().query_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().query_stream(device, nullptr), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_stream(device, nullptr), DeviceStatus::ok);
}

TEST_P(BackendContract, StreamsHavePrioritiesOfTheRange) {
    StreamPriorities range = {7, 7};
    ASSERT_EQ(backend().stream_priorities(device, range), DeviceStatus::ok);
    EXPECT_LE(range.highest, 0);
    EXPECT_GE(range.lowest, 0);
    for (const int priority : {range.highest, range.lowest}) {
        StreamHandle stream = nullptr;
        ASSERT_EQ(backend().create_stream(device, &stream, priority), DeviceStatus::ok)
            << backend().last_error();
        EXPECT_EQ(note(stream, priority), DeviceStatus::ok);
        EXPECT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
        EXPECT_EQ(backend().destroy_stream(device, stream), DeviceStatus::ok);
    }
    EXPECT_EQ(noted(), (std::vector<int>{range.highest, range.lowest}));
    StreamHandle none = nonsense_handle<StreamHandle>();
    expect_refused(backend().create_stream(device, &none, range.highest - 1));
    expect_refused(backend().create_stream(device, &none, range.lowest + 1));
    EXPECT_EQ(none, nonsense_handle<StreamHandle>());
}

TEST_P(BackendContract, SynchronizeDeviceWaitsForAllStreams) {
    const std::vector<StreamHandle> streams = {make_stream(), nullptr, make_stream()};
    for (const StreamHandle stream : streams) note(stream, 1);
    ASSERT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
    EXPECT_EQ(noted().size(), streams.size());
}

TEST_P(BackendWhereFunctionsMayBlock, QueryReportsPendingWork) {
    const StreamHandle stream = make_stream();
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().query_stream(device, stream), DeviceStatus::not_ready);
    note(stream, 1);
    EXPECT_EQ(noted(), std::vector<int>{});
    gate.open();
    EXPECT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().query_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{1});
}

TEST_P(BackendWhereFunctionsMayBlock, StreamsDoNotWaitForEachOther) {
    const std::size_t bytes = 64 * kib;
    unsigned char* const host = make_pinned(bytes);
    void* const memory = make_memory(bytes);
    const StreamHandle free = make_stream();
    for (const StreamHandle held : {make_stream(), StreamHandle(nullptr)}) {
        Gate gate;
        ASSERT_EQ(gate.close(backend(), device, held), DeviceStatus::ok);
        EXPECT_EQ(backend().fill_async(device, memory, 0x19, bytes, free), DeviceStatus::ok);
        EXPECT_EQ(backend().copy_async(device, CopyKind::device_to_host, host, memory, bytes, free),
                  DeviceStatus::ok);
        EXPECT_EQ(backend().synchronize_stream(device, free), DeviceStatus::ok);
        EXPECT_EQ(Bytes(host, host + bytes), Bytes(bytes, 0x19));
        EXPECT_EQ(backend().query_stream(device, held), DeviceStatus::not_ready);
    }
}

TEST_P(BackendContract, DestroyedStreamStillDoesItsWork) {
    StreamHandle stream = nullptr;
    ASSERT_EQ(backend().create_stream(device, &stream), DeviceStatus::ok);
    for (int number = 0; number < 10; ++number) note(stream, number);
    ASSERT_EQ(backend().destroy_stream(device, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
    EXPECT_EQ(noted().size(), 10U);
}

TEST_P(BackendWhereFunctionsMayBlock, DestroyingAStreamDoesNotWaitForItsWork) {
    StreamHandle stream = nullptr;
    ASSERT_EQ(backend().create_stream(device, &stream), DeviceStatus::ok);
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
    note(stream, 1);
    ASSERT_EQ(backend().destroy_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{});
    gate.open();
    ASSERT_EQ(backend().synchronize_device(device), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{1});
}

TEST_P(BackendContract, StreamWaitsForAnEvent) {
    const StreamHandle first = make_stream();
    const StreamHandle second = make_stream();
    const EventHandle event = make_event();
    note(first, 1);
    ASSERT_EQ(backend().record_event(device, event, first), DeviceStatus::ok);
    ASSERT_EQ(backend().wait_event(device, second, event), DeviceStatus::ok);
    note(second, 2);
    ASSERT_EQ(backend().synchronize_stream(device, second), DeviceStatus::ok);
    EXPECT_EQ(noted(), (std::vector<int>{1, 2}));
}

TEST_P(BackendContract, OrderIsTransitiveThroughStreams) {
    std::vector<int> expected;
    StreamHandle last = make_stream();
    const EventHandle event = make_event();  // one event: each wait uses its record at that time
    for (int number = 0; number < 20; ++number) {
        note(last, number);
        expected.push_back(number);
        ASSERT_EQ(backend().record_event(device, event, last), DeviceStatus::ok);
        last = make_stream();
        ASSERT_EQ(backend().wait_event(device, last, event), DeviceStatus::ok);
    }
    ASSERT_EQ(backend().synchronize_stream(device, last), DeviceStatus::ok);
    EXPECT_EQ(noted(), expected);
}

TEST_P(BackendWhereFunctionsMayBlock, WaitUsesTheLatestRecordAtTheTimeOfTheCall) {
    const StreamHandle waits = make_stream();
    const StreamHandle held = make_stream();
    const EventHandle event = make_event();
    ASSERT_EQ(backend().record_event(device, event, make_stream()), DeviceStatus::ok);
    Gate gate;
    ASSERT_EQ(backend().wait_event(device, waits, event), DeviceStatus::ok);
    ASSERT_EQ(gate.close(backend(), device, held), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, event, held), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_stream(device, waits), DeviceStatus::ok);
    EXPECT_EQ(backend().query_event(device, event), DeviceStatus::not_ready);
}

TEST_P(BackendWhereFunctionsMayBlock, WaitingStreamIsNotDone) {
    const StreamHandle held = make_stream();
    const StreamHandle waits = make_stream();
    const EventHandle event = make_event();
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, held), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, event, held), DeviceStatus::ok);
    ASSERT_EQ(backend().wait_event(device, waits, event), DeviceStatus::ok);
    note(waits, 1);
    EXPECT_EQ(backend().query_stream(device, waits), DeviceStatus::not_ready);
    EXPECT_EQ(noted(), std::vector<int>{});
    gate.open();
    ASSERT_EQ(backend().synchronize_stream(device, waits), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{1});
    EXPECT_EQ(backend().query_stream(device, held), DeviceStatus::ok);
}

TEST_P(BackendContract, RedundantWaitsHaveNoEffect) {
    const StreamHandle stream = make_stream();
    const EventHandle event = make_event();
    EXPECT_EQ(backend().wait_event(device, stream, event), DeviceStatus::ok);  // never recorded
    note(stream, 1);
    ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().wait_event(device, stream, event), DeviceStatus::ok);  // its own
    note(stream, 2);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(noted(), (std::vector<int>{1, 2}));
}

TEST_P(BackendContract, EventMayBeDestroyedWhileAStreamWaitsForIt) {
    const StreamHandle first = make_stream();
    const StreamHandle second = make_stream();
    EventHandle event = nullptr;
    ASSERT_EQ(backend().create_event(device, EventFlags::timing, &event), DeviceStatus::ok);
    note(first, 1);
    ASSERT_EQ(backend().record_event(device, event, first), DeviceStatus::ok);
    ASSERT_EQ(backend().wait_event(device, second, event), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_event(device, event), DeviceStatus::ok);
    note(second, 2);
    ASSERT_EQ(backend().synchronize_stream(device, second), DeviceStatus::ok);
    EXPECT_EQ(noted(), (std::vector<int>{1, 2}));
}

TEST_P(BackendThatKnowsHandles, RejectsInvalidStreams) {
    StreamHandle gone = nullptr;
    ASSERT_EQ(backend().create_stream(device, &gone), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_stream(device, gone), DeviceStatus::ok);
    const EventHandle event = make_event();
    int mine = 0;
    for (const StreamHandle none : {gone, nonsense_handle<StreamHandle>()}) {
        expect_refused(backend().destroy_stream(device, none));
        expect_refused(backend().synchronize_stream(device, none));
        expect_refused(backend().query_stream(device, none));
        expect_refused(backend().wait_event(device, none, event));
        expect_refused(backend().record_event(device, event, none));
        expect_refused(note(none, 1));
        expect_refused(backend().fill_async(device, &mine, 1, 1, none));
        expect_refused(
            backend().copy_async(device, CopyKind::host_to_host, &mine, &event, 1, none));
    }
    expect_refused(backend().destroy_stream(device, nullptr));  // the default stream cannot
    expect_refused(backend().launch_host_function(device, nullptr, nullptr, nullptr));
    EXPECT_EQ(noted(), std::vector<int>{});
    EXPECT_EQ(mine, 0);
}

TEST_P(BackendContract, ThreadsUseTheirOwnStreamsConcurrently) {
    constexpr int threads = 4;
    std::vector<StreamHandle> streams;
    std::vector<EventHandle> events;
    std::vector<unsigned char*> memory;
    for (int i = 0; i < threads; ++i) {
        streams.push_back(make_stream());
        events.push_back(make_event());
        memory.push_back(make_pinned(kib));
    }
    const auto work = [&](std::size_t self) {
        for (int round = 0; round < 50; ++round) {
            const auto byte = static_cast<std::uint8_t>(round);
            EXPECT_EQ(backend().fill_async(device, memory[self], byte, kib, streams[self]),
                      DeviceStatus::ok);
            EXPECT_EQ(backend().record_event(device, events[self], streams[self]),
                      DeviceStatus::ok);
            EXPECT_EQ(backend().synchronize_event(device, events[self]), DeviceStatus::ok);
            EXPECT_EQ(memory[self][kib - 1], byte);
        }
    };
    std::vector<std::thread> workers;
    for (std::size_t self = 0; self < threads; ++self) workers.emplace_back(work, self);
    for (std::thread& worker : workers) worker.join();
}

}  // namespace tensorpool::testing
