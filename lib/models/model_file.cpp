#include <tensorpool/model_file.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <tensorpool/mapped_file.hpp>

#include "models/model_contents.hpp"
#include "models/utf8.hpp"

namespace tensorpool {
namespace {

[[noreturn]] void fail_unknown(const files::ModelContents& contents) {
    const auto first = contents.bytes.first(std::min<std::size_t>(contents.bytes.size(), 8));
    const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
    throw ModelFileError(contents.name, "first bytes", 0,
                         "found " + (first.empty() ? "an empty file" : files::in_quotes(text)) +
                             ", expected those of GGUF, safetensors, .npy or .npz");
}

void read_any(files::ModelContents& contents) {
    switch (guess_model_format(contents.bytes)) {
        case ModelGuess::gguf:
            return files::read_gguf(contents);
        case ModelGuess::safetensors:
            return files::read_safetensors(contents);
        case ModelGuess::npy:
            return files::read_npy(contents);
        case ModelGuess::zip:
            return files::read_npz(contents);
        case ModelGuess::none:
            fail_unknown(contents);
    }
}

}  // namespace

struct ModelFile::Contents : files::ModelContents {
    std::optional<MappedFile> mapping;
};

ModelFile ModelFile::open(const std::string& path) {
    auto contents = std::make_unique<Contents>();
    contents->mapping = MappedFile::open(path);
    contents->name = path;
    contents->bytes = contents->mapping->bytes();
    read_any(*contents);
    return ModelFile(std::move(contents));
}

ModelFile ModelFile::read(std::span<const std::byte> bytes, std::string name) {
    auto contents = std::make_unique<Contents>();
    contents->name = std::move(name);
    contents->bytes = bytes;
    read_any(*contents);
    return ModelFile(std::move(contents));
}

ModelFile::ModelFile(std::unique_ptr<Contents> contents) noexcept
    : contents_(std::move(contents)) {}
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;
ModelFile::~ModelFile() = default;

const std::string& ModelFile::name() const noexcept {
    return contents_->name;
}

ModelFormat ModelFile::format() const noexcept {
    return contents_->format;
}

std::uint32_t ModelFile::version() const noexcept {
    return contents_->version;
}

std::uint64_t ModelFile::file_bytes() const noexcept {
    return contents_->bytes.size();
}

std::span<const ModelTensor> ModelFile::tensors() const noexcept {
    return contents_->tensors;
}

std::span<const MetadataEntry> ModelFile::metadata() const noexcept {
    return contents_->metadata;
}

const ModelTensor* ModelFile::find(std::string_view name) const noexcept {
    return contents_->tensors_by_name.find(tensors(), files::NameOf(), name);
}

const MetadataValue* ModelFile::find_metadata(std::string_view key) const noexcept {
    const auto* const entry = contents_->metadata_by_key.find(metadata(), files::NameOf(), key);
    return entry == nullptr ? nullptr : &entry->value;
}

std::span<const std::byte> ModelFile::bytes(const ModelTensor& tensor) const noexcept {
    // A tensor without bytes may lie at the end of a file without data.
    if (tensor.bytes == 0) return {};
    return contents_->bytes.subspan(tensor.offset, tensor.bytes);
}

const MappedFile* ModelFile::mapping() const noexcept {
    return contents_->mapping ? &*contents_->mapping : nullptr;
}

MappedFile* ModelFile::mapping() noexcept {
    return contents_->mapping ? &*contents_->mapping : nullptr;
}

}  // namespace tensorpool
