// Contract: the work that events wait for, and when they are reached.

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {

TEST_P(BackendContract, UnrecordedEventIsReached) {
    const EventHandle event = make_event();
    EXPECT_EQ(backend().query_event(device, event), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
}

TEST_P(BackendContract, EventIsReachedWhenTheWorkBeforeItIsDone) {
    const StreamHandle stream = make_stream();
    for (const EventFlags flags : {EventFlags::none, EventFlags::timing, EventFlags::blocking}) {
        const EventHandle event = make_event(flags);
        note(stream, 1);
        ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
        EXPECT_EQ(backend().query_event(device, event), DeviceStatus::ok);
    }
    EXPECT_EQ(noted().size(), 3U);
}

TEST_P(BackendContract, EventOfAnIdleStreamIsReached) {
    const EventHandle event = make_event();
    ASSERT_EQ(backend().record_event(device, event, nullptr), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
    EXPECT_EQ(backend().query_event(device, event), DeviceStatus::ok);
}

TEST_P(BackendWhereFunctionsMayBlock, EventIsNotReadyWhileEarlierWorkRuns) {
    const StreamHandle stream = make_stream();
    const EventHandle before = make_event();
    ASSERT_EQ(backend().record_event(device, before, stream), DeviceStatus::ok);
    for (const EventFlags flags : {EventFlags::none, EventFlags::timing, EventFlags::blocking}) {
        const EventHandle event = make_event(flags);
        Gate gate;
        ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
        ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
        EXPECT_EQ(backend().query_event(device, event), DeviceStatus::not_ready);
        EXPECT_EQ(backend().synchronize_event(device, before), DeviceStatus::ok);
        gate.open();
        EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
        EXPECT_EQ(backend().query_event(device, event), DeviceStatus::ok);
    }
}

TEST_P(BackendWhereFunctionsMayBlock, EventDoesNotWaitForLaterWork) {
    const StreamHandle stream = make_stream();
    const EventHandle event = make_event();
    note(stream, 1);
    ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{1});
    EXPECT_EQ(backend().query_stream(device, stream), DeviceStatus::not_ready);
}

TEST_P(BackendWhereFunctionsMayBlock, EventRecordedAgainWaitsForTheNewWork) {
    const StreamHandle stream = make_stream();
    const EventHandle event = make_event();
    ASSERT_EQ(backend().record_event(device, event, make_stream()), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
    EXPECT_EQ(backend().query_event(device, event), DeviceStatus::not_ready);
    // Recorded in an idle stream, it no longer waits for the former work.
    ASSERT_EQ(backend().record_event(device, event, make_stream()), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
}

TEST_P(BackendContract, EventOutlivesItsStream) {
    StreamHandle stream = nullptr;
    ASSERT_EQ(backend().create_stream(device, &stream), DeviceStatus::ok);
    const EventHandle event = make_event();
    note(stream, 1);
    ASSERT_EQ(backend().record_event(device, event, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_stream(device, stream), DeviceStatus::ok);
    // Another stream may reuse the destroyed stream's storage.
    note(make_stream(), 2);
    EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
    EXPECT_EQ(backend().query_event(device, event), DeviceStatus::ok);
    EXPECT_NE(noted(), std::vector<int>{2});
}

TEST_P(BackendContract, MeasuresTheTimeBetweenTwoEvents) {
    const StreamHandle stream = make_stream();
    const EventHandle begin = make_event(EventFlags::timing);
    const EventHandle end = make_event(EventFlags::timing);
    ASSERT_EQ(backend().record_event(device, begin, stream), DeviceStatus::ok);
    note(stream, 1);
    ASSERT_EQ(backend().record_event(device, end, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_event(device, end), DeviceStatus::ok);
    float ms = -1;
    ASSERT_EQ(backend().elapsed_ms(device, begin, end, &ms), DeviceStatus::ok)
        << backend().last_error();
    EXPECT_GE(ms, 0);
    float back = 1;
    ASSERT_EQ(backend().elapsed_ms(device, end, begin, &back), DeviceStatus::ok);
    EXPECT_LE(back, 0);
}

TEST_P(BackendContract, RejectsTimesOfUntimedOrUnrecordedEvents) {
    const EventHandle timed = make_event(EventFlags::timing);
    const EventHandle never = make_event(EventFlags::timing);
    const EventHandle untimed = make_event(EventFlags::none);
    float ms = 7;
    expect_refused(backend().elapsed_ms(device, timed, never, &ms));
    ASSERT_EQ(backend().record_event(device, timed, nullptr), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, untimed, nullptr), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_stream(device, nullptr), DeviceStatus::ok);
    expect_refused(backend().elapsed_ms(device, timed, never, &ms));
    expect_refused(backend().elapsed_ms(device, never, timed, &ms));
    expect_refused(backend().elapsed_ms(device, timed, untimed, &ms));
    expect_refused(backend().elapsed_ms(device, untimed, timed, &ms));
    if (knows_handles()) {
        expect_refused(backend().elapsed_ms(device, timed, nonsense_handle<EventHandle>(), &ms));
    }
    EXPECT_EQ(ms, 7);
}

TEST_P(BackendContract, BlockingEventsMayHaveTiming) {
    const EventHandle begin = make_event(EventFlags::timing);
    const EventHandle end = make_event(EventFlags::timing | EventFlags::blocking);
    ASSERT_EQ(backend().record_event(device, begin, nullptr), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, end, nullptr), DeviceStatus::ok);
    ASSERT_EQ(backend().synchronize_event(device, end), DeviceStatus::ok);
    float ms = -1;
    EXPECT_EQ(backend().elapsed_ms(device, begin, end, &ms), DeviceStatus::ok);
    EXPECT_GE(ms, 0);
}

TEST_P(BackendContract, InterprocessEventsHaveNoTiming) {
    EventHandle event = nullptr;
    expect_refused(
        backend().create_event(device, EventFlags::interprocess | EventFlags::timing, &event));
    EXPECT_EQ(event, nullptr);
    const DeviceStatus status =
        backend().create_event(device, EventFlags::interprocess | EventFlags::blocking, &event);
    if (status != DeviceStatus::ok) return expect_refused(status, DeviceStatus::not_supported);
    note(nullptr, 1);
    EXPECT_EQ(backend().record_event(device, event, nullptr), DeviceStatus::ok);
    EXPECT_EQ(backend().synchronize_event(device, event), DeviceStatus::ok);
    EXPECT_EQ(noted(), std::vector<int>{1});
    EXPECT_EQ(backend().destroy_event(device, event), DeviceStatus::ok);
}

TEST_P(BackendWhereFunctionsMayBlock, ElapsedTimeIsNotReadyBeforeTheEventsAreReached) {
    const StreamHandle stream = make_stream();
    const EventHandle begin = make_event(EventFlags::timing);
    const EventHandle end = make_event(EventFlags::timing);
    ASSERT_EQ(backend().record_event(device, begin, stream), DeviceStatus::ok);
    Gate gate;
    ASSERT_EQ(gate.close(backend(), device, stream), DeviceStatus::ok);
    ASSERT_EQ(backend().record_event(device, end, stream), DeviceStatus::ok);
    float ms = 7;
    EXPECT_EQ(backend().elapsed_ms(device, begin, end, &ms), DeviceStatus::not_ready);
    EXPECT_EQ(ms, 7);
    gate.open();
    ASSERT_EQ(backend().synchronize_event(device, end), DeviceStatus::ok);
    EXPECT_EQ(backend().elapsed_ms(device, begin, end, &ms), DeviceStatus::ok);
}

TEST_P(BackendThatKnowsHandles, RejectsInvalidEvents) {
    EventHandle gone = nullptr;
    ASSERT_EQ(backend().create_event(device, EventFlags::none, &gone), DeviceStatus::ok);
    ASSERT_EQ(backend().destroy_event(device, gone), DeviceStatus::ok);
    for (const EventHandle none : {gone, nonsense_handle<EventHandle>(), EventHandle(nullptr)}) {
        expect_refused(backend().destroy_event(device, none));
        expect_refused(backend().record_event(device, none, nullptr));
        expect_refused(backend().query_event(device, none));
        expect_refused(backend().synchronize_event(device, none));
        expect_refused(backend().wait_event(device, nullptr, none));
    }
}

}  // namespace tensorpool::testing
