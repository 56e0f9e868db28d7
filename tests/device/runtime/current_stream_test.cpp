#include <tensorpool/device/current_stream.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

class CurrentStream : public testing::Test {
protected:
    ~CurrentStream() override {
        EXPECT_EQ(simulated_->hazard_count(), 0u) << simulated_->hazard_report();
    }

    const PutInBackend simulated_{lazy_devices(2)};
    Runtime& runtime_ = get_runtime({DeviceType::simulated, 0});
    Runtime& other_ = get_runtime({DeviceType::simulated, 1});
};

TEST_F(CurrentStream, IsTheDefaultStreamOutsideScopes) {
    EXPECT_EQ(runtime_.current_stream(), nullptr);
    const DeviceStream stream(runtime_);
    { const CurrentStreamScope scope(stream); }
    EXPECT_EQ(runtime_.current_stream(), nullptr);
}

TEST_F(CurrentStream, IsSetPerDeviceAndRestoredInReverseOrder) {
    const DeviceStream one(runtime_);
    const DeviceStream two(runtime_);
    const DeviceStream on_other(other_);
    const CurrentStreamScope outer(one);
    {
        const CurrentStreamScope scope_of_other(on_other);
        EXPECT_EQ(runtime_.current_stream(), one.handle());
        const CurrentStreamScope inner(runtime_, two);
        EXPECT_EQ(runtime_.current_stream(), two.handle());
        EXPECT_EQ(other_.current_stream(), on_other.handle());
        const CurrentStreamScope innermost(runtime_, nullptr);
        EXPECT_EQ(runtime_.current_stream(), nullptr);
    }
    EXPECT_EQ(runtime_.current_stream(), one.handle());
    EXPECT_EQ(other_.current_stream(), nullptr);
}

TEST_F(CurrentStream, IsPerThread) {
    const DeviceStream stream(runtime_);
    const CurrentStreamScope scope(stream);
    std::thread([&] { EXPECT_EQ(runtime_.current_stream(), nullptr); }).join();
}

TEST_F(CurrentStream, IsUsedForMemoryWithoutAnExplicitStream) {
    const DeviceStream stream(runtime_);
    const CurrentStreamScope scope(stream);
    runtime_.activate();
    EXPECT_EQ(DeviceAllocation(1000).stream(), stream.handle());
    EXPECT_EQ(DeviceAllocation(1000).stream(), stream.handle());
    EXPECT_EQ(runtime_.allocate(1000).stream(), stream.handle());
    EXPECT_EQ(runtime_.allocate_pinned(1000).stream(), stream.handle());
    EXPECT_EQ(runtime_.allocate_host(1000).stream(), stream.handle());
    EXPECT_EQ(runtime_.allocate(1000, nullptr).stream(), nullptr);
    EXPECT_EQ(DeviceAllocation(other_, 1000).stream(), nullptr);
}

TEST_F(CurrentStream, IsWaitedForByCopiesAndFillsWithoutAStream) {
    const DeviceStream stream(runtime_);
    DeviceAllocation memory = runtime_.allocate(1000, stream);
    const std::vector<std::byte> source = made_bytes(1000);
    std::vector<std::byte> result(1000);
    const CurrentStreamScope scope(stream);
    memory.fill(1);
    runtime_.copy_host_to_device(memory.data(), source.data(), 1000);
    runtime_.copy_device_to_host(result.data(), memory.data(), 1000);
    EXPECT_EQ(result, source);
    memory.fill(2);
    runtime_.fill(memory.data(), 3, 1000);
    memory.get(0, result);
    EXPECT_EQ(result, std::vector<std::byte>(1000, std::byte{3}));
}

// A copy of ported code that names no stream follows the kernels of the default stream.
TEST_F(CurrentStream, CopyWithoutAStreamSeesTheWorkOfTheDefaultStream) {
    DeviceAllocation memory = runtime_.allocate(1000);
    std::vector<std::byte> result(1000);
    memory.fill(7);
    runtime_.copy_device_to_host(result.data(), memory.data(), 1000);
    EXPECT_EQ(result, std::vector<std::byte>(1000, std::byte{7}));
}

TEST_F(CurrentStream, IsRecordedAndWaitedForByDefault) {
    const DeviceStream stream(runtime_);
    DeviceEvent event(runtime_);
    bool done = false;
    const CurrentStreamScope scope(stream);
    stream.launch([&] { done = true; });
    event.record();
    EXPECT_FALSE(event.query());
    runtime_.synchronize();
    EXPECT_TRUE(done);
    EXPECT_TRUE(event.query());
}

TEST(RuntimeStream, IsMadeOnceAndEndsWithTheRuntime) {
    const auto backend = std::make_shared<SimulatedBackend>(lazy_devices());
    {
        Runtime runtime(backend, {DeviceType::simulated, 0});
        EXPECT_EQ(backend->calls()[SimulatedCall::create_stream], 0u);
        DeviceStream& stream = runtime.stream();
        EXPECT_EQ(&runtime.stream(), &stream);
        EXPECT_NE(stream.handle(), nullptr);
        const DeviceAllocation memory = runtime.allocate(1000, stream);
        EXPECT_EQ(backend->calls()[SimulatedCall::create_stream], 1u);
        EXPECT_EQ(backend->calls()[SimulatedCall::destroy_stream], 0u);
    }
    EXPECT_EQ(backend->calls()[SimulatedCall::destroy_stream], 1u);
    EXPECT_EQ(backend->hazard_count(), 0u) << backend->hazard_report();
}

TEST(RuntimeStream, PriorityOutsideTheRangeIsRejected) {
    const auto backend = std::make_shared<SimulatedBackend>(lazy_devices());
    RuntimeOptions options;
    options.stream_priority = 3;
    Runtime runtime(backend, {DeviceType::simulated, 0}, options);
    EXPECT_EQ(runtime.stream_priorities().lowest, 0);
    EXPECT_EQ(runtime.stream_priorities().highest, 0);
    for (const bool own : {true, false}) {
        try {
            if (own) {
                (void)runtime.stream();
            } else {
                const DeviceStream stream(runtime, 3);
            }
            ADD_FAILURE();
        } catch (const DeviceError& error) {
            EXPECT_EQ(error.status(), DeviceStatus::invalid_argument);
            EXPECT_NE(std::string(error.what()).find("priority 3, expected 0 (the highest) to 0"),
                      std::string::npos)
                << error.what();
        }
    }
}

}  // namespace
}  // namespace tensorpool
