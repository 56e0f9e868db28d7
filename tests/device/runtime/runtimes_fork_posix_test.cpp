#include <gtest/gtest.h>

#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::holds_in_child;

TEST(RuntimesAfterAFork, ChildStartsWithoutRuntimesOfItsParent) {
    const PutInBackend simulated(lazy_devices(2));
    Runtime& of_parent = get_runtime({DeviceType::simulated, 0});
    EXPECT_TRUE(holds_in_child([&] {
        return device_count(DeviceType::simulated) == 0 && device_count(DeviceType::cpu) == 1;
    }));
    EXPECT_EQ(&get_runtime({DeviceType::simulated, 0}), &of_parent);
}

TEST(RuntimesAfterAFork, ChildUsesItsOwnRuntimeOfTheCpu) {
    Runtime& of_parent = get_runtime({DeviceType::cpu, 0});
    const DeviceStream stream(of_parent);
    stream.launch([] {});
    stream.synchronize();
    EXPECT_TRUE(holds_in_child([&] {
        Runtime& own = get_runtime({DeviceType::cpu, 0});
        const DeviceStream of_child(own);
        DeviceAllocation memory(own, 1000, of_child);
        memory.set(0, made_bytes(1000));
        return &own != &of_parent && content_of(memory) == made_bytes(1000);
    }));
}

TEST(RuntimesAfterAFork, HandlesOfTheParentFreeNothingInTheChild) {
    const PutInBackend simulated(lazy_devices());
    Runtime& runtime = get_runtime({DeviceType::simulated, 0});
    DeviceAllocation memory = runtime.allocate(1000);
    DeviceAllocation host = get_runtime({DeviceType::cpu, 0}).allocate(1000);
    auto stream = std::make_unique<DeviceStream>(runtime);
    auto event = std::make_unique<DeviceEvent>(runtime);
    const std::uint64_t calls = simulated->calls()[SimulatedCall::destroy_stream];
    EXPECT_TRUE(holds_in_child([&] {
        memory.reset();
        host.reset();
        stream.reset();
        event.reset();
        reset_runtimes();
        return simulated->calls()[SimulatedCall::destroy_stream] == calls;
    }));
    EXPECT_NE(memory.data(), nullptr);
    EXPECT_GE(runtime.allocator().statistics().in_use_bytes, 1000u);
}

}  // namespace
}  // namespace tensorpool
