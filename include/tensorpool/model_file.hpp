#pragma once

/// @file
/// What a file of model weights holds, as views into its mapping. All sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include <tensorpool/export.hpp>

namespace tensorpool {

class MappedFile;

enum class ModelFormat : std::uint8_t {
    gguf,         ///< ggml's, versions 2 and 3 (ggml/docs/gguf.md)
    safetensors,  ///< Hugging Face's
    npy,          ///< NumPy's array (numpy.lib.format)
    npz,          ///< a zip file of those, stored
};
/// "GGUF" and so on.
TENSORPOOL_API const char* to_string(ModelFormat format) noexcept;

/// How elements are stored: `block_elements` of them in `block_bytes`.
struct ElementType {
    std::string_view name;  ///< as its format spells it: "Q4_K", "BF16", "<f4"; lasts for ever,
                            ///< save NumPy's, which last as long as the ModelFile
    std::uint32_t block_elements = 1;
    std::uint32_t block_bytes = 0;
    /// What one element is where a block holds one: as DLPack's codes, 0 signed, 1 unsigned, 2
    /// float, 4 bfloat, 5 complex, 6 bool; -1: none of these.
    std::int8_t dlpack_code = -1;
    friend bool operator==(const ElementType&, const ElementType&) = default;
};

struct ModelTensor {
    std::string_view name;
    ElementType type;
    std::span<const std::uint64_t> shape;  ///< the slowest dimension first, whatever the format;
                                           ///< empty: a scalar
    bool column_major = false;  ///< NumPy's fortran_order: the first dimension is fastest
    std::uint64_t offset = 0;   ///< from the beginning of the file
    std::uint64_t bytes = 0;
};

/// Values of one kind, not unpacked: a vocabulary may have a million.
struct MetadataArray {
    std::string_view type;  ///< of its elements: "string", "i32", …
    std::uint64_t count = 0;
    std::span<const std::byte> bytes;  ///< as the file holds them
};

using MetadataValue =
    std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, MetadataArray>;

struct MetadataEntry {
    std::string_view key;
    MetadataValue value;
};

/// A file that is damaged or hostile, or of no known format. What it says names the file, the
/// field, where in the file that stands, what was found and what was expected.
class TENSORPOOL_API ModelFileError : public std::runtime_error {
public:
    ModelFileError(const std::string& file, const std::string& field, std::uint64_t offset,
                   const std::string& problem);
    const std::string& field() const noexcept { return field_; }
    std::uint64_t offset() const noexcept { return offset_; }  ///< from the beginning of the file

private:
    std::string field_;
    std::uint64_t offset_;
};

/// What a file's first bytes say that it is.
enum class ModelGuess : std::uint8_t { none, gguf, safetensors, npy, zip };
TENSORPOOL_API ModelGuess guess_model_format(std::span<const std::byte> first_bytes) noexcept;

/// A file of weights, mapped and read: tensors and metadata are views that last as long as this
/// object; of the weights no byte is touched. Every count and offset of the file is checked before
/// it is used; tensors lie within the file and do not overlap. GGUF's begin at multiples of its
/// alignment (32 bytes, or `general.alignment`), those of the other formats anywhere. Names and
/// keys are UTF-8, each once; values of metadata that are texts are as the file has them. Moved,
/// not copied. Reading from any number of threads at once is safe. A file that others cut short
/// while it is mapped is the matter of MappedFile.
class TENSORPOOL_API ModelFile {
public:
    /// Throws ModelFileError for a file that is none of the formats or damaged, naming the field
    /// and its offset, and std::system_error where it cannot be opened or mapped. An array of its
    /// own (.npy) is a tensor that is called as the file, without folder and ending.
    static ModelFile open(const std::string& path);
    /// The same of bytes that the caller keeps in place as long as the object lives; `name` stands
    /// in errors.
    static ModelFile read(std::span<const std::byte> bytes, std::string name);

    ModelFile(ModelFile&&) noexcept;
    ModelFile& operator=(ModelFile&&) noexcept;
    ~ModelFile();

    const std::string& name() const noexcept;
    ModelFormat format() const noexcept;
    std::uint32_t version() const noexcept;  ///< of the format; 0 where it has none
    std::uint64_t file_bytes() const noexcept;
    std::span<const ModelTensor> tensors() const noexcept;  ///< in the order of the file
    std::span<const MetadataEntry> metadata() const noexcept;
    /// nullptr where there is none of that name.
    const ModelTensor* find(std::string_view name) const noexcept;
    const MetadataValue* find_metadata(std::string_view key) const noexcept;
    /// A tensor's bytes in the mapping; nothing is read. Empty for one without elements.
    std::span<const std::byte> bytes(const ModelTensor& tensor) const noexcept;
    /// The mapping, for advice and for checked copies; nullptr after `read`. Unmap nothing but
    /// bytes of tensors: names and metadata lie in it too.
    const MappedFile* mapping() const noexcept;
    MappedFile* mapping() noexcept;

private:
    struct Contents;
    explicit ModelFile(std::unique_ptr<Contents> contents) noexcept;
    std::unique_ptr<Contents> contents_;
};

}  // namespace tensorpool
