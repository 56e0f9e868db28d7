#pragma once

/// @file
/// Files of model weights, as views into their mapping. All sizes are bytes.

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <variant>
#include <vector>

#include <tensorpool/data_type.hpp>

namespace tensorpool {

class MappedFile;

/// The formats of model files.
enum class ModelFormat : std::uint8_t {
    /// The format of ggml, versions 2 and 3 (ggml/docs/gguf.md).
    gguf,
    /// The format of Hugging Face.
    safetensors,
    /// An array of NumPy (numpy.lib.format).
    npy,
    /// An uncompressed zip file of NumPy's arrays.
    npz,
};
/// Returns the name of the format, such as "GGUF".
TENSORPOOL_API const char* to_string(ModelFormat format) noexcept;

/// How a file stores elements, and what it calls that.
struct ElementType {
    /// The name in the format's spelling: "Q4_K", "BF16", "<f4". It is valid for ever, except for
    /// NumPy's types, whose names are valid as long as the ModelFile.
    std::string_view name;
    /// How the elements are stored.
    DataType data;
    /// Returns whether two types are equal.
    friend bool operator==(const ElementType&, const ElementType&) = default;
};

/// A tensor of a model file.
struct ModelTensor {
    /// The tensor's name.
    std::string_view name;
    /// How its elements are stored.
    ElementType type;
    /// The extent of each dimension, the slowest first in every format; empty for a scalar.
    std::span<const std::uint64_t> shape;
    /// Whether the first dimension is the fastest instead (NumPy's fortran_order).
    bool column_major = false;
    /// The offset of its bytes from the beginning of the file.
    std::uint64_t offset = 0;
    /// The size of its bytes.
    std::uint64_t bytes = 0;
};

/// An array of metadata values, not decoded: a vocabulary may have a million.
struct MetadataArray {
    /// The type of its elements: "string", "i32", …
    std::string_view type;
    /// The number of elements.
    std::uint64_t count = 0;
    /// The elements as the file stores them.
    std::span<const std::byte> bytes;
};

/// Returns the first `max` values of an array of whole numbers or Booleans; std::nullopt for other
/// types. Values above the range of std::int64_t become its maximum.
TENSORPOOL_API std::optional<std::vector<std::int64_t>> whole_numbers(const MetadataArray& array,
                                                                      std::size_t max);

/// The value of a metadata entry.
using MetadataValue =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, MetadataArray>;

/// One entry of a model file's metadata.
struct MetadataEntry {
    /// The key.
    std::string_view key;
    /// The value.
    MetadataValue value;
};

/// The exception for a file that is damaged, hostile or of no known format. Its text names the
/// file, the field, its offset, what was found and what was expected.
class TENSORPOOL_API ModelFileError : public std::runtime_error {
public:
    /// Makes the error for a field of a file at an offset.
    ModelFileError(const std::string& file, const std::string& field, std::uint64_t offset,
                   const std::string& problem);
    /// Returns the field that is wrong.
    const std::string& field() const noexcept { return field_; }
    /// Returns the field's offset from the beginning of the file.
    std::uint64_t offset() const noexcept { return offset_; }

private:
    std::string field_;
    std::uint64_t offset_;
};

/// The format that the first bytes of a file suggest.
enum class ModelGuess : std::uint8_t {
    none,         ///< no known format
    gguf,         ///< GGUF
    safetensors,  ///< safetensors
    npy,          ///< an array of NumPy
    zip,          ///< a zip file
};
/// Returns the format that the first bytes of a file suggest.
TENSORPOOL_API ModelGuess guess_model_format(std::span<const std::byte> first_bytes) noexcept;

/// A file of weights, mapped and parsed. Tensors and metadata are views that are valid as long as
/// this object. No byte of the weights is read.
///
/// Every count and offset of the file is checked before it is used. Tensors lie within the file and
/// do not overlap. Those of GGUF begin at multiples of its alignment (32 bytes, or
/// `general.alignment`), those of other formats anywhere. Names and keys are UTF-8 and unique;
/// texts in metadata are as the file has them.
///
/// It can be moved, not copied. Any number of threads may read it at once. See MappedFile about
/// files that are truncated while they are mapped.
class TENSORPOOL_API ModelFile {
public:
    /// Opens and parses a file. The tensor of an array file (.npy) has the file's name, without
    /// folder and extension. Throws ModelFileError, which names the field and its offset, for a
    /// file that is damaged or of no known format, and std::system_error if it cannot be opened or
    /// mapped.
    static ModelFile open(const std::string& path);
    /// Parses bytes, which must stay in place as long as the object exists. `name` appears in
    /// errors. Throws ModelFileError, which names the field and its offset, for bytes that are
    /// damaged or of no known format.
    static ModelFile read(std::span<const std::byte> bytes, std::string name);

    /// Takes over the file of another object, which then may only be assigned to or destroyed.
    ModelFile(ModelFile&&) noexcept;
    /// Gives up its own and takes over the file of another object, which then may only be assigned
    /// to or destroyed.
    ModelFile& operator=(ModelFile&&) noexcept;
    /// Ends the mapping.
    ~ModelFile();

    /// Returns the file's path, or the name that `read` was given.
    const std::string& name() const noexcept;
    /// Returns the format.
    ModelFormat format() const noexcept;
    /// Returns the version of the format; 0 if it has none.
    std::uint32_t version() const noexcept;
    /// Returns the size of the file.
    std::uint64_t file_bytes() const noexcept;
    /// Returns the tensors in the order of the file.
    std::span<const ModelTensor> tensors() const noexcept;
    /// Returns the metadata in the order of the file.
    std::span<const MetadataEntry> metadata() const noexcept;
    /// Returns the tensor with this name, or nullptr.
    const ModelTensor* find(std::string_view name) const noexcept;
    /// Returns the metadata value with this key, or nullptr.
    const MetadataValue* find_metadata(std::string_view key) const noexcept;
    /// Returns the bytes of a tensor in the mapping, without reading them. Empty for a tensor
    /// without elements.
    std::span<const std::byte> bytes(const ModelTensor& tensor) const noexcept;
    /// Returns the mapping, for checked copies; nullptr after `read`.
    const MappedFile* mapping() const noexcept;
    /// Returns the mapping, for advice and for unmapping; nullptr after `read`. Unmap only bytes of
    /// tensors, because names and metadata lie in it too.
    MappedFile* mapping() noexcept;

private:
    struct Contents;
    explicit ModelFile(std::unique_ptr<Contents> contents) noexcept;
    std::unique_ptr<Contents> contents_;
};

}  // namespace tensorpool
