#include <tensorpool/device/empty.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/current_stream.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtimes.hpp>
#include <tensorpool/device/simulated_backend.hpp>

#include <memory>
#include <stdexcept>

namespace tensorpool {
namespace {

const DataType f32 = DataType::of<float>();

TEST(DeviceEmpty, MemoryOfTheCpuComesFromTheGlobalPool) {
    const TensorAllocation tensor = empty({10}, f32, Device{});
    EXPECT_TRUE(get_global_memory_pool().owns(tensor.get()));
}

/// The program has one simulated device.
class EmptyOnADevice : public ::testing::Test {
protected:
    EmptyOnADevice() { set_backend(DeviceType::simulated, std::make_shared<SimulatedBackend>()); }
    ~EmptyOnADevice() override { set_backend(DeviceType::simulated, nullptr); }

    const Device device_{DeviceType::simulated, 0};
};

TEST_F(EmptyOnADevice, MemoryComesFromTheAllocatorOfItsRuntime) {
    Runtime& runtime = get_runtime(device_);
    const std::uint64_t before = runtime.allocator().statistics().in_use_bytes;
    {
        const TensorAllocation tensor = empty({256, 256}, f32, device_);
        EXPECT_EQ(tensor.bytes(), 256U * 256 * 4);
        EXPECT_GE(runtime.allocator().statistics().in_use_bytes, before + tensor.bytes());
        EXPECT_NE(tensor.device(), SourceDevice{}) << "not the CPU";
    }
    EXPECT_EQ(runtime.allocator().statistics().in_use_bytes, before);
}

TEST_F(EmptyOnADevice, MemoryIsForTheStream) {
    const DeviceStream stream(get_runtime(device_));
    const TensorAllocation tensor = empty({1000}, f32, device_, stream.handle());
    EXPECT_NE(tensor.get(), nullptr);
}

TEST_F(EmptyOnADevice, RejectsADeviceThatDoesNotExist) {
    EXPECT_THROW((void)empty({1}, f32, {DeviceType::simulated, 9}), std::invalid_argument);
}

TEST_F(EmptyOnADevice, MemoryIsForTheCurrentStreamByDefault) {
    Runtime& runtime = get_runtime(device_);
    const DeviceStream stream(runtime);
    const CurrentStreamScope scope(stream);
    const TensorAllocation tensor = empty({256}, f32, device_);
    EXPECT_TRUE(runtime.allocator().is_used_on(tensor.get(), stream));
    const TensorAllocation other = empty({256}, f32, device_, nullptr);
    EXPECT_TRUE(runtime.allocator().is_used_on(other.get(), nullptr));
}

}  // namespace
}  // namespace tensorpool
