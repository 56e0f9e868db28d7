#include <stdexcept>
#include <string>

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {
namespace {

constexpr double largest_fraction = 2;

[[noreturn]] void refuse(const CachingOptions& options, const std::string& what) {
    throw std::invalid_argument("tensorpool: caching allocator '" + options.name + "': " + what);
}

void check_fraction(const CachingOptions& options, const char* name, double fraction) {
    if (fraction >= 0 && fraction <= largest_fraction) return;  // false for NaN
    refuse(options, std::string(name) + " is " + std::to_string(fraction) +
                        "; expected 0 for no limit, or up to 2 times what the device recommends");
}

bool has_storage(const DeviceAbilities& abilities, StorageKind kind) {
    if (kind == StorageKind::shared) return abilities.shared_storage;
    return kind == StorageKind::private_storage || abilities.managed_storage;
}

}  // namespace

int validated(Backend& backend, int device, const CachingOptions& options) {
    const int count = backend.device_count();
    if (device < 0 || device >= count) {
        refuse(options, "device is " + std::to_string(device) + "; there are " +
                            std::to_string(count) + " of type " + to_string(backend.type()));
    }
    check_fraction(options, "hard_limit", options.hard_limit);
    check_fraction(options, "soft_limit", options.soft_limit);
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
    return device;
}

}  // namespace tensorpool::device
