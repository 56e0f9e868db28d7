#include "lab/fake_cuda/controls.hpp"

#include "lab/fake_cuda/objects.hpp"

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

void fake_cuda_set_peers(bool peers) {
    const Lock lock(driver().mutex);
    driver().peers = peers;
}

void fake_cuda_set_rdma(bool reported, bool refused) {
    const Lock lock(driver().mutex);
    driver().rdma = reported;
    driver().refuses_rdma = refused;
}

void fake_cuda_fail_next(const char* function, unsigned result) {
    const Lock lock(driver().mutex);
    driver().faults[function] = Result{result};
}

void fake_cuda_lose_device(int device, unsigned result) {
    const Lock lock(driver().mutex);
    driver().devices[device].context->lost = Result{result};
}

unsigned long long fake_cuda_calls(const char* function) {
    const Lock lock(driver().mutex);
    const std::string name = function;
    unsigned long long calls = 0;
    for (const auto& [called, count] : driver().calls) {
        if (name.empty() || called == name) calls += count;
    }
    return calls;
}

const char* fake_cuda_violation() {
    const Lock lock(driver().mutex);
    return driver().violation.c_str();
}

int fake_cuda_held() {
    const Lock lock(driver().mutex);
    std::size_t held = driver().graphs.size() + driver().execs.size() + driver().ranges.size() +
                       driver().reservations.size() + driver().mappings.size() +
                       driver().physical.size();
    for (const DeviceState& state : driver().devices) {
        if (state.context == nullptr) continue;
        held += 1 + state.context->events.size() + state.context->streams.size() - 1 -
                state.context->of_threads.size();
    }
    return static_cast<int>(held);
}

unsigned fake_cuda_event_flags(Event event) {
    const Lock lock(driver().mutex);
    return event->flags;
}

}  // extern "C"
