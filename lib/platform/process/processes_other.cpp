// Systems on which the library does not look into other processes.

#include "platform/process/processes.hpp"

namespace tensorpool::platform {

bool ObservedFile::is_sealed() const noexcept {
    return false;
}
std::optional<ProcessFacts> facts_of(std::uint64_t) {
    return std::nullopt;
}
std::vector<std::uint64_t> process_numbers() {
    return {};
}
std::string thread_name(std::uint64_t, std::uint64_t) {
    return {};
}
OwnName own_name_of(std::uint64_t) {
    return {};
}
MemoryFiles memory_files_of(std::uint64_t, std::string_view) {
    return {};
}
bool holds_file(std::uint64_t, std::uint64_t, const ObservedFile&) {
    return false;
}
bool maps_memory_file(std::uint64_t, std::string_view, std::uint64_t) {
    return false;
}

}  // namespace tensorpool::platform
