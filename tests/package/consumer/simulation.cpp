/// Uses the component `simulation`, and `device`, which it includes. Exits with 0 if everything
/// works.

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
