#include <tensorpool/device/device_stream.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <memory>
#include <string>
#include <utility>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

TEST(DeviceStream, DoesItsWorkInOrder) {
    const PutInBackend simulated(lazy_devices());
    const DeviceStream stream(get_runtime({DeviceType::simulated, 0}));
    std::string done;
    EXPECT_TRUE(stream.query());
    stream.launch([&] { done += "a"; });
    stream.launch([&] { done += "b"; });
    EXPECT_FALSE(stream.query());
    EXPECT_EQ(done, "");
    stream.synchronize();
    EXPECT_EQ(done, "ab");
    EXPECT_TRUE(stream.query());
}

TEST(DeviceStream, DefaultsToTheCurrentDevice) {
    const PutInBackend simulated(lazy_devices(2));
    get_runtime({DeviceType::simulated, 1}).activate();
    const DeviceStream stream;
    EXPECT_EQ(stream.device(), (Device{DeviceType::simulated, 1}));
    EXPECT_NE(stream.handle(), nullptr);
}

TEST(DeviceStream, WaitsForAnEventOfAnotherStream) {
    const PutInBackend simulated(lazy_devices(2));
    const DeviceStream first(get_runtime({DeviceType::simulated, 0}));
    const DeviceStream second(get_runtime({DeviceType::simulated, 1}));
    DeviceEvent event(get_runtime({DeviceType::simulated, 0}));
    std::string done;
    first.launch([&] { done += "first "; });
    event.record(first);
    second.wait(event);
    second.launch([&] { done += "second"; });
    second.synchronize();
    EXPECT_EQ(done, "first second");
}

TEST(DeviceStream, CannotWaitForAnEventOfAnotherBackend) {
    const PutInBackend simulated(lazy_devices());
    const DeviceStream stream(get_runtime({DeviceType::cpu, 0}));
    DeviceEvent event(get_runtime({DeviceType::simulated, 0}));
    try {
        stream.wait(event);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::invalid_argument);
        EXPECT_EQ(
            std::string(error.what())
                .find("tensorpool: a stream of cpu:0 cannot wait for an event of simulated:0"),
            0u);
    }
}

TEST(DeviceStream, DestructorCompletesWorkAndKeepsBlocksUsable) {
    const PutInBackend simulated(lazy_devices());
    Runtime& runtime = get_runtime({DeviceType::simulated, 0});
    DeviceAllocation memory;
    DeviceAllocation pinned;
    bool done = false;
    {
        const DeviceStream stream(runtime);
        memory = runtime.allocate(1000, stream);
        pinned = runtime.allocate_pinned(1000, stream);
        memory.fill(1);
        stream.launch([&] { done = true; });
    }
    EXPECT_TRUE(done);
    memory.reset();
    pinned.reset();
    const DeviceStream next(runtime);
    DeviceAllocation again = runtime.allocate(1000, next);
    again.fill(2);
    next.synchronize();
    EXPECT_EQ(simulated->hazard_count(), 0u) << simulated->hazard_report();
}

TEST(DeviceStream, MovesLeaveTheSourceEmpty) {
    const PutInBackend simulated(lazy_devices());
    DeviceStream first(get_runtime({DeviceType::simulated, 0}));
    const StreamHandle handle = first.handle();
    DeviceStream second(std::move(first));
    EXPECT_EQ(second.handle(), handle);
    EXPECT_EQ(first.handle(), nullptr);
    DeviceStream third(get_runtime({DeviceType::simulated, 0}));
    third = std::move(second);
    EXPECT_EQ(third.handle(), handle);
}

// A graph would call the function at each launch.
TEST(DeviceStream, RejectsFunctionsDuringCapture) {
    Runtime device(device_to_capture(), {DeviceType::simulated, 0});
    const DeviceStream stream(device);
    const auto held = std::make_shared<int>(0);
    ASSERT_EQ(device.backend().begin_capture(0, stream), DeviceStatus::ok);
    try {
        stream.launch([held] { ++*held; });
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::in_capture);
        EXPECT_NE(std::string(error.what())
                      .find("tensorpool: launch on simulated:0: not allowed during "
                            "capture: "),
                  std::string::npos)
            << error.what();
    }
    EXPECT_EQ(held.use_count(), 1);
    GraphHandle graph = nullptr;
    ASSERT_EQ(device.backend().end_capture(0, stream, &graph), DeviceStatus::ok);
    EXPECT_EQ(device.backend().launch_graph(0, graph, stream), DeviceStatus::ok);
    stream.synchronize();
    EXPECT_EQ(*held, 0);
    EXPECT_EQ(device.backend().destroy_graph(0, graph), DeviceStatus::ok);
}

TEST(DeviceStream, DestroysItsFunctionAfterTheCall) {
    const PutInBackend simulated(lazy_devices());
    const DeviceStream stream(get_runtime({DeviceType::simulated, 0}));
    const auto held = std::make_shared<int>(0);
    stream.launch([held] { ++*held; });
    EXPECT_EQ(held.use_count(), 2);
    stream.synchronize();
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(*held, 1);
}

}  // namespace
}  // namespace tensorpool
