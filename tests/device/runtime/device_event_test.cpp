#include <tensorpool/device/device_event.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <memory>
#include <string>
#include <utility>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

class DeviceEventTest : public testing::Test {
protected:
    PutInBackend simulated_{lazy_devices()};
    Runtime& runtime_ = get_runtime({DeviceType::simulated, 0});
};

TEST_F(DeviceEventTest, IsReachedBeforeItIsRecorded) {
    const DeviceEvent event(runtime_);
    EXPECT_TRUE(event.query());
    event.synchronize();
    EXPECT_EQ(event.flags(), EventFlags::none);
    EXPECT_EQ(event.device(), (Device{DeviceType::simulated, 0}));
}

TEST_F(DeviceEventTest, PropertiesThatTheDeviceLacksAreRejected) {
    EXPECT_EQ(DeviceEvent(runtime_, EventFlags::blocking).flags(), EventFlags::blocking);
    for (const auto& [flags, status] :
         {std::pair(EventFlags::interprocess, DeviceStatus::not_supported),
          std::pair(EventFlags::interprocess | EventFlags::timing,
                    DeviceStatus::invalid_argument)}) {
        try {
            const DeviceEvent event(runtime_, flags);
            ADD_FAILURE();
        } catch (const DeviceError& error) {
            EXPECT_EQ(error.status(), status);
        }
    }
}

TEST_F(DeviceEventTest, IsReachedWhenEarlierWorkIsDone) {
    const DeviceStream stream(runtime_);
    DeviceEvent event(runtime_);
    std::string done;
    stream.launch([&] { done += "before "; });
    event.record(stream);
    stream.launch([&] { done += "after"; });
    EXPECT_FALSE(event.query());
    event.synchronize();
    EXPECT_TRUE(event.query());
    EXPECT_EQ(done, "before ");
}

TEST_F(DeviceEventTest, MakesAStreamWait) {
    const DeviceStream first(runtime_);
    const DeviceStream second(runtime_);
    DeviceEvent event(runtime_);
    std::string done;
    first.launch([&] { done += "first "; });
    event.record(first);
    event.make_wait(second);
    second.launch([&] { done += "second"; });
    second.synchronize();
    EXPECT_EQ(done, "first second");
}

TEST_F(DeviceEventTest, MeasuresTheTimeBetweenTwoEvents) {
    const DeviceStream stream(runtime_);
    DeviceAllocation memory(runtime_, std::size_t{1} << 20, stream);
    DeviceEvent start(runtime_, EventFlags::timing);
    DeviceEvent end(runtime_, EventFlags::timing);
    start.record(stream);
    memory.fill(0);
    end.record(stream);
    end.synchronize();
    EXPECT_GT(end.elapsed_ms_since(start), 0.0f);
}

TEST_F(DeviceEventTest, WithoutTimingCannotMeasureTime) {
    DeviceEvent start(runtime_);
    DeviceEvent end(runtime_);
    start.record();
    end.record();
    end.synchronize();
    try {
        (void)end.elapsed_ms_since(start);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::invalid_argument);
        EXPECT_EQ(
            std::string(error.what()).find("tensorpool: elapsed_ms on simulated:0: invalid arg"),
            0u);
    }
}

TEST_F(DeviceEventTest, OfAnotherBackendCannotMeasureTime) {
    Runtime other(std::make_shared<SimulatedBackend>(lazy_devices()), {DeviceType::simulated, 0});
    DeviceEvent start(other, EventFlags::timing);
    DeviceEvent end(runtime_, EventFlags::timing);
    start.record();
    end.record();
    start.synchronize();
    end.synchronize();
    try {
        (void)end.elapsed_ms_since(start);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::invalid_argument);
        EXPECT_STREQ(error.what(),
                     "tensorpool: elapsed_ms_since on simulated:0: the other event belongs to "
                     "simulated:0 of another backend; expected two events of one backend");
    }
}

TEST_F(DeviceEventTest, DefaultsToTheCurrentDeviceAndMoves) {
    runtime_.activate();
    DeviceEvent first(EventFlags::timing);
    const EventHandle handle = first.handle();
    DeviceEvent second(std::move(first));
    EXPECT_EQ(first.handle(), nullptr);
    EXPECT_EQ(second.handle(), handle);
    DeviceEvent third;
    third = std::move(second);
    EXPECT_EQ(third.handle(), handle);
    EXPECT_EQ(third.flags(), EventFlags::timing);
    EXPECT_EQ(third.device(), (Device{DeviceType::simulated, 0}));
}

}  // namespace
}  // namespace tensorpool
