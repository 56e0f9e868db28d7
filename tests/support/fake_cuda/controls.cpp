#include "support/fake_cuda/controls.hpp"

#include "support/fake_cuda/objects.hpp"

using namespace fake_cuda;

extern "C" {

void fake_cuda_set_device_count(int count) {
    const Lock lock(driver().mutex);
    driver().device_count = count;
}

void fake_cuda_set_init_result(unsigned result) {
    const Lock lock(driver().mutex);
    driver().init_result = Result{result};
}

void fake_cuda_fail_next(const char* function, unsigned result) {
    const Lock lock(driver().mutex);
    driver().faults[function] = Result{result};
}

void fake_cuda_lose_device(int device, unsigned result) {
    const Lock lock(driver().mutex);
    driver().devices[device].context->lost = Result{result};
}

int fake_cuda_held() {
    const Lock lock(driver().mutex);
    std::size_t held = driver().graphs.size() + driver().execs.size() + driver().ranges.size() +
                       driver().reservations.size() + driver().mappings.size() +
                       driver().physical.size();
    for (const DeviceState& state : driver().devices) {
        if (state.context == nullptr) continue;
        held += 1 + state.context->events.size() + state.context->streams.size() - 1;
    }
    return static_cast<int>(held);
}

}  // extern "C"
