#include "device/cuda/driver_api.hpp"

#include "device/cuda/cuda_state.hpp"

namespace tensorpool::device::cuda {
namespace {

/// Finds functions through cuGetProcAddress, in the form of a given CUDA version. Drivers before
/// CUDA 11.3 do not have it; their functions are looked up in the library.
class AddressSource {
public:
    explicit AddressSource(const platform::DynamicLibrary& file) noexcept
        : file_(file),
          with_status_(reinterpret_cast<WithStatus>(file.find("cuGetProcAddress_v2"))),
          without_(reinterpret_cast<Without>(file.find("cuGetProcAddress"))) {}

    void* find(const DriverSymbol& symbol) const noexcept {
        void* const address = look_up(symbol);
        return address != nullptr ? address : file_.find(symbol.exported);
    }

private:
    using WithStatus = Result (*)(const char*, void**, int, std::uint64_t, AddressQuery*);  // 12.0
    using Without = Result (*)(const char*, void**, int, std::uint64_t);                    // 11.3

    void* look_up(const DriverSymbol& symbol) const noexcept {
        void* address = nullptr;
        Result result = Result::not_found;
        if (with_status_ != nullptr) {
            AddressQuery query = AddressQuery::symbol_not_found;
            result = with_status_(symbol.name, &address, symbol.version, legacy_stream, &query);
        } else if (without_ != nullptr) {
            result = without_(symbol.name, &address, symbol.version, legacy_stream);
        }
        return result == Result::success ? address : nullptr;
    }

    const platform::DynamicLibrary& file_;
    const WithStatus with_status_;
    const Without without_;
};

}  // namespace

bool DriverApi::load(const std::string& library) {
    if (!file.open(library)) {
        problem = "no " + library + " on this machine: " + file.problem();
        return false;
    }
    const AddressSource source(file);
    for (DriverSymbol* symbol = symbols; symbol != nullptr; symbol = symbol->next) {
        symbol->address = source.find(*symbol);
        if (symbol->address == nullptr && symbol->need == Need::always) {
            problem = library + " has no " + symbol->exported +
                      "; expected the driver of CUDA 10.0 or newer";
            return false;
        }
    }
    return true;
}

DeviceStatus status_of(Result result) noexcept {
    // All results between these two are about captures.
    if (result >= Result::stream_capture_unsupported &&
        result <= Result::stream_capture_wrong_thread) {
        return DeviceStatus::in_capture;
    }
    switch (result) {
        case Result::success:
        case Result::peer_access_already_enabled:  // not an error by the rules of Backend
            return DeviceStatus::ok;
        case Result::not_ready:
            return DeviceStatus::not_ready;
        case Result::out_of_memory:
            return DeviceStatus::out_of_memory;
        case Result::not_supported:
        case Result::peer_access_unsupported:
        case Result::too_many_peers:
            return DeviceStatus::not_supported;
        case Result::invalid_value:
        case Result::invalid_device:
        case Result::invalid_context:
        case Result::invalid_handle:
        case Result::illegal_state:
        case Result::host_memory_already_registered:
        case Result::host_memory_not_registered:
            return DeviceStatus::invalid_argument;
        // The reference documents for each of these that the process must end, or that all later
        // calls fail too.
        case Result::deinitialized:
        case Result::ecc_uncorrectable:
        case Result::nvlink_uncorrectable:
        case Result::contained:
        case Result::illegal_address:
        case Result::launch_timeout:
        case Result::context_is_destroyed:
        case Result::assert:
        case Result::hardware_stack_error:
        case Result::illegal_instruction:
        case Result::misaligned_address:
        case Result::invalid_address_space:
        case Result::invalid_pc:
        case Result::launch_failed:
        case Result::tensor_memory_leak:
        case Result::mps_client_terminated:
        case Result::external_device:
            return DeviceStatus::device_lost;
        default:
            return DeviceStatus::failed;
    }
}

}  // namespace tensorpool::device::cuda
