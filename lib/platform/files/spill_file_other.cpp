#include <cstdio>

#include "platform/files/spill_file.hpp"

namespace tensorpool::platform {
namespace {

FileProblem unsupported() noexcept {
    FileProblem problem;
    std::snprintf(problem.text, sizeof problem.text, "spilling is not supported on this system");
    return problem;
}

}  // namespace

SpillFile::~SpillFile() = default;

FileProblem SpillFile::open(const char*) noexcept {
    return unsupported();
}
FileProblem SpillFile::write(std::uint64_t, std::span<const std::byte>) noexcept {
    return unsupported();
}
FileProblem SpillFile::settle(std::uint64_t, std::uint64_t) noexcept {
    return unsupported();
}
FileProblem SpillFile::read(std::uint64_t, std::span<std::byte>, ReadFrom) const noexcept {
    return unsupported();
}
void SpillFile::read_ahead(std::uint64_t, std::uint64_t) const noexcept {}
bool SpillFile::free(std::uint64_t, std::uint64_t) noexcept {
    return false;
}

}  // namespace tensorpool::platform
