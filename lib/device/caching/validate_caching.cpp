#include <stdexcept>
#include <string>

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {
namespace {

constexpr double largest_part = 2;

[[noreturn]] void refuse(const CachingOptions& options, const std::string& what) {
    throw std::invalid_argument("tensorpool: caching allocator '" + options.name + "': " + what);
}

bool has_storage(const DeviceAbilities& abilities, StorageKind kind) {
    if (kind == StorageKind::shared) return abilities.shared_storage;
    return kind == StorageKind::private_storage || abilities.managed_storage;
}

void check_exportable(const CachingOptions& options, const DeviceAbilities& abilities) {
    if (!options.expandable || options.storage != StorageKind::private_storage) {
        refuse(options, "exportable is set; expected expandable slabs of private storage with it");
    }
    if (abilities.exportable_memory) return;
    refuse(options,
           "exportable is set; expected a device with exportable memory, found one without");
}

}  // namespace

void check_limit(const CachingOptions& options, const char* name, double part) {
    if (part >= 0 && part <= largest_part) return;  // false for NaN
    refuse(options, std::string(name) + " is " + std::to_string(part) +
                        "; expected 0 for no limit, or up to 2 times what the device recommends");
}

int validated(Backend& backend, int device, const CachingOptions& options) {
    const int count = backend.device_count();
    if (device < 0 || device >= count) {
        refuse(options, "device is " + std::to_string(device) + "; there are " +
                            std::to_string(count) + " of type " + to_string(backend.type()));
    }
    check_limit(options, "hard_limit", options.hard_limit);
    check_limit(options, "soft_limit", options.soft_limit);
    if (options.hard_limit != 0 && options.soft_limit > options.hard_limit) {
        refuse(options, "soft_limit is " + std::to_string(options.soft_limit) +
                            "; expected at most the hard_limit, " +
                            std::to_string(options.hard_limit));
    }
    if (options.oversize_bytes <= small_limit) {
        refuse(options, "oversize_bytes is " + std::to_string(options.oversize_bytes) +
                            "; expected more than 1 MiB, the largest size of small blocks");
    }
    if (!has_storage(backend.abilities(device), options.storage)) {
        refuse(options, "the device does not have storage of the requested kind");
    }
    if (options.exportable) check_exportable(options, backend.abilities(device));
    return device;
}

}  // namespace tensorpool::device
