#include <tensorpool/device/simulated_backend.hpp>

#include <gtest/gtest.h>

#include <memory>

#include "contracts/backend_contract.hpp"

namespace tensorpool::testing {
namespace {

template <Schedule schedule>
MadeBackend make() {
    SimulationOptions options;
    options.memory_bytes = std::size_t{256} << 20;
    options.schedule = schedule;
    options.devices = 2;
    return {std::make_unique<SimulatedBackend>(options), ""};
}

// The two extremes: work runs when it is submitted, or when a caller waits for it. Orders between
// them are those of `Schedule::random`, which the stress tests of devices use.
const auto schedules = ::testing::Values(BackendFactory{"eager", make<Schedule::eager>},
                                         BackendFactory{"lazy", make<Schedule::lazy>});
INSTANTIATE_TEST_SUITE_P(Simulated, BackendContract, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendThatKnowsHandles, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendWithoutExportableMemory, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendWithVirtualMemory, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendWithCapture, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendWithCaptureThatKnowsHandles, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendWithStreamOrder, schedules, name_of);
INSTANTIATE_TEST_SUITE_P(Simulated, BackendWithManagedAdvice, schedules, name_of);
// A function that blocks would block the thread that submits or waits for work.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWhereFunctionsMayBlock);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWithExportableMemory);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWithoutVirtualMemory);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendWithoutCapture);

}  // namespace
}  // namespace tensorpool::testing
