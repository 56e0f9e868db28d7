#include <tensorpool/device/current_device.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "device/runtime/put_in_backend.hpp"

namespace tensorpool {
namespace {

template <class Function>
void on_another_thread(Function function) {
    std::thread(function).join();
}

/// A backend that counts how often its devices were counted, which loads CUDA's driver.
class CountingBackend final : public SimulatedBackend {
public:
    CountingBackend() : SimulatedBackend(eager_devices(2)) {}
    int device_count() noexcept override {
        ++counts;
        return SimulatedBackend::device_count();
    }

    std::atomic<int> counts = 0;
};

TEST(CurrentDevice, IsTheFirstSimulatedDeviceIfThereIsOne) {
    const PutInBackend simulated(eager_devices(2));
    on_another_thread([] { EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 0})); });
}

TEST(CurrentDevice, IsTheCpuWithoutAnAccelerator) {
    on_another_thread([] { EXPECT_EQ(current_device(), (Device{DeviceType::cpu, 0})); });
}

TEST(CurrentDevice, IsNoCudaDeviceUntilARuntimeOfCudaIsRequested) {
    const auto cuda = std::make_shared<CountingBackend>();
    set_backend(DeviceType::cuda, cuda);
    std::promise<void> asked;
    std::promise<void> made;
    std::thread other([&] {
        EXPECT_EQ(current_device(), (Device{DeviceType::cpu, 0}));
        EXPECT_EQ(runtime().device(), (Device{DeviceType::cpu, 0}));
        EXPECT_EQ(cuda->counts, 0) << "the driver was loaded";
        asked.set_value();
        made.get_future().wait();
        EXPECT_EQ(current_device(), (Device{DeviceType::cuda, 0}));
    });
    asked.get_future().wait();
    (void)get_runtime({DeviceType::cuda, 1});
    made.set_value();
    other.join();
    set_backend(DeviceType::cuda, nullptr);
    on_another_thread([] { EXPECT_EQ(current_device(), (Device{DeviceType::cpu, 0})); });
}

TEST(CurrentDevice, IsPerThread) {
    const PutInBackend simulated(eager_devices(3));
    set_current_device({DeviceType::simulated, 1});
    on_another_thread([] {
        set_current_device({DeviceType::simulated, 2});
        EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 2}));
        EXPECT_EQ(runtime().device(), (Device{DeviceType::simulated, 2}));
    });
    EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 1}));
    EXPECT_EQ(&runtime(), &get_runtime({DeviceType::simulated, 1}));
}

TEST(CurrentDevice, SettingAMissingDeviceIsRejected) {
    const PutInBackend simulated(eager_devices(2));
    set_current_device({DeviceType::simulated, 1});
    for (const Device device : {Device{DeviceType::simulated, 2}, Device{DeviceType::simulated, -1},
                                Device{DeviceType::cpu, 1}}) {
        try {
            set_current_device(device);
            ADD_FAILURE() << to_string(device);
        } catch (const std::invalid_argument& error) {
            EXPECT_NE(std::string(error.what()).find("there is no device " + to_string(device)),
                      std::string::npos);
        }
    }
    EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 1}));
}

TEST(CurrentDevice, SettingAnUnknownTypeIsRejected) {
    EXPECT_THROW(set_current_device({static_cast<DeviceType>(9), 0}), std::invalid_argument);
    EXPECT_THROW((void)get_runtime({static_cast<DeviceType>(9), 0}), std::invalid_argument);
}

TEST(CurrentDevice, IsChosenAgainAfterItsBackendWasRemoved) {
    {
        const PutInBackend simulated(eager_devices(2));
        set_current_device({DeviceType::simulated, 1});
    }
    EXPECT_NE(current_device().type, DeviceType::simulated);
}

TEST(CurrentDevice, IsKeptByResetRuntimes) {
    const PutInBackend simulated(eager_devices(2));
    set_current_device({DeviceType::simulated, 1});
    reset_runtimes();
    EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 1}));
}

TEST(CurrentDevice, IsRestoredAfterAScope) {
    const PutInBackend simulated(eager_devices(2));
    set_current_device({DeviceType::simulated, 0});
    {
        const CurrentDeviceScope scope({DeviceType::simulated, 1});
        EXPECT_EQ(current_device().index, 1);
        EXPECT_THROW(CurrentDeviceScope({DeviceType::simulated, 7}), std::invalid_argument);
    }
    EXPECT_EQ(current_device().index, 0);
}

TEST(CurrentDevice, DefaultIsChosenAgainAfterAScope) {
    on_another_thread([] {
        { const CurrentDeviceScope scope({DeviceType::cpu, 0}); }
        const PutInBackend simulated(eager_devices(1));
        EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 0}));
    });
}

TEST(CurrentDevice, IsSetByRuntimeActivate) {
    const PutInBackend simulated(eager_devices(2));
    set_current_device({DeviceType::simulated, 0});
    get_runtime({DeviceType::simulated, 1}).activate();
    EXPECT_EQ(current_device().index, 1);
    const Runtime own(simulated.get(), {DeviceType::simulated, 0});
    EXPECT_THROW(own.activate(), std::invalid_argument);
    EXPECT_EQ(current_device().index, 1);
}

TEST(CurrentDevice, IsNotChangedByHostMemory) {
    const PutInBackend simulated(eager_devices(2));
    set_current_device({DeviceType::simulated, 1});
    const DeviceAllocation host = runtime().allocate_host(100);
    const DeviceAllocation pinned = get_runtime({DeviceType::simulated, 0}).allocate_pinned(100);
    const DeviceAllocation of_cpu = get_runtime({DeviceType::cpu, 0}).allocate(100);
    EXPECT_EQ(current_device(), (Device{DeviceType::simulated, 1}));
    EXPECT_EQ(host.host_pointer(), host.data());
    EXPECT_EQ(pinned.host_pointer(), pinned.data());
    EXPECT_EQ(of_cpu.host_pointer(), of_cpu.data());
}

}  // namespace
}  // namespace tensorpool
