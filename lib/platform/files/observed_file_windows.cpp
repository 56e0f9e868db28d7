// Files of other processes cannot be observed on Windows.

#include "platform/files/observed_file.hpp"

namespace tensorpool::platform {

ObservedFile::ObservedFile(int) noexcept {}
ObservedFile::ObservedFile(ObservedFile&&) noexcept = default;
ObservedFile& ObservedFile::operator=(ObservedFile&&) noexcept = default;
ObservedFile::~ObservedFile() = default;
std::uint64_t ObservedFile::bytes() const noexcept {
    return 0;
}
std::size_t ObservedFile::read(std::uint64_t, void*, std::size_t) const noexcept {
    return 0;
}
const void* ObservedFile::map(std::size_t) const noexcept {
    return nullptr;
}
ObservedFile ObservedFile::reopen_for_writing() const {
    return {};
}
void* ObservedFile::map_for_writing(std::size_t) const noexcept {
    return nullptr;
}
bool ObservedFile::hold_lock() const noexcept {
    return false;
}
ObservedFile::Lock ObservedFile::lock() const noexcept {
    return Lock::unknown;
}
std::vector<std::uint64_t> numbers_in(const std::string&) {
    return {};
}
ObservedFile open_in(const std::string&, std::uint64_t) {
    return {};
}
bool remove_in(const std::string&, std::uint64_t, const ObservedFile&) {
    return false;
}

}  // namespace tensorpool::platform
