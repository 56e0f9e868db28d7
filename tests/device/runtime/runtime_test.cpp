#include <tensorpool/device/runtime.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/simulated_backend.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/runtime/made_bytes.hpp"
#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

class RuntimeTest : public testing::Test {
protected:
    ~RuntimeTest() override {
        EXPECT_EQ(backend_->hazard_count(), 0u) << backend_->hazard_report();
    }

    std::shared_ptr<SimulatedBackend> backend_ =
        std::make_shared<SimulatedBackend>(lazy_devices(2));
    Runtime runtime_{backend_, {DeviceType::simulated, 0}};
};

TEST_F(RuntimeTest, ReportsItsDevice) {
    EXPECT_EQ(runtime_.device(), (Device{DeviceType::simulated, 0}));
    EXPECT_EQ(runtime_.name(), backend_->device_name(0));
    EXPECT_EQ(runtime_.memory_info().total_bytes, device_bytes);
    EXPECT_TRUE(runtime_.abilities().graph_capture);
    EXPECT_EQ(runtime_.default_stream(), nullptr);
    EXPECT_EQ(&runtime_.allocator(), runtime_.caching_allocator());
    EXPECT_EQ(runtime_.pinned_allocator().statistics().kind, DeviceStatistics::Kind::pinned);
    EXPECT_EQ(runtime_.host_allocator().statistics().kind, DeviceStatistics::Kind::host);
}

TEST_F(RuntimeTest, MissingDeviceIsRejected) {
    try {
        const Runtime none(backend_, {DeviceType::simulated, 2});
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: there is no device simulated:2: the backend has 2 devices");
    }
}

TEST_F(RuntimeTest, NullptrBackendIsRejected) {
    EXPECT_THROW(Runtime(nullptr, {DeviceType::cpu, 0}), std::invalid_argument);
}

TEST_F(RuntimeTest, CopiesInAllDirections) {
    const std::vector<std::byte> source = made_bytes(1000);
    std::vector<std::byte> between(1000);
    std::vector<std::byte> result(1000);
    const DeviceAllocation one = runtime_.allocate(1000);
    const DeviceAllocation other = runtime_.allocate(1000);
    runtime_.copy_host_to_host(between.data(), source.data(), 1000);
    runtime_.copy_host_to_device(one.data(), between.data(), 1000);
    runtime_.copy_device_to_device(other.data(), one.data(), 1000);
    runtime_.copy_device_to_host(result.data(), other.data(), 1000);
    EXPECT_EQ(result, source);
    runtime_.fill(other.data(), 0x5a, 1000);
    runtime_.copy_device_to_host(result.data(), other.data(), 1000);
    EXPECT_EQ(result, std::vector<std::byte>(1000, std::byte{0x5a}));
}

TEST_F(RuntimeTest, CopiesInAllDirectionsInTheOrderOfAStream) {
    const DeviceStream stream(runtime_);
    const DeviceAllocation from = runtime_.allocate_pinned(1000, stream);
    const DeviceAllocation between = runtime_.allocate_pinned(1000, stream);
    const DeviceAllocation to = runtime_.allocate_pinned(1000, stream);
    const std::vector<std::byte> source = made_bytes(1000);
    std::memcpy(from.host_pointer(), source.data(), 1000);
    const DeviceAllocation one = runtime_.allocate(1000, stream);
    const DeviceAllocation other = runtime_.allocate(1000, stream);
    runtime_.copy_host_to_host(between.data(), from.data(), 1000, stream);
    runtime_.copy_host_to_device(one.data(), between.data(), 1000, stream);
    runtime_.copy_device_to_device(other.data(), one.data(), 1000, stream);
    runtime_.fill(other.data(), 0x5a, 10, stream);
    runtime_.copy_device_to_host(to.data(), other.data(), 1000, stream);
    EXPECT_FALSE(stream.query());
    runtime_.synchronize_stream(stream);
    EXPECT_EQ(std::memcmp(static_cast<std::byte*>(to.data()) + 10, source.data() + 10, 990), 0);
    EXPECT_EQ(*static_cast<std::byte*>(to.data()), std::byte{0x5a});
}

TEST_F(RuntimeTest, WaitsForOneStreamOrForAll) {
    const DeviceStream one(runtime_);
    const DeviceStream other(runtime_);
    int done = 0;
    one.launch([&] { ++done; });
    other.launch([&] { done += 10; });
    runtime_.synchronize_stream(one);
    EXPECT_EQ(done, 1);
    runtime_.synchronize();
    EXPECT_EQ(done, 1);
    runtime_.synchronize_device();
    EXPECT_EQ(done, 11);
}

TEST_F(RuntimeTest, ErrorNamesCallDeviceStatusAndBackendText) {
    const DeviceAllocation memory = runtime_.allocate(64);
    SimulationFaults faults;
    faults.lost_from = 1;
    backend_->set_faults(faults);
    std::byte bytes[64] = {};
    try {
        runtime_.copy_host_to_device(memory.data(), bytes, 64);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::device_lost);
        const std::string text = error.what();
        EXPECT_EQ(text.find("tensorpool: copy host to device of 64 bytes on simulated:0: device "
                            "lost: "),
                  0u)
            << text;
    }
    EXPECT_THROW(runtime_.synchronize_device(), DeviceError);
    backend_->set_faults({});
}

TEST_F(RuntimeTest, TrimReleasesFreeMemoryOfAllItsAllocators) {
    { const DeviceAllocation memory = runtime_.allocate(1000); }
    { const DeviceAllocation memory = runtime_.allocate_pinned(1000); }
    runtime_.synchronize_device();
    EXPECT_GT(runtime_.trim(), 0u);
    EXPECT_EQ(runtime_.allocator().statistics().capacity_bytes, 0u);
    EXPECT_EQ(runtime_.pinned_allocator().statistics().capacity_bytes, 0u);
}

TEST_F(RuntimeTest, PassesAdviceForManagedMemoryOn) {
    RuntimeOptions options;
    options.caching.storage = StorageKind::managed;
    Runtime managed(backend_, {DeviceType::simulated, 0}, options);
    const DeviceStream stream(managed);
    const DeviceAllocation memory = managed.allocate(1000, stream);
    managed.advise(memory.data(), memory.size(), MemoryAdvice::read_mostly);
    managed.advise(memory.data(), memory.size(), MemoryAdvice::preferred_location, Processor::host);
    managed.prefetch(memory.data(), memory.size(), Processor::device, stream);
    managed.prefetch(memory.data(), memory.size(), Processor::host);
    EXPECT_EQ(backend_->calls()[SimulatedCall::advise_memory], 2u);
    EXPECT_EQ(backend_->calls()[SimulatedCall::prefetch_memory], 2u);
    const DeviceAllocation other = runtime_.allocate(1000);
    try {
        runtime_.advise(other.data(), other.size(), MemoryAdvice::read_mostly);
        ADD_FAILURE();
    } catch (const DeviceError& error) {
        EXPECT_EQ(error.status(), DeviceStatus::invalid_argument);
        EXPECT_NE(std::string(error.what()).find("not a part of managed memory"), std::string::npos)
            << error.what();
    }
}

}  // namespace
}  // namespace tensorpool
