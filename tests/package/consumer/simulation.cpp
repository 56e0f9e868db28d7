/// Uses the component `simulation`, and `device`, which comes with it. Ends with 0 when all is as
/// it should be.

#include <memory>

#include <tensorpool/device/explore.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/simulated_backend.hpp>

int main() {
    const auto backend =
        std::make_shared<tensorpool::SimulatedBackend>(tensorpool::SimulationOptions{});
    const tensorpool::Runtime runtime(backend, {tensorpool::DeviceType::simulated, 0});
    return runtime.name() == backend->device_name(0) && backend->hazard_count() == 0 ? 0 : 1;
}
