#include <tensorpool/model_file.hpp>

#include <limits>

#include <tensorpool/mapped_file.hpp>

#include "base/text.hpp"
#include "models/safetensors/tensors.hpp"

namespace tensorpool::files {
namespace {

/// The limit of the format's own library.
constexpr std::uint64_t max_header_bytes = 100'000'000;

std::uint64_t read_length(ByteReader& in) {
    constexpr const char* field = "header length";
    const auto bytes = in.read<std::uint64_t>(field);
    if (bytes > max_header_bytes) {
        in.fail_read(field, bytes, "at most " + std::to_string(max_header_bytes) + " B");
    }
    in.check_count(bytes, 1, field);
    return bytes;
}

}  // namespace

void read_safetensors(ModelContents& to) {
    to.format = ModelFormat::safetensors;
    ByteReader in(to.bytes, to.name);
    const std::uint64_t bytes = read_length(in);
    const std::uint64_t begin = in.position();
    const std::string_view header = in.take_text(bytes, "header");
    SafetensorsTensors tensors(to, in.position());
    read_safetensors_header(header, begin, to, tensors);
    tensors.finish();
}

}  // namespace tensorpool::files

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

bool begins(std::span<const std::byte> bytes, std::string_view with) noexcept {
    const auto expected = std::as_bytes(std::span(with));
    return bytes.size() >= with.size() && std::ranges::equal(bytes.first(with.size()), expected);
}

/// Returns whether the bytes begin with a plausible header length and the header's first character.
bool begins_with_header(std::span<const std::byte> bytes) noexcept {
    constexpr std::size_t length_bytes = 8;
    return bytes.size() > length_bytes && bytes[6] == std::byte{0} && bytes[7] == std::byte{0} &&
           bytes[length_bytes] == std::byte{'{'};
}

/// Reads little-endian elements, the byte order of GGUF and of all machines that build this.
template <class Element>
std::vector<std::int64_t> read(const MetadataArray& array, std::size_t max) {
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::size_t count = static_cast<std::size_t>(
        std::min<std::uint64_t>({array.count, max, array.bytes.size() / sizeof(Element)}));
    std::vector<std::int64_t> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        Element element;
        std::memcpy(&element, array.bytes.data() + i * sizeof(Element), sizeof(Element));
        if constexpr (sizeof(Element) == 8 && !std::is_signed_v<Element>) {
            values[i] = static_cast<std::int64_t>(std::min<std::uint64_t>(element, limit));
        } else {
            // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, not a character.
            values[i] = static_cast<std::int64_t>(element);
        }
    }
    return values;
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

ModelFileError::ModelFileError(const std::string& file, const std::string& field,
                               std::uint64_t offset, const std::string& problem)
    : std::runtime_error("tensorpool: " + file + ": " + field + ", at byte " +
                         std::to_string(offset) + ": " + problem),
      field_(field),
      offset_(offset) {}

ModelGuess guess_model_format(std::span<const std::byte> first_bytes) noexcept {
    if (begins(first_bytes, "GGUF")) return ModelGuess::gguf;
    if (begins(first_bytes, "\x93NUMPY")) return ModelGuess::npy;
    // The signature of an entry, or of an archive without entries.
    if (begins(first_bytes, "PK\x03\x04") || begins(first_bytes, "PK\x05\x06")) {
        return ModelGuess::zip;
    }
    return begins_with_header(first_bytes) ? ModelGuess::safetensors : ModelGuess::none;
}

const char* to_string(ModelFormat format) noexcept {
    return base::text_of({"GGUF", "safetensors", "npy", "npz"}, format);
}

std::optional<std::vector<std::int64_t>> whole_numbers(const MetadataArray& array,
                                                       std::size_t max) {
    const std::string_view type = array.type;
    if (type == "u8" || type == "bool") return read<std::uint8_t>(array, max);
    if (type == "i8") return read<std::int8_t>(array, max);
    if (type == "u16") return read<std::uint16_t>(array, max);
    if (type == "i16") return read<std::int16_t>(array, max);
    if (type == "u32") return read<std::uint32_t>(array, max);
    if (type == "i32") return read<std::int32_t>(array, max);
    if (type == "u64") return read<std::uint64_t>(array, max);
    if (type == "i64") return read<std::int64_t>(array, max);
    return std::nullopt;
}

}  // namespace tensorpool
