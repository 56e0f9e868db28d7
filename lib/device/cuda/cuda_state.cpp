#include "device/cuda/cuda_state.hpp"

namespace tensorpool::device::cuda {
namespace {

std::string version_text(int version) {
    return std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

const char* text_without_driver(Result result) noexcept {
    if (result != Result::stub_library) return "an error without a text";
    return "it is the toolkit's stub for linking; expected the driver's own library";
}

}  // namespace

CudaState::CudaState(const std::string& library) {
    if (!api.load(library)) {
        problem = api.problem;
        return;
    }
    try {
        find_devices();
    } catch (const DeviceError& error) {
        problem = library + " was loaded but has no usable device: " + error.what();
        devices.clear();
    }
}

// At the end of a process the driver may be unloaded first. Each call fails then and has no effect.
CudaState::~CudaState() {
    for (CudaDevice& device : devices) {
        const Context context = device.context.load(std::memory_order_acquire);
        if (context == nullptr) continue;
        if (api.context_push(context) == Result::success) {
            for (const auto& [stream, event] : device.idle_lanes) {
                api.stream_destroy(stream);
                api.event_destroy(event);
            }
            Context popped = nullptr;
            api.context_pop(&popped);
        }
        api.context_release(device.number);
    }
}

void CudaState::find_devices() {
    invoke(api.init, 0U);
    invoke(api.driver_version, &version_);
    int count = 0;
    invoke(api.device_count, &count);
    if (count == 0) problem = "the CUDA driver found no device";
    for (int index = 0; index < count; ++index) describe(devices.emplace_back(index));
    for (CudaDevice& device : devices) find_peers(device);
}

void CudaState::find_peers(CudaDevice& device) {
    if (!api.can_access_peer) return;
    for (const CudaDevice& other : devices) {
        int can = 0;
        if (&other != &device &&
            api.can_access_peer(&can, other.number, device.number) == Result::success && can != 0) {
            device.peers.push_back(other.number);
        }
    }
}

void CudaState::describe(CudaDevice& device) {
    char name[256] = {};
    invoke(api.device_get, &device.number, device.index);
    invoke(api.device_name, name, static_cast<int>(sizeof name - 1), device.number);
    device.name = name;
    DeviceAbilities& abilities = device.abilities;
    abilities.shared_storage = has(device, DeviceAttribute::can_map_host_memory) &&
                               has(device, DeviceAttribute::unified_addressing);
    abilities.managed_storage =
        api.memory_allocate_managed && has(device, DeviceAttribute::managed_memory);
    abilities.managed_advice = abilities.managed_storage && api.memory_advise &&
                               api.memory_prefetch &&
                               has(device, DeviceAttribute::concurrent_managed_access);
    abilities.stream_ordered_allocation =
        api.memory_allocate_async && api.memory_free_async && api.default_pool && api.pool_set &&
        api.pool_get && api.pool_trim && has(device, DeviceAttribute::memory_pools);
    abilities.names_default_streams = true;
    abilities.graph_capture = api.begin_capture && api.end_capture && api.capture_info &&
                              api.graph_instantiate && api.graph_launch && api.graph_destroy &&
                              api.graph_exec_destroy;
    const bool has_functions = api.granularity && api.address_reserve && api.address_free &&
                               api.memory_create && api.memory_release && api.memory_map &&
                               api.memory_unmap && api.memory_set_access;
    if (!has_functions || !has(device, DeviceAttribute::virtual_memory_management)) return;
    AllocationProperties properties;
    properties.location.id = device.number;
    invoke(api.granularity, &abilities.granularity, &properties, Granularity::minimum);
    abilities.virtual_memory = true;
    abilities.exportable_memory = api.memory_export && api.memory_import &&
                                  has(device, DeviceAttribute::file_descriptor_handles);
    device.has_rdma = has(device, DeviceAttribute::rdma_with_virtual_memory);
}

bool CudaState::has(const CudaDevice& device, DeviceAttribute attribute) const noexcept {
    int value = 0;
    // A driver does not know attributes newer than itself.
    return api.device_attribute(&value, attribute, device.number) == Result::success && value != 0;
}

CudaDevice& CudaState::device_at(int index) {
    if (index >= 0 && static_cast<std::size_t>(index) < devices.size()) {
        return devices[static_cast<std::size_t>(index)];
    }
    throw DeviceError(DeviceStatus::invalid_argument,
                      "no device cuda:" + std::to_string(index) + "; there are " +
                          std::to_string(devices.size()) +
                          (problem.empty() ? std::string() : ": " + problem));
}

Context CudaState::context_of(CudaDevice& device) {
    if (const Context context = device.context.load(std::memory_order_acquire)) return context;
    const std::lock_guard guard(device.making);
    Context context = device.context.load(std::memory_order_relaxed);  // relaxed: under the lock
    if (context != nullptr) return context;
    invoke(api.context_retain, &context, device.number);
    device.context.store(context, std::memory_order_release);
    return context;
}

void CudaState::give_access(CudaDevice& device, DeviceAddress address, std::size_t bytes) {
    std::vector<AccessDescription> access(1 + device.peers.size());
    access[0].location.id = device.number;
    for (std::size_t i = 0; i < device.peers.size(); ++i) {
        access[1 + i].location.id = device.peers[i];
    }
    const Result result = api.memory_set_access(address, bytes, access.data(), access.size());
    if (result == Result::success || result == Result::out_of_memory || device.peers.empty()) {
        (void)check(api.memory_set_access.name, result);
        return;
    }
    // Access of peers is not necessary: copies are staged without it.
    invoke(api.memory_set_access, address, bytes, access.data(), std::size_t{1});
    device.peers.clear();
}

void CudaState::refuse_in_capture() const {
    if (!captures.by_this_thread()) return;
    throw DeviceError(DeviceStatus::in_capture,
                      "not allowed while this thread is capturing a stream");
}

CudaState::CallScope::CallScope(CudaState& state, CudaDevice& device) : api_(state.api) {
    state.invoke(state.api.context_push, state.context_of(device));
    exchange_mode();
}

CudaState::CallScope::~CallScope() {
    exchange_mode();
    Context popped = nullptr;
    api_.context_pop(&popped);
}

void CudaState::CallScope::exchange_mode() noexcept {
    if (api_.exchange_capture_mode) api_.exchange_capture_mode(&mode_);
}

DeviceStatus CudaState::check(const char* call, Result result) const {
    const DeviceStatus status = status_of(result);
    if (status == DeviceStatus::ok || status == DeviceStatus::not_ready) return status;
    throw DeviceError(status, std::string(call) + ": " + text_of(result));
}

std::string CudaState::text_of(Result result) const {
    const char* text = nullptr;
    if (!api.error_string || api.error_string(result, &text) != Result::success || text == nullptr)
        text = text_without_driver(result);
    return std::string(text) + " (CUresult " + std::to_string(static_cast<unsigned>(result)) + ')';
}

void CudaState::throw_missing(const DriverSymbol& symbol) const {
    throw DeviceError(DeviceStatus::not_supported,
                      "the driver, of CUDA " + version_text(version_) + ", has no " +
                          symbol.exported + "; it came with CUDA " + version_text(symbol.version));
}

}  // namespace tensorpool::device::cuda
