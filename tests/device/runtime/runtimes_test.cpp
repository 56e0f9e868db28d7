#include <tensorpool/device/runtimes.hpp>

#include <gtest/gtest.h>

#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/device_stream.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/runtime/put_in_backend.hpp"
#include "device/runtime/runtime_core.hpp"

namespace tensorpool {
namespace {

TEST(Runtimes, OneCpuAlwaysExists) {
    EXPECT_EQ(device_count(DeviceType::cpu), 1);
    Runtime& cpu = get_runtime({DeviceType::cpu, 0});
    EXPECT_EQ(cpu.device(), (Device{DeviceType::cpu, 0}));
    EXPECT_EQ(cpu.caching_allocator(), nullptr);
    EXPECT_EQ(cpu.allocator().statistics().kind, DeviceStatistics::Kind::host);
}

TEST(Runtimes, SimulatedDevicesComeFromSetBackend) {
    EXPECT_EQ(device_count(DeviceType::simulated), 0);
    {
        const PutInBackend simulated(eager_devices(3));
        EXPECT_EQ(device_count(DeviceType::simulated), 3);
        EXPECT_EQ(&get_runtime({DeviceType::simulated, 2}).backend(), simulated.get().get());
    }
    EXPECT_EQ(device_count(DeviceType::simulated), 0);
}

TEST(Runtimes, BackendOfAnotherTypeMayBeSet) {
    const PutInBackend cuda(eager_devices(2), DeviceType::cuda);
    EXPECT_EQ(device_count(DeviceType::cuda), 2);
    DeviceAllocation memory(get_runtime({DeviceType::cuda, 1}), 100);
    EXPECT_EQ(memory.device(), (Device{DeviceType::cuda, 1}));
}

TEST(Runtimes, MissingDeviceIsRejectedWithTheirNumber) {
    const PutInBackend simulated(eager_devices(2));
    try {
        (void)get_runtime({DeviceType::simulated, 2});
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: there is no device simulated:2: devices of type simulated: 2");
    }
}

/// A backend without devices, as on a machine without a driver.
class WithoutDevices final : public SimulatedBackend {
public:
    int device_count() noexcept override { return 0; }
    std::string last_error() override { return "no driver on this machine"; }
};

TEST(Runtimes, MissingDeviceIsRejectedWithTheBackendsText) {
    set_backend(DeviceType::cuda, std::make_shared<WithoutDevices>());
    try {
        (void)get_runtime({DeviceType::cuda, 0});
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: there is no device cuda:0: devices of type cuda: 0; no driver on "
                     "this machine");
    }
    set_backend(DeviceType::cuda, nullptr);
}

TEST(Runtimes, AreMadeOnceByConcurrentThreads) {
    const PutInBackend simulated(eager_devices(1));
    std::atomic<Runtime*> seen[8] = {};
    std::vector<std::thread> threads;
    for (auto& entry : seen) {
        threads.emplace_back([&entry] { entry = &get_runtime({DeviceType::simulated, 0}); });
    }
    for (std::thread& thread : threads) thread.join();
    for (auto& entry : seen) EXPECT_EQ(entry, seen[0]);
}

TEST(Runtimes, BeyondQuickDevicesAreMadeOnceToo) {
    const PutInBackend simulated(eager_devices(20));
    const Device last = {DeviceType::simulated, 19};
    Runtime& made = get_runtime(last);
    EXPECT_EQ(device::runtime_if_made(last), nullptr);
    EXPECT_EQ(&get_runtime(last), &made);
    made.activate();
    EXPECT_EQ(&runtime(), &made);
}

TEST(Runtimes, AcceptOptionsOnlyBeforeTheFirstOfTheirType) {
    const PutInBackend simulated(eager_devices(1));
    RuntimeOptions options;
    options.caching.name = "mine";
    set_runtime_options(DeviceType::simulated, options);
    Runtime& first = get_runtime({DeviceType::simulated, 0});
    EXPECT_STREQ(first.allocator().statistics().name, "mine");
    try {
        set_runtime_options(DeviceType::simulated, {});
        ADD_FAILURE();
    } catch (const std::logic_error& error) {
        EXPECT_NE(std::string(error.what()).find("a runtime of simulated:0 exists already"),
                  std::string::npos);
    }
    EXPECT_EQ(get_runtime_options(DeviceType::simulated).caching.name, "mine");
    reset_runtimes();
    set_runtime_options(DeviceType::simulated, {});
}

TEST(Runtimes, InvalidOptionsLeaveNoRuntime) {
    const PutInBackend simulated(eager_devices(1));
    RuntimeOptions options;
    options.staging_bytes = 0;
    set_runtime_options(DeviceType::simulated, options);
    EXPECT_THROW((void)get_runtime({DeviceType::simulated, 0}), std::invalid_argument);
    set_runtime_options(DeviceType::simulated, {});
    EXPECT_NO_THROW((void)get_runtime({DeviceType::simulated, 0}));
}

TEST(Runtimes, ResetKeepsTheBackendThatWasSet) {
    const PutInBackend simulated(eager_devices(1));
    struct Tally {
        std::shared_ptr<int> count;
    };
    const auto count = std::make_shared<int>(0);
    Runtime& first = get_runtime({DeviceType::simulated, 0});
    first.object<Tally>([&](Runtime&) { return std::make_unique<Tally>(Tally{count}); });
    EXPECT_EQ(count.use_count(), 2);
    reset_runtimes();
    EXPECT_EQ(count.use_count(), 1);
    EXPECT_EQ(&get_runtime({DeviceType::simulated, 0}).backend(), simulated.get().get());
}

TEST(Runtimes, MemoryAndStreamsOutliveThemAndTheirBackend) {
    DeviceAllocation memory;
    std::weak_ptr<SimulatedBackend> backend;
    {
        const PutInBackend simulated(lazy_devices());
        backend = simulated.get();
        DeviceStream stream(get_runtime({DeviceType::simulated, 0}));
        memory = DeviceAllocation(get_runtime({DeviceType::simulated, 0}), 64, stream);
        memory.fill(7);
        stream.synchronize();
        set_backend(DeviceType::simulated, nullptr);
        EXPECT_EQ(device_count(DeviceType::simulated), 0);
        EXPECT_TRUE(stream.query());
    }
    EXPECT_FALSE(backend.expired());
    EXPECT_EQ(backend.lock()->hazard_count(), 0u) << backend.lock()->hazard_report();
    memory.reset();
    EXPECT_TRUE(backend.expired());
}

TEST(Runtimes, AreTrimmedTogether) {
    const PutInBackend simulated(eager_devices(2));
    for (const int index : {0, 1})
        DeviceAllocation(get_runtime({DeviceType::simulated, index}), 1000);
    EXPECT_GT(trim_runtimes(), 0u);
    EXPECT_EQ(get_runtime({DeviceType::simulated, 1}).allocator().statistics().capacity_bytes, 0u);
}

// The cases of InfiniCore's tests of this kind, which are commented out there.
TEST(Runtimes, ThreadsSetAllocateAndFreeOnAllDevicesAtRandom) {
    constexpr int devices = 3;
    constexpr int rounds = 400;
    const PutInBackend simulated(eager_devices(devices));
    std::mutex mutex;
    std::deque<DeviceAllocation> passed_on;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number) {
        threads.emplace_back([&, number] {
            std::minstd_rand random(number + 1);
            for (int round = 0; round < rounds; ++round) {
                const Device device = {DeviceType::simulated, static_cast<int>(random() % devices)};
                set_current_device(device);
                DeviceAllocation memory(random() % 100'000 + 1);
                EXPECT_EQ(memory.device(), device);
                EXPECT_EQ(current_device(), device);
                memory.fill(static_cast<std::uint8_t>(round));
                const DeviceAllocation host = runtime().allocate_host(64);
                EXPECT_EQ(current_device(), device);
                const std::lock_guard guard(mutex);
                passed_on.push_back(std::move(memory));
                // Made by any thread and freed here, regardless of the current device.
                if (passed_on.size() > 16) passed_on.pop_front();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    passed_on.clear();
    std::uint64_t allocations = 0;
    for (int index = 0; index < devices; ++index) {
        const DeviceStatistics statistics =
            get_runtime({DeviceType::simulated, index}).allocator().statistics();
        EXPECT_EQ(statistics.in_use_bytes, 0u);
        allocations += statistics.allocations;
    }
    EXPECT_EQ(allocations, 4u * rounds);
    EXPECT_EQ(simulated->hazard_count(), 0u) << simulated->hazard_report();
}

}  // namespace
}  // namespace tensorpool
