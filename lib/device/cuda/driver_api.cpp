#include "device/cuda/driver_api.hpp"

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

}  // namespace tensorpool::device::cuda
