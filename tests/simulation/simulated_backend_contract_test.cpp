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

// A function that blocks would block the thread that gives or waits for work.
INSTANTIATE_TEST_SUITE_P(Simulated, BackendContract,
                         ::testing::Values(BackendFactory{"eager", make<Schedule::eager>, false},
                                           BackendFactory{"lazy", make<Schedule::lazy>, false},
                                           BackendFactory{"random", make<Schedule::random>, false}),
                         name_of);

}  // namespace
}  // namespace tensorpool::testing
