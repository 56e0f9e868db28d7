// Contract: capture of work, and launches of graphs.

#include <thread>
#include <vector>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {

TEST_P(BackendWithoutCapture, ReportsThatItCannotCapture) {
    const StreamHandle stream = make_stream();
    EXPECT_EQ(backend().begin_capture(device, stream), DeviceStatus::not_supported);
    const auto nonsense = nonsense_handle<GraphHandle>();
    GraphHandle graph = nonsense;
    EXPECT_EQ(backend().end_capture(device, stream, &graph), DeviceStatus::not_supported);
    EXPECT_EQ(graph, nonsense);
    // not_supported and invalid_argument are both correct, because no graph can exist.
    EXPECT_NE(backend().launch_graph(device, graph, stream), DeviceStatus::ok);
    EXPECT_NE(backend().destroy_graph(device, graph), DeviceStatus::ok);
    CaptureState state = {true, 7};
    EXPECT_EQ(backend().capture_state(device, stream, state), DeviceStatus::ok);
    EXPECT_FALSE(state.capturing);
    EXPECT_EQ(state.id, 0U);
}

TEST_P(BackendWithCapture, CapturesWorkAndRunsItAtLaunch) {
    const StreamHandle stream = make_stream();
    void* const memory = make_memory(kib);
    write(memory, Bytes(kib, 1));
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok) << backend().last_error();
    EXPECT_EQ(backend().fill_async(device, memory, 2, kib, stream), DeviceStatus::ok);
    EXPECT_EQ(note(stream, 1), DeviceStatus::ok);
    EXPECT_EQ(note(stream, 2), DeviceStatus::ok);
    const GraphHandle graph = end_capture(stream);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{});
    EXPECT_EQ(read(memory, kib), Bytes(kib, 1));
    for (const StreamHandle where : {stream, make_stream(), StreamHandle(nullptr)}) {
        ASSERT_EQ(backend().launch_graph(device, graph, where), DeviceStatus::ok)
            << backend().last_error();
        note(where, 3);
        ASSERT_EQ(backend().synchronize_stream(device, where), DeviceStatus::ok);
    }
    EXPECT_EQ(noted(), (std::vector<int>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
    EXPECT_EQ(read(memory, kib), Bytes(kib, 2));
}

TEST_P(BackendWithCapture, ReportsWhichStreamsAreCaptured) {
    const StreamHandle stream = make_stream();
    const StreamHandle other = make_stream();
    std::uint64_t last = 0;
    for (int turn = 0; turn < 2; ++turn) {
        ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
        EXPECT_TRUE(state_of(stream).capturing);
        EXPECT_NE(state_of(stream).id, 0U);
        EXPECT_NE(state_of(stream).id, last);
        last = state_of(stream).id;
        EXPECT_FALSE(state_of(other).capturing);
        end_capture(stream);
        EXPECT_FALSE(state_of(stream).capturing);
        EXPECT_EQ(state_of(stream).id, 0U);
    }
}

TEST_P(BackendWithCapture, StreamThatWaitsForACapturedStreamJoinsTheCapture) {
    const StreamHandle stream = make_stream();
    const StreamHandle branch = make_stream();
    const EventHandle fork = make_event();
    const EventHandle join = make_event();
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
    note(stream, 1);
    ASSERT_EQ(backend().record_event(device, fork, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().wait_event(device, branch, fork), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_EQ(state_of(branch).id, state_of(stream).id);
    note(branch, 2);
    ASSERT_EQ(backend().record_event(device, join, branch), DeviceStatus::ok);
    ASSERT_EQ(backend().wait_event(device, stream, join), DeviceStatus::ok);
    note(stream, 3);
    const GraphHandle graph = end_capture(stream);
    EXPECT_FALSE(state_of(branch).capturing);
    for (int turn = 0; turn < 2; ++turn) {
        ASSERT_EQ(backend().launch_graph(device, graph, stream), DeviceStatus::ok);
    }
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(noted(), (std::vector<int>{1, 2, 3, 1, 2, 3}));
}

TEST_P(BackendWithCapture, UnjoinedBranchFailsTheCapture) {
    const StreamHandle stream = make_stream();
    const StreamHandle branch = make_stream();
    const EventHandle fork = make_event();
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
    note(stream, 1);
    ASSERT_EQ(backend().record_event(device, fork, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().wait_event(device, branch, fork), DeviceStatus::ok);
    note(branch, 2);
    const auto nonsense = nonsense_handle<GraphHandle>();
    GraphHandle graph = nonsense;
    EXPECT_NE(backend().end_capture(device, stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(graph, nonsense);
    // The capture has ended, and its streams work normally.
    EXPECT_FALSE(state_of(stream).capturing);
    EXPECT_FALSE(state_of(branch).capturing);
    note(branch, 3);
    EXPECT_EQ(backend().synchronize_stream(device, branch), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{3});
}

TEST_P(BackendWithCapture, WaitingCallsAreRejectedOnTheCapturingThread) {
    const StreamHandle stream = make_stream();
    const StreamHandle other = make_stream();
    const EventHandle event = make_event();
    void* const there = make_memory(kib);
    unsigned char byte = 5;
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
    note(stream, 1);
    constexpr auto expected = DeviceStatus::in_capture;
    void* memory = this;
    expect_refused(backend().synchronize_device(device), expected);
    expect_refused(backend().synchronize_stream(device, stream), expected);
    expect_refused(backend().synchronize_stream(device, other), expected);
    expect_refused(backend().synchronize_event(device, event), expected);
    expect_refused(backend().copy(device, CopyKind::device_to_host, &byte, there, 1), expected);
    expect_refused(backend().fill(device, there, 1, kib), expected);
    const DeviceStatus allocated =
        backend().allocate(device, kib, StorageKind::private_storage, &memory);
    EXPECT_TRUE(allocated == DeviceStatus::ok || allocated == expected) << "depends on the device";
    EXPECT_EQ(memory == this, allocated != DeviceStatus::ok);
    EXPECT_EQ(byte, 5);
    // These calls did not affect the capture.
    note(stream, 2);
    const GraphHandle graph = end_capture(stream);
    if (allocated == DeviceStatus::ok) {
        EXPECT_EQ(backend().deallocate(device, memory, kib, StorageKind::private_storage),
                  DeviceStatus::ok);
    }
    ASSERT_EQ(backend().launch_graph(device, graph, other), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, other), DeviceStatus::ok);
    EXPECT_EQ(noted(), (std::vector<int>{1, 2}));
}

TEST_P(BackendWithCapture, OtherThreadsWorkWhileOneCaptures) {
    const StreamHandle stream = make_stream();
    const StreamHandle other = make_stream();
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
    note(stream, 1);
    std::thread([&] {
        void* const memory = make_memory(kib);
        EXPECT_EQ(backend().fill_async(device, memory, 8, kib, other), DeviceStatus::ok);
        EXPECT_EQ(backend().synchronize_stream(device, other), DeviceStatus::ok);
        EXPECT_EQ(read(memory, kib), Bytes(kib, 8));
    }).join();
    end_capture(stream);
    EXPECT_EQ(noted(), std::vector<int>{});
}

TEST_P(BackendWithCaptureThatKnowsHandles, RejectsInvalidCapturesAndGraphs) {
    const StreamHandle stream = make_stream();
    const auto nonsense = nonsense_handle<GraphHandle>();
    GraphHandle graph = nonsense;
    expect_refused(backend().end_capture(device, stream, &graph));
    EXPECT_EQ(graph, nonsense);
    expect_refused(backend().launch_graph(device, nonsense, stream));
    expect_refused(backend().destroy_graph(device, nonsense));
    expect_refused(backend().begin_capture(device, nonsense_handle<StreamHandle>()));
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
    EXPECT_NE(backend().begin_capture(device, stream), DeviceStatus::ok);  // already captured
    ASSERT_EQ(backend().end_capture(device, stream, &graph), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_graph(device, graph), DeviceStatus::ok);
    expect_refused(backend().destroy_graph(device, graph));
    expect_refused(backend().launch_graph(device, graph, stream));
}

TEST_P(BackendWithCapture, GraphMayBeDestroyedWhileItsWorkRuns) {
    const StreamHandle stream = make_stream();
    GraphHandle graph = nullptr;
    ASSERT_EQ(backend().begin_capture(device, stream), DeviceStatus::ok);
    for (int number = 0; number < 5; ++number) note(stream, number);
    ASSERT_EQ(backend().end_capture(device, stream, &graph), DeviceStatus::ok);
    ASSERT_EQ(backend().launch_graph(device, graph, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_graph(device, graph), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, stream), DeviceStatus::ok);
    EXPECT_EQ(noted(), (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace tensorpool::testing
