#include "simulation/hazards/watch.hpp"

namespace tensorpool {

static std::string text_of(const HazardOperation& operation) {
    if (operation.number == 0) return "nothing known";
    return "\"" + operation.label + "\" (no. " + std::to_string(operation.number) + ", " +
           operation.stream + ")";
}

const char* to_string(HazardKind kind) noexcept {
    return device::text_of(
        {"reuse before the last use completed", "access after free", "read of uninitialised memory",
         "missing record_use", "host access before the work completed", "illegal call in capture",
         "access outside of any allocation", "free of memory in use", "double free",
         "unordered access", "overlapping blocks", "host access to private memory"},
        kind);
}

std::string to_string(const Hazard& hazard) {
    std::string text = to_string(hazard.kind);
    text += ": " + text_of(hazard.operation) + " after " + text_of(hazard.other);
    if (hazard.bytes == 0) return text;
    char range[64];
    std::snprintf(range, sizeof range, ", %zu bytes at %p", hazard.bytes, hazard.address);
    return text + range;
}

}  // namespace tensorpool
