/// Uses the component `device` alone. Exits with 0 if everything works.

#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/pool_source.hpp>
#include <tensorpool/device/runtimes.hpp>

int main() {
    const tensorpool::Runtime& runtime = tensorpool::get_runtime({tensorpool::DeviceType::cpu, 0});
    return runtime.name().empty() ? 1 : 0;
}
