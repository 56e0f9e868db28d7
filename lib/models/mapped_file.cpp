#include <tensorpool/mapped_file.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

#include "models/mapping.hpp"

namespace tensorpool {

FileCutShortError::FileCutShortError(const std::string& path, FilePart asked, std::uint64_t found)
    : std::runtime_error("tensorpool: read " + std::to_string(asked.bytes) + " bytes at offset " +
                         std::to_string(asked.offset) + " of " + path + ": the file has " +
                         std::to_string(found) + " bytes, expected at least " +
                         std::to_string(asked.offset + asked.bytes) +
                         ": it was cut short while it was mapped"),
      path_(path),
      asked_(asked),
      found_(found) {}

MappedFile::MappedFile(std::unique_ptr<files::Mapping> mapping) noexcept
    : mapping_(std::move(mapping)) {}
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;

MappedFile MappedFile::open(const std::string& path, const MappingOptions& options) {
    return MappedFile(std::make_unique<files::Mapping>(path, options));
}

const std::string& MappedFile::path() const noexcept {
    return mapping_->path();
}

FilePart MappedFile::part() const noexcept {
    return mapping_->part();
}

std::span<const std::byte> MappedFile::bytes() const noexcept {
    return mapping_->bytes();
}

std::span<const std::byte> MappedFile::bytes(FilePart part) const {
    const FilePart within = mapping_->check_within(part, "bytes of");
    return bytes().subspan(static_cast<std::size_t>(within.offset - this->part().offset),
                           static_cast<std::size_t>(within.bytes));
}

std::uint64_t MappedFile::file_bytes() const noexcept {
    return mapping_->file().bytes();
}

void MappedFile::copy_to(std::uint64_t offset, std::span<std::byte> to) const {
    const FilePart asked = mapping_->check_within({offset, to.size()}, "read");
    std::error_code error;
    const std::size_t got = mapping_->file().read(offset, to.data(), to.size(), error);
    if (error) throw std::system_error(error, "tensorpool: read " + path());
    if (got < to.size()) {
        throw FileCutShortError(path(), asked, std::min(file_bytes(), offset + got));
    }
}

std::uint64_t MappedFile::unmapped_bytes() const noexcept {
    return mapping_->unmapped_bytes();
}

std::uint64_t MappedFile::unmap(FilePart part) {
    return mapping_->unmap(mapping_->pages_within(part));
}

}  // namespace tensorpool
